// A child process in a process group of its own, with pipes to its standard
// input, output and error. It inherits nothing else. Should this process die,
// be it by KILL, its guard ends the group.
#ifndef EXECUTOR_HANDLERS_SUBPROCESS_H_
#define EXECUTOR_HANDLERS_SUBPROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/handlers/fd.h"

namespace leasehold::executor {

class Subprocess {
 public:
  struct Options {
    std::vector<std::string> argv;         // argv[0] is searched in PATH.
    std::vector<std::string> environment;  // NAME=value
    std::string working_folder = {};       // Empty: this process's.
    // From TERM to KILL, when this process has died.
    absl::Duration kill_grace = absl::Seconds(5);
  };

  // NOT_FOUND or PERMISSION_DENIED when there is no such program or folder, or
  // it is not executable; UNAVAILABLE when the system lacks resources.
  static absl::StatusOr<Subprocess> Spawn(const Options& options);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&&) = delete;
  // Kills the group and reaps the child if nobody has.
  ~Subprocess();

  // Our ends of the pipes; non-blocking.
  Fd& input() { return input_; }
  Fd& output() { return output_; }
  Fd& error() { return error_; }
  // Readable once the child has ended; not open on systems without pidfd.
  const Fd& pidfd() const { return pidfd_; }

  // Sends `signal` to the whole group.
  void SignalGroup(int signal);

  // True once the child has ended; kills what is left of its group and reaps
  // it. `wait_status` is waitpid's.
  bool TryReap(int* wait_status);

 private:
  Subprocess() = default;

  // Waits for the child, which must have ended or been killed.
  // False when somebody else has reaped it.
  bool Reap(int* wait_status);

  pid_t pid_ = -1;  // Also the group's id; -1 once reaped.
  Fd input_;
  Fd output_;
  Fd error_;
  Fd pidfd_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_SUBPROCESS_H_
