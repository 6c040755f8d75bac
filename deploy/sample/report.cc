#include "deploy/sample/report.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>

#include "absl/strings/escaping.h"

namespace leasehold::sample {
namespace {

std::string Shown(const std::string& path, const std::string& folder) {
  const bool below = path.rfind(folder + "/", 0) == 0;
  return absl::Utf8SafeCEscape(below ? path.substr(folder.size() + 1) : path);
}

}  // namespace

Totals Sum(const std::vector<FileStats>& all) {
  Totals totals;
  totals.files = all.size();
  for (const FileStats& stats : all) {
    if (!stats.succeeded) {
      ++totals.failed;
      continue;
    }
    totals.lines += stats.lines;
    totals.words += stats.words;
    totals.bytes += stats.bytes;
  }
  return totals;
}

void PrintTable(const std::vector<FileStats>& all, const std::string& folder,
                size_t max_rows) {
  std::vector<const FileStats*> rows;
  std::map<std::string, size_t> files_of_executor;
  for (const FileStats& stats : all) {
    if (!stats.succeeded) continue;
    rows.push_back(&stats);
    ++files_of_executor[stats.executor];
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const FileStats* a, const FileStats* b) {
                     return a->bytes > b->bytes;
                   });
  std::printf("%10s %10s %12s  %s\n", "lines", "words", "bytes", "file");
  for (size_t i = 0; i < std::min(max_rows, rows.size()); ++i) {
    std::printf("%10" PRId64 " %10" PRId64 " %12" PRId64 "  %s\n",
                rows[i]->lines, rows[i]->words, rows[i]->bytes,
                Shown(rows[i]->path, folder).c_str());
  }
  if (rows.size() > max_rows)
    std::printf("%36s%zu smaller files\n", "", rows.size() - max_rows);
  const Totals totals = Sum(all);
  std::printf("%10" PRId64 " %10" PRId64 " %12" PRId64 "  total of %zu files\n",
              totals.lines, totals.words, totals.bytes,
              totals.files - totals.failed);
  for (const auto& [executor, files] : files_of_executor) {
    std::printf("%zu files by %s\n", files, executor.c_str());
  }
  for (const FileStats& stats : all) {
    if (stats.succeeded) continue;
    std::printf("failed: %s: %s\n", Shown(stats.path, folder).c_str(),
                stats.error.c_str());
  }
}

ProgressLine::ProgressLine(size_t total)
    : total_(total), terminal_(isatty(STDOUT_FILENO) != 0) {}

void ProgressLine::Show(size_t done) {
  // At most 20 lines in a log.
  const size_t step = terminal_ ? 1 : std::max<size_t>(1, total_ / 20);
  if (done < shown_ + step && done != total_) return;
  shown_ = done;
  std::printf("%s%zu of %zu tasks done%s", terminal_ ? "\r\033[K" : "", done,
              total_, terminal_ ? "" : "\n");
  std::fflush(stdout);
}

void ProgressLine::Finish() {
  if (terminal_ && shown_ > 0) std::printf("\n");
}

}  // namespace leasehold::sample
