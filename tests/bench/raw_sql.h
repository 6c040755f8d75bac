// The ceiling: the statements that the scheduler runs for a task's life, in the
// same batches, over three connections as it has them, and nothing else. No
// gRPC, no executors, no scheduling.
#ifndef TESTS_BENCH_RAW_SQL_H_
#define TESTS_BENCH_RAW_SQL_H_

#include <cstddef>

#include "tests/support/database.h"

namespace leasehold::bench {

// Stores, claims and finishes `tasks` tasks in a new database of `server` and
// returns how many a second it did.
double RunRawSql(e2e::DatabaseServer& server, size_t tasks);

}  // namespace leasehold::bench

#endif  // TESTS_BENCH_RAW_SQL_H_
