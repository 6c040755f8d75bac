// What the guard process does; see process_guard.h for why there is one.
//
//   socket: adds and drops of process groups ->  table
//   the owner has ended                      ->  TERM to every group of the
//                                                table, KILL after its grace
//
// It runs in a fork of a process that may have many threads, so it makes system
// calls only: no allocation, no lock, no C library state.
#ifndef EXECUTOR_HANDLERS_GUARD_LOOP_H_
#define EXECUTOR_HANDLERS_GUARD_LOOP_H_

#include <sys/types.h>

#include <cstdint>

namespace leasehold::executor {

// Groups that one guard can hold; more than an executor runs handlers.
inline constexpr int kMaxGuardedGroups = 4096;

// One packet of the guard's socket.
struct GuardMessage {
  enum class Kind : int32_t {
    kAdd,   // With the pidfd of the group's leader, where there are pidfds.
    kDrop,  // The group is over; sent before its leader is reaped.
  };
  Kind kind = Kind::kAdd;
  pid_t group = 0;
  int64_t grace_ns = 0;  // From TERM to KILL.
};

// Never returns. `socket` is the guard's end; `owner` is a pidfd of the process
// that is guarded, or -1 where there are none.
[[noreturn]] void RunGuardLoop(int socket, int owner);

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_GUARD_LOOP_H_
