// The one template that every method of MemoryTaskStore goes through; shared by
// its sources only.
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

}  // namespace leasehold::scheduler

#endif  // TESTS_SUPPORT_MEMORY_TASK_STORE_RUN_H_
