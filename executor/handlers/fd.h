// A file descriptor that is closed when its owner goes.
#ifndef EXECUTOR_HANDLERS_FD_H_
#define EXECUTOR_HANDLERS_FD_H_

#include <unistd.h>

#include <utility>

namespace leasehold::executor {

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
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_FD_H_
