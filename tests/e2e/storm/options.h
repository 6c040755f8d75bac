// What a storm is told on its command line.
#ifndef TESTS_E2E_STORM_OPTIONS_H_
#define TESTS_E2E_STORM_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "tests/support/database.h"

namespace leasehold::e2e {

struct StormOptions {
  uint64_t seed = 0;
  absl::Duration length;
  int tasks = 0;  // Submitted evenly over the length.
  DatabaseServer::Kind database = DatabaseServer::Kind::kMariaDb;
  int schedulers = 2;
  int executors = 6;
  int slots = 8;
  // Mean time between two faults.
  absl::Duration fault_interval;
  // For the backlog to drain once the faults have stopped.
  absl::Duration drain_bound;
  // Until cancel, pause, resume and retry are served.
  bool tolerate_unimplemented = false;
};

}  // namespace leasehold::e2e

#endif  // TESTS_E2E_STORM_OPTIONS_H_
