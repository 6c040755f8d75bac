// Reads tasks out of result sets.
#ifndef SCHEDULER_STORE_MYSQL_ROWS_H_
#define SCHEDULER_STORE_MYSQL_ROWS_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "scheduler/store/mysql/connection.h"
#include "scheduler/store/mysql/statements.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Columns 0 to 13 of LeaseBodiesSql and GetTasksSql: id, queue, type, ...
inline constexpr size_t kSpecColumnCount = 14;
inline constexpr char kBodyTypes[] = "ittiiiiiittttttt";

// LockLiveSql: kLiveColumns, flags, now.
inline constexpr char kLockTypes[] = "iiiiiiiiiiiiiiiiiiii";
static_assert(sizeof(kLockTypes) - 1 == kLiveColumnCount + 2);

// Everything but the payload's bytes.
absl::StatusOr<TaskSpec> SpecFromRow(const Rows& rows, size_t row);

// kLiveColumns, from column `first` on.
LiveTask LiveFromRow(const Rows& rows, size_t row, size_t first);

// A row of GetTasksSql, with kTaskTypes.
extern const char* const kTaskTypes;
absl::StatusOr<TaskRecord> RecordFromRow(Rows& rows, size_t row);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_ROWS_H_
