// A program under test: started with its output in a file, signalled by pid,
// and never left behind.
#ifndef TESTS_SUPPORT_CHILD_PROCESS_H_
#define TESTS_SUPPORT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace leasehold::e2e {

struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is searched in PATH.
  std::map<std::string, std::string> environment;  // Added to ours.
  std::string log_path;  // Gets stdout and stderr; empty: they go to /dev/null.
  std::string working_folder;
};

// Not thread-safe. The child gets a process group of its own, and dies with the
// thread that started it.
class ChildProcess {
 public:
  // Throws when the program cannot be run.
  explicit ChildProcess(ChildOptions options);
  // Kills the group and reaps the child.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  void Signal(int signal) const;
  // The exit status, or 128 + signal; nullopt when it still runs after
  // `timeout`.
  std::optional<int> WaitForExit(absl::Duration timeout);
  // kill -9 and reap.
  void Kill();

  const std::string& log_path() const { return options_.log_path; }
  std::string Log() const;

 private:
  void Reap(bool block);

  ChildOptions options_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// CPU time of a process so far, and its resident memory, from /proc; 0 when it
// is gone.
double CpuSeconds(pid_t pid);
double ResidentMiB(pid_t pid);

// Runs a command to its end and returns what it printed on stdout; throws when
// it fails.
std::string RunCommand(
    const std::vector<std::string>& argv,
    const std::map<std::string, std::string>& environment = {});

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_CHILD_PROCESS_H_
