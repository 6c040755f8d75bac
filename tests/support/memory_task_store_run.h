// Templates of MemoryTaskStore that its sources share. Run is what every method
// goes through.
#ifndef TESTS_SUPPORT_MEMORY_TASK_STORE_RUN_H_
#define TESTS_SUPPORT_MEMORY_TASK_STORE_RUN_H_

#include "tests/support/memory_task_store.h"

namespace leasehold::scheduler {

template <typename Result, typename Call>
Result MemoryTaskStore::Run(StoreMethod method, Role role, Call call) {
  std::unique_lock<std::mutex> lock(mutex_);
  Faults& faults = faults_[static_cast<size_t>(method)];
  ++faults.calls;
  Gate& gate = gates_[static_cast<size_t>(role)];
  if (gate.closed) {
    ++gate.blocked;
    gates_changed_.notify_all();
    gates_changed_.wait(lock, [&] { return !gate.closed; });
    --gate.blocked;
  }
  if (!reachable_) return absl::UnavailableError("the test cut the database");
  if (faults.fail > 0) {
    --faults.fail;
    return faults.status;
  }
  Result result = call();
  if (faults.lose > 0) {
    --faults.lose;
    return absl::UnavailableError("the test lost the answer");
  }
  return result;
}

template <typename Want>
std::vector<LeasedTask> MemoryTaskStore::LeasedWhere(Want want) const {
  std::vector<LeasedTask> leases;
  for (const auto& [id, row] : live_) {
    if (row.phase != Phase::kLeased || !want(row)) continue;
    LeasedTask lease;
    lease.lease = {id, row.lease_number};
    lease.lane_id = row.lane_id;
    lease.holder = row.holder;
    lease.state = row.state;
    lease.lease_expire_us = row.lease_expire_us;
    lease.state_us = row.state_us;
    lease.cancel_expire_us = row.cancel_expire_us;
    leases.push_back(lease);
  }
  return leases;
}

}  // namespace leasehold::scheduler

#endif  // TESTS_SUPPORT_MEMORY_TASK_STORE_RUN_H_
