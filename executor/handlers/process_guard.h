// Ends the process groups of this process's children when it dies without
// having ended them, be it by KILL.
//
//   this process  --socket: group added / over-->  guard
//        |                                           |  this process is dead:
//        +--posix_spawn--> child, its group  <-------+  TERM, grace, KILL
//
// The guard is a fork of this process that runs no program. Other ways were
// weighed: a helper program next to the library must be found at run time, and
// is not there in somebody else's image; running /proc/self/exe again with a
// reserved argument runs the static initializers, and under an interpreter the
// wrong program, of whoever links the SDK; a helper kept in memory looks like
// malware to what watches for it; PR_SET_PDEATHSIG cannot be set by posix_spawn
// and reaches no grandchild. A fork needs nothing but the kernel, and is sound
// in a process with threads as long as the child makes system calls only, which
// guard_loop.cc keeps to. Its copy of the memory costs the pages that are
// written afterwards, at most what the process had at the time, so it is made
// early: by the first ExecHandler.
//
// The rule that children inherit nothing but their three pipes stands: the
// guard keeps its socket and a pidfd of this process, and 0-2 on /dev/null. It
// is a grandchild, so that no waitpid(-1) of this process comes across it.
//
// Of a KILL in the moment between a child's start and its registration, some
// tens of microseconds, the guard learns nothing.
#ifndef EXECUTOR_HANDLERS_PROCESS_GUARD_H_
#define EXECUTOR_HANDLERS_PROCESS_GUARD_H_

#include <sys/types.h>

#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "executor/handlers/fd.h"
#include "executor/handlers/guard_loop.h"

namespace leasehold::executor {

// Thread-safe.
class ProcessGuard {
 public:
  // One guard is enough for a process.
  static ProcessGuard& OfThisProcess();

  // Starts the guard if there is none. UNAVAILABLE when the system lacks
  // resources; Add tries again.
  absl::Status Start();

  // `group` is a process group whose leader, `leader` by pidfd (or -1), is a
  // child that has not been reaped. `leader` stays open until Drop.
  // A guard that has died is replaced, and told of every group.
  absl::Status Add(pid_t group, int leader, absl::Duration grace);

  // To be called before the leader is reaped: afterwards the number may be
  // somebody else's.
  void Drop(pid_t group);

 private:
  struct Group {
    int leader = -1;
    absl::Duration grace;
  };

  ProcessGuard() = default;

  absl::Status StartLocked();
  absl::Status RestartLocked();
  bool SendAddLocked(pid_t id, const Group& group);
  bool SendLocked(const GuardMessage& message, int leader);

  std::mutex mutex_;
  Fd socket_;
  std::map<pid_t, Group> groups_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_PROCESS_GUARD_H_
