// The only place that begins, commits and rolls back.
#ifndef SCHEDULER_STORE_MYSQL_TRANSACTION_H_
#define SCHEDULER_STORE_MYSQL_TRANSACTION_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scheduler/store/mysql/connection_pool.h"

namespace leasehold::scheduler {

// Told of each repetition: the transaction's name, and "deadlock", "lock_wait"
// or "duplicate_key".
using RetryObserver =
    std::function<void(absl::string_view name, absl::string_view cause)>;

// Runs `body` in a transaction and commits if it returns OK. Deadlocks and lock
// waits, at COMMIT too, repeat the whole, at most 6 times and with jittered
// waits in between; so does ALREADY_EXISTS, which here means that another
// replica was quicker with a key. `body` must overwrite its results, not add to
// them.
absl::Status RunTransaction(ConnectionPool& pool, const char* name,
                            const RetryObserver& on_retry,
                            absl::FunctionRef<absl::Status(Connection&)> body);

// The same for one autocommitted step.
absl::Status RunStatement(ConnectionPool& pool, const char* name,
                          const RetryObserver& on_retry,
                          absl::FunctionRef<absl::Status(Connection&)> body);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_TRANSACTION_H_
