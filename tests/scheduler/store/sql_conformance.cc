// The conformance suite on a real server.
#include "tests/scheduler/store/sql_harness.h"

namespace leasehold::scheduler {

INSTANTIATE_TEST_SUITE_P(Sql, TaskStoreTest, testing::Values(MakeSqlHarness));

}  // namespace leasehold::scheduler
