#include "executor/handlers/guard_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace leasehold::executor {
namespace {

constexpr int kSocket = 3;
constexpr int kOwner = 4;
constexpr int64_t kNsPerMs = 1'000'000;
// Between two looks at groups that are being ended.
constexpr int64_t kLookNs = 20 * kNsPerMs;
// A socket that closes while its owner lives means that the owner has given
// this guard up; an owner that is dying closes it moments before it is dead.
constexpr int kOwnerEndMs = 10'000;
// After the last KILL: what is in an uninterruptible sleep is not waited for.
constexpr int64_t kGiveUpNs = 10'000 * kNsPerMs;
// Where close_range is missing.
constexpr int kMaxFdToClose = 65'536;

struct Group {
  pid_t id;
  int leader;  // A pidfd, or -1.
  int64_t grace_ns;
  bool told;
};

// In the guard alone: the fork's copy.
Group groups[kMaxGuardedGroups];
int group_count = 0;

// glibc's syscall() goes straight to the kernel, also under sanitizers, whose
// wrappers of the C library take locks.
long Word(const void* pointer) { return reinterpret_cast<long>(pointer); }
long Word(std::nullptr_t) { return 0; }
template <typename Integer>
requires(std::is_integral_v<Integer> ||
         std::is_enum_v<Integer>) long Word(Integer value) {
  return static_cast<long>(value);
}

template <typename... Args>
int64_t Call(long number, Args... args) {
  return syscall(number, Word(args)...);
}

int64_t NowNs() {
  timespec now{};
  Call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// False when nothing became readable in time.
bool Poll(int first, int second, int64_t timeout_ns) {
  pollfd fds[] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
  timespec timeout{};
  timeout.tv_sec = timeout_ns / 1'000'000'000;
  timeout.tv_nsec = timeout_ns % 1'000'000'000;
  return Call(SYS_ppoll, fds, 2, timeout_ns < 0 ? nullptr : &timeout, nullptr,
              0) > 0;
}

void CloseFrom(int first) {
  if (Call(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int fd = first; fd < kMaxFdToClose; ++fd) Call(SYS_close, fd);
}

// Leaves everything that was inherited, so that neither a terminal, a pipe, a
// port nor a mount is held by the guard, and nobody's signal ends it before its
// owner: Ctrl-C and signals to the owner's group do not reach another session,
// and whatever is sent to the guard itself, short of KILL, is blocked.
void Settle(int socket, int owner) {
  Call(SYS_setsid);
  const uint64_t all_signals = ~uint64_t{0};
  Call(SYS_rt_sigprocmask, SIG_BLOCK, &all_signals, nullptr,
       sizeof(all_signals));
  Call(SYS_prctl, PR_SET_NAME, "leasehold-guard", 0, 0, 0);
  // Out of the way of the places that they are to have.
  socket = static_cast<int>(Call(SYS_fcntl, socket, F_DUPFD, 16));
  if (owner >= 0) owner = static_cast<int>(Call(SYS_fcntl, owner, F_DUPFD, 16));
  Call(SYS_dup3, socket, kSocket, 0);
  if (owner >= 0) Call(SYS_dup3, owner, kOwner, 0);
  CloseFrom(owner >= 0 ? kOwner + 1 : kOwner);
  const int null = static_cast<int>(
      Call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0));
  for (int fd = 0; fd < kSocket; ++fd) {
    if (null >= 0) {
      Call(SYS_dup3, null, fd, 0);
    } else {
      Call(SYS_close, fd);
    }
  }
  if (null >= kSocket) Call(SYS_close, null);
  Call(SYS_chdir, "/");
  // A descriptor for every group.
  rlimit files{};
  if (Call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    Call(SYS_prlimit64, 0, RLIMIT_NOFILE, &files, nullptr);
  }
}

void Remove(int index) {
  if (groups[index].leader >= 0) Call(SYS_close, groups[index].leader);
  groups[index] = groups[--group_count];
}

void Drop(pid_t id) {
  for (int i = 0; i < group_count; ++i) {
    if (groups[i].id == id) {
      Remove(i);
      return;
    }
  }
}

void Add(const GuardMessage& message, int leader) {
  Drop(message.group);
  if (message.group <= 1 || group_count == kMaxGuardedGroups) {
    if (leader >= 0) Call(SYS_close, leader);
    return;
  }
  groups[group_count++] = {message.group, leader, message.grace_ns, false};
}

// False when the socket is closed; true also when there is nothing to read.
bool ReadMessage() {
  GuardMessage message;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part = {&message, sizeof(message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const int64_t size =
      Call(SYS_recvmsg, kSocket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  int leader = -1;
  const cmsghdr* item = CMSG_FIRSTHDR(&header);
  if (item != nullptr && item->cmsg_type == SCM_RIGHTS) {
    memcpy(&leader, CMSG_DATA(item), sizeof(leader));
  }
  if (size == sizeof(message) && message.kind == GuardMessage::Kind::kDrop) {
    Drop(message.group);
  } else if (size == sizeof(message)) {
    Add(message, leader);
  }
  return true;
}

// Whether the number still means the group that was added. While the leader is
// not reaped its number is nobody else's. Once it is, the kernel gives the
// number to no new process while the group has members; so a process of that
// number means that the group is over and the number has gone to another.
bool StillOurs(const Group& group) {
  if (group.leader >= 0) {
    if (Call(SYS_pidfd_send_signal, group.leader, 0, nullptr, 0) == 0 ||
        errno == EPERM) {
      return true;
    }
    if (Call(SYS_kill, group.id, 0) == 0 || errno == EPERM) return false;
  }
  return Call(SYS_kill, -group.id, 0) == 0;
}

// Groups are looked at often, and forgotten as soon as they are gone, so that
// no number has time to come round again.
void EndGroups() {
  const int64_t start = NowNs();
  int64_t longest_grace = 0;
  for (int i = 0; i < group_count; ++i) {
    longest_grace = std::max(longest_grace, groups[i].grace_ns);
  }
  while (group_count > 0) {
    const int64_t passed = NowNs() - start;
    if (passed > longest_grace + kGiveUpNs) return;
    for (int i = group_count - 1; i >= 0; --i) {
      Group& group = groups[i];
      if (!StillOurs(group)) {
        Remove(i);
      } else if (passed >= group.grace_ns) {
        Call(SYS_kill, -group.id, SIGKILL);
      } else if (!group.told) {
        group.told = true;
        Call(SYS_kill, -group.id, SIGTERM);
      }
    }
    if (group_count > 0) Poll(-1, -1, kLookNs);
  }
}

}  // namespace

void RunGuardLoop(int socket, int owner) {
  const bool has_owner = owner >= 0;
  Settle(socket, owner);
  const int owner_fd = has_owner ? kOwner : -1;
  for (;;) {
    if (!Poll(kSocket, owner_fd, -1)) continue;
    // A dead owner's last words come first. A descendant may hold the owner's
    // end open: then only the pidfd tells.
    const bool owner_ended = has_owner && Poll(owner_fd, -1, 0);
    bool open = true;
    while (open && Poll(kSocket, -1, 0)) open = ReadMessage();
    if (open && !owner_ended) continue;
    if (!has_owner || owner_ended ||
        Poll(owner_fd, -1, kOwnerEndMs * kNsPerMs)) {
      EndGroups();
    }
    Call(SYS_exit_group, 0);
  }
}

}  // namespace leasehold::executor
