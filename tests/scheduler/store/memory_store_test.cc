// The store that unit tests use behaves like the real one.
#include "tests/scheduler/store/task_store_conformance.h"
#include "tests/support/memory_task_store.h"

namespace leasehold::scheduler {
namespace {

class MemoryHarness : public StoreHarness {
 public:
  TaskStore& store() override { return store_; }
  TaskStore& other() override { return store_; }
  void Pass(absl::Duration duration) override { store_.Advance(duration); }

 private:
  MemoryTaskStore store_;
};

std::unique_ptr<StoreHarness> MakeMemoryHarness() {
  return std::make_unique<MemoryHarness>();
}

INSTANTIATE_TEST_SUITE_P(Memory, TaskStoreTest,
                         testing::Values(MakeMemoryHarness));

}  // namespace
}  // namespace leasehold::scheduler
