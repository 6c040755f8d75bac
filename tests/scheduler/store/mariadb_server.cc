#include "tests/scheduler/store/sql_harness.h"

namespace leasehold::scheduler {

e2e::DatabaseServer::Kind TestedServer() {
  return e2e::DatabaseServer::Kind::kMariaDb;
}

}  // namespace leasehold::scheduler
