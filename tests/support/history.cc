#include "tests/support/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace leasehold::e2e {
namespace {

int64_t NowMicros() { return absl::ToUnixMicros(absl::Now()); }

}  // namespace

bool IsTerminal(v1::TaskState state) {
  return state == v1::TASK_STATE_SUCCEEDED || state == v1::TASK_STATE_FAILED ||
         state == v1::TASK_STATE_CANCELLED;
}

RunLog::RunLog(const std::string& path)
    : file_(
          open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw std::runtime_error("cannot open " + path);
}

RunLog::~RunLog() { close(file_); }

void RunLog::Append(const std::string& line) {
  if (write(file_, line.data(), line.size()) !=
      static_cast<ssize_t>(line.size())) {
    // Without its log a run cannot be judged.
    throw std::runtime_error("cannot write to the run log");
  }
}

void RunLog::Start(const std::string& task, int64_t lease_number) {
  Append(absl::StrCat("start ", task, " ", lease_number, " ", getpid(), " ",
                      NowMicros(), "\n"));
}

void RunLog::End(const std::string& task, int64_t lease_number,
                 const std::string& outcome) {
  Append(absl::StrCat("end ", task, " ", lease_number, " ", getpid(), " ",
                      NowMicros(), " ", outcome, "\n"));
}

void RunLog::Exit() {
  Append(absl::StrCat("exit - 0 ", getpid(), " ", NowMicros(), "\n"));
}

std::vector<Run> ReadRunLog(const std::string& path) {
  std::vector<Run> runs;
  std::map<std::tuple<std::string, int64_t, pid_t>, size_t> open_runs;
  std::set<pid_t> gone;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    Run run;
    int64_t time_us = 0;
    words >> what >> run.task >> run.lease_number >> run.pid >> time_us >>
        run.outcome;
    const auto key = std::make_tuple(run.task, run.lease_number, run.pid);
    if (what == "start") {
      run.start_us = time_us;
      open_runs[key] = runs.size();
      runs.push_back(run);
      continue;
    }
    const auto started = open_runs.find(key);
    if (what == "exit") {
      for (Run& run_of_it : runs) {
        if (run_of_it.pid == run.pid && !run_of_it.end_us.has_value()) {
          run_of_it.end_us = time_us;
          run_of_it.outcome = "abandoned";
        }
      }
      gone.insert(run.pid);
      continue;
    }
    if (what == "end" && gone.count(run.pid) > 0) continue;
    if (what != "end" || started == open_runs.end()) {
      throw std::runtime_error("run log: " + line);
    }
    runs[started->second].end_us = time_us;
    runs[started->second].outcome = run.outcome;
    open_runs.erase(started);
  }
  return runs;
}

}  // namespace leasehold::e2e
