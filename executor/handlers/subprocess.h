// A child process in a process group of its own, with pipes to its standard
// input, output and error. It inherits nothing else.
#ifndef EXECUTOR_HANDLERS_SUBPROCESS_H_
#define EXECUTOR_HANDLERS_SUBPROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leasehold::executor {

// Closes its descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Close();
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

class Subprocess {
 public:
  struct Options {
    std::vector<std::string> argv;         // argv[0] is searched in PATH.
    std::vector<std::string> environment;  // NAME=value
    std::string working_folder;            // Empty: this process's.
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

  pid_t pid_ = -1;  // Also the group's id; -1 once reaped.
  Fd input_;
  Fd output_;
  Fd error_;
  Fd pidfd_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_SUBPROCESS_H_
