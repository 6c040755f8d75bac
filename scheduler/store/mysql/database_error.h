// What the database's error numbers mean: the only file that knows them.
#ifndef SCHEDULER_STORE_MYSQL_DATABASE_ERROR_H_
#define SCHEDULER_STORE_MYSQL_DATABASE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leasehold::scheduler {

inline constexpr unsigned kErrDuplicateKey = 1062;
inline constexpr unsigned kErrNoSuchTable = 1146;
inline constexpr unsigned kErrLockWaitTimeout = 1205;
inline constexpr unsigned kErrDeadlock = 1213;
inline constexpr unsigned kErrRecordChanged = 1020;

// The session cannot be used any more: the connection is gone, or the server
// behind it has become read-only or is shutting down.
bool BreaksSession(unsigned number);

// The user may not do that.
bool IsMissingRight(unsigned number);

// The whole transaction can be tried again.
bool IsRetryable(unsigned number);

// UNAVAILABLE, ABORTED, ALREADY_EXISTS or INTERNAL, as task_store.h promises.
// The message names the statement and the number, never a value:
//   claim_leases: database unreachable (MySQL 2013)
absl::Status StatusFromDatabaseError(absl::string_view statement,
                                     unsigned number);

// For start-up: says what to do about a connection that could not be made.
// `detail` is the server's text, which then holds no values of statements.
absl::Status StatusFromConnectError(absl::string_view address, unsigned number,
                                    absl::string_view detail);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_DATABASE_ERROR_H_
