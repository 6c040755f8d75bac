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

absl::Status RunOnce(Connection& connection, bool transaction,
                     absl::FunctionRef<absl::Status(Connection&)> body) {
  if (!transaction) return body(connection);
  LEASEHOLD_RETURN_IF_ERROR(connection.Execute("begin", "BEGIN").status());
  absl::Status status = body(connection);
  if (status.ok()) status = connection.Execute("commit", "COMMIT").status();
  return status;
}

absl::Status Run(ConnectionPool& pool, const char* name, bool transaction,
                 const RetryObserver& on_retry,
                 absl::FunctionRef<absl::Status(Connection&)> body) {
  thread_local std::minstd_rand rng{std::random_device{}()};
  Backoff backoff(absl::Milliseconds(2), absl::Milliseconds(100));
  auto lease = pool.Acquire();
  if (!lease.ok()) {
    return absl::Status(lease.status().code(),
                        absl::StrCat(name, ": ", lease.status().message()));
  }
  Connection& connection = **lease;
  int lock_waits = 0;
  for (int run = 1;; ++run) {
    absl::Status status = RunOnce(connection, transaction, body);
    if (status.ok() || connection.broken()) return status;
    const unsigned number = connection.last_error();
    // 1205 undoes only its statement, so the rest is rolled back here.
    if (transaction && !connection.Execute("rollback", "ROLLBACK").ok()) {
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

}  // namespace

absl::Status RunTransaction(ConnectionPool& pool, const char* name,
                            const RetryObserver& on_retry,
                            absl::FunctionRef<absl::Status(Connection&)> body) {
  return Run(pool, name, true, on_retry, body);
}

absl::Status RunStatement(ConnectionPool& pool, const char* name,
                          const RetryObserver& on_retry,
                          absl::FunctionRef<absl::Status(Connection&)> body) {
  return Run(pool, name, false, on_retry, body);
}

}  // namespace leasehold::scheduler
