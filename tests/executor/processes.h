// Looks at processes through /proc.
#ifndef TESTS_EXECUTOR_PROCESSES_H_
#define TESTS_EXECUTOR_PROCESSES_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace leasehold::executor {

inline std::string ReadProc(pid_t pid, const std::string& name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/", name), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A zombie counts as gone.
inline bool IsGone(pid_t pid) {
  if (kill(pid, 0) != 0) return true;
  return ReadProc(pid, "stat").find(") Z ") != std::string::npos;
}

inline bool WaitUntilGone(pid_t pid,
                          absl::Duration patience = absl::Seconds(10)) {
  const absl::Time until = absl::Now() + patience;
  while (!IsGone(pid)) {
    if (absl::Now() >= until) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// Processes of that name whose command line has `argument` in it.
inline std::vector<pid_t> FindProcesses(const std::string& name,
                                        const std::string& argument) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", ignored)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    if (ReadProc(pid, "comm") == name + "\n" && !IsGone(pid) &&
        ReadProc(pid, "cmdline").find(argument) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

// What its descriptors point at: "/dev/null", "socket:[1]", ...
inline std::multiset<std::string> OpenFiles(pid_t pid) {
  std::multiset<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           absl::StrCat("/proc/", pid, "/fd"), ignored)) {
    files.insert(std::filesystem::read_symlink(entry.path(), ignored).string());
  }
  return files;
}

}  // namespace leasehold::executor

#endif  // TESTS_EXECUTOR_PROCESSES_H_
