#include "scheduler/store/mysql/transaction.h"

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/backoff/backoff.h"
#include "common/status/status_macros.h"
#include "scheduler/store/mysql/database_error.h"

namespace leasehold::scheduler {
namespace {

constexpr int kMaxRuns = 6;
// A lock wait has cost a second already.
constexpr int kMaxLockWaits = 3;

const char* Cause(unsigned number) {
  switch (number) {
    case kErrLockWaitTimeout:
      return "lock_wait";
    case kErrDuplicateKey:
      return "duplicate_key";
    default:
      return "deadlock";
  }
}

enum class Mode { kTransaction, kStatement };

absl::StatusOr<ConnectionLease> AcquireFor(const char* name,
                                           ConnectionPool& pool) {
  auto lease = pool.Acquire();
  if (lease.ok()) return lease;
  return absl::Status(lease.status().code(),
                      absl::StrCat(name, ": ", lease.status().message()));
}

// `begun` becomes true once the database may have done something.
absl::Status RunOnce(Connection& connection, Mode mode,
                     absl::FunctionRef<absl::Status(Connection&)> body,
                     bool* begun) {
  if (mode == Mode::kTransaction) {
    LEASEHOLD_RETURN_IF_ERROR(connection.Execute("begin", "BEGIN").status());
  }
  *begun = true;
  absl::Status status = body(connection);
  if (mode == Mode::kTransaction && status.ok()) {
    status = connection.Execute("commit", "COMMIT").status();
  }
  return status;
}

// Runs `body` on one connection until it is done or has failed too often.
absl::Status RunOn(Connection& connection, const char* name, Mode mode,
                   const RetryObserver& on_retry,
                   absl::FunctionRef<absl::Status(Connection&)> body,
                   bool* begun) {
  thread_local std::minstd_rand rng{std::random_device{}()};
  Backoff backoff(absl::Milliseconds(2), absl::Milliseconds(100));
  int lock_waits = 0;
  for (int run = 1;; ++run) {
    absl::Status status = RunOnce(connection, mode, body, begun);
    if (status.ok() || connection.broken()) return status;
    const unsigned number = connection.last_error();
    // 1205 undoes only its statement, so the rest is rolled back here.
    if (mode == Mode::kTransaction &&
        !connection.Execute("rollback", "ROLLBACK").ok()) {
      connection.MarkBroken();
      return status;
    }
    if (!absl::IsAborted(status) && !absl::IsAlreadyExists(status)) {
      return status;
    }
    if (number == kErrLockWaitTimeout) ++lock_waits;
    if (run == kMaxRuns || lock_waits == kMaxLockWaits) {
      return absl::AbortedError(status.message());
    }
    if (on_retry) on_retry(name, Cause(number));
    std::this_thread::sleep_for(absl::ToChronoMicroseconds(backoff.Next(rng)));
  }
}

absl::Status Run(ConnectionPool& pool, const char* name, Mode mode,
                 const RetryObserver& on_retry,
                 absl::FunctionRef<absl::Status(Connection&)> body) {
  bool begun = false;
  {
    LEASEHOLD_ASSIGN_OR_RETURN(ConnectionLease lease, AcquireFor(name, pool));
    const bool reused = lease.reused();
    absl::Status status = RunOn(*lease, name, mode, on_retry, body, &begun);
    // A connection that was dead already is no reason to fail, as long as
    // nothing can have happened on it.
    const bool harmless = !begun || pool.read_only();
    if (!reused || !lease->broken() || !harmless) return status;
  }
  LEASEHOLD_ASSIGN_OR_RETURN(ConnectionLease lease, AcquireFor(name, pool));
  return RunOn(*lease, name, mode, on_retry, body, &begun);
}

}  // namespace

absl::Status RunTransaction(ConnectionPool& pool, const char* name,
                            const RetryObserver& on_retry,
                            absl::FunctionRef<absl::Status(Connection&)> body) {
  return Run(pool, name, Mode::kTransaction, on_retry, body);
}

absl::Status RunStatement(ConnectionPool& pool, const char* name,
                          const RetryObserver& on_retry,
                          absl::FunctionRef<absl::Status(Connection&)> body) {
  return Run(pool, name, Mode::kStatement, on_retry, body);
}

}  // namespace leasehold::scheduler
