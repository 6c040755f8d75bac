#include "executor/handlers/process_guard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace leasehold::executor {
namespace {

// A guard that takes no message for this long is given up for another.
constexpr time_t kSendTimeoutSeconds = 1;

absl::Status ErrnoError(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("guard process: ", what, ": ", strerror(errno)));
}

}  // namespace

ProcessGuard& ProcessGuard::OfThisProcess() {
  // Never destroyed: threads may still run handlers when the process exits.
  static ProcessGuard* const guard = new ProcessGuard();
  return *guard;
}

absl::Status ProcessGuard::Start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return socket_.open() ? absl::OkStatus() : StartLocked();
}

absl::Status ProcessGuard::StartLocked() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoError("socketpair");
  }
  Fd ours(ends[0]);
  Fd guards(ends[1]);
  const timeval timeout = {kSendTimeoutSeconds, 0};
  setsockopt(ours.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  const Fd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));

  // No handler of this process may run in the fork.
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Without the handlers of pthread_atfork: they are for forks that go on.
  const pid_t parent = _Fork();
  if (parent == 0) {
    if (_Fork() == 0) RunGuardLoop(guards.get(), self.get());
    syscall(SYS_exit_group, 0);
  }
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  if (parent < 0) return ErrnoError("fork");
  while (waitpid(parent, nullptr, 0) < 0 && errno == EINTR) {
  }
  socket_ = std::move(ours);
  return absl::OkStatus();
}

absl::Status ProcessGuard::RestartLocked() {
  socket_ = Fd();
  LEASEHOLD_RETURN_IF_ERROR(StartLocked());
  for (const auto& [id, group] : groups_) {
    if (!SendAddLocked(id, group)) {
      socket_ = Fd();
      return absl::UnavailableError("guard process: does not listen");
    }
  }
  return absl::OkStatus();
}

absl::Status ProcessGuard::Add(pid_t group, int leader, absl::Duration grace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (groups_.size() >= kMaxGuardedGroups) {
    return absl::UnavailableError(absl::StrCat(
        "guard process: ", kMaxGuardedGroups, " process groups already"));
  }
  const Group added = {leader, grace};
  groups_[group] = added;
  if (socket_.open() && SendAddLocked(group, added)) return absl::OkStatus();
  absl::Status status = RestartLocked();
  if (!status.ok()) groups_.erase(group);
  return status;
}

void ProcessGuard::Drop(pid_t group) {
  const std::lock_guard<std::mutex> lock(mutex_);
  groups_.erase(group);
  if (!socket_.open()) return;
  GuardMessage message;
  message.kind = GuardMessage::Kind::kDrop;
  message.group = group;
  // The next Add tries again should this fail. Closing the socket tells a guard
  // that still lives to forget everything.
  if (!SendLocked(message, -1)) RestartLocked().IgnoreError();
}

bool ProcessGuard::SendAddLocked(pid_t id, const Group& group) {
  GuardMessage message;
  message.kind = GuardMessage::Kind::kAdd;
  message.group = id;
  message.grace_ns = absl::ToInt64Nanoseconds(
      std::clamp(group.grace, absl::ZeroDuration(), absl::Hours(1)));
  return SendLocked(message, group.leader);
}

bool ProcessGuard::SendLocked(const GuardMessage& message, int leader) {
  iovec part = {const_cast<GuardMessage*>(&message), sizeof(message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (leader >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(item), &leader, sizeof(leader));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof(message);
}

}  // namespace leasehold::executor
