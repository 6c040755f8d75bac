// Submits one task per regular file under a folder, shows how they get on, and
// prints what came of them.
//
//   leasehold-sample --scheduler=127.0.0.1:7070 FOLDER
//
// Exit status: 0 when every file was counted, 1 when not, 2 for a wrong call.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "common/flags/command_line.h"
#include "common/text/host_port.h"
#include "deploy/sample/file_list.h"
#include "deploy/sample/report.h"
#include "deploy/sample/sample_job.h"

ABSL_FLAG(std::string, scheduler, "127.0.0.1:7070",
          "Address of the scheduler, host:port");
ABSL_FLAG(std::string, queue, "files", "Queue to submit to");
ABSL_FLAG(std::string, type, "file-stats", "Type of the tasks");
ABSL_FLAG(std::string, totals, "",
          "File that gets the totals, as wc prints them: lines words bytes");
ABSL_FLAG(std::string, paths, "",
          "File that gets the paths, each followed by a NUL");
ABSL_FLAG(int, rows, 25, "Rows of the table");

namespace leasehold::sample {
namespace {

int RunJob(const std::string& folder) {
  const std::vector<std::string> paths = ListRegularFiles(folder);
  if (paths.empty()) {
    std::fprintf(stderr, "%s: no regular file that can be read\n",
                 folder.c_str());
    return 2;
  }
  if (const std::string list = absl::GetFlag(FLAGS_paths); !list.empty()) {
    std::ofstream file(list, std::ios::binary);
    for (const std::string& path : paths) file << path << '\0';
  }

  SampleJob job(absl::GetFlag(FLAGS_scheduler), absl::GetFlag(FLAGS_queue),
                absl::GetFlag(FLAGS_type));
  std::string error;
  if (!job.Submit(paths, &error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  std::printf("%zu tasks submitted to queue %s\n", paths.size(),
              absl::GetFlag(FLAGS_queue).c_str());
  ProgressLine progress(paths.size());
  const std::vector<FileStats> all =
      job.WaitForAll([&progress](size_t done) { progress.Show(done); });
  progress.Finish();

  PrintTable(all, folder, static_cast<size_t>(absl::GetFlag(FLAGS_rows)));
  const Totals totals = Sum(all);
  if (const std::string path = absl::GetFlag(FLAGS_totals); !path.empty()) {
    std::ofstream(path) << totals.lines << ' ' << totals.words << ' '
                        << totals.bytes << '\n';
  }
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::sample

int main(int argc, char** argv) {
  const leasehold::ProgramFlags program = {
      .name = "leasehold-sample",
      .head =
          "Submits a task for each regular file under a folder, and shows "
          "what came of them.\n\n"
          "  leasehold-sample [FLAG...] FOLDER\n\n"
          "Exit status: 0 every file was counted, 1 not, 2 a wrong call.\n",
      .groups = {{"Where to", {"scheduler", "queue", "type"}},
                 {"What is shown", {"rows", "totals", "paths"}}},
      .has_environment = false};
  std::vector<std::string> arguments;
  if (const auto status =
          leasehold::ReadFlagsOrExit(program, argc, argv, &arguments)) {
    return *status;
  }
  const std::string scheduler = absl::GetFlag(FLAGS_scheduler);
  if (arguments.size() != 1) {
    std::fprintf(stderr, "leasehold-sample: %zu folders, want 1\n",
                 arguments.size());
    return 2;
  }
  if (!leasehold::IsHostPort(scheduler)) {
    std::fprintf(stderr, "leasehold-sample: --scheduler=%s: want host:port\n",
                 scheduler.c_str());
    return 2;
  }
  return leasehold::sample::RunJob(arguments[0]);
}
