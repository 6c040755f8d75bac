// Ids for new tasks, from blocks that this replica has reserved.
#ifndef SCHEDULER_ENGINE_ID_ALLOCATOR_H_
#define SCHEDULER_ENGINE_ID_ALLOCATOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/status/status_macros.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// For one thread. What is left of a block when the process ends is lost, which
// costs nothing but numbers.
class IdAllocator {
 public:
  explicit IdAllocator(TaskStore& store) : store_(store) {}

  // The first of `count` consecutive ids; at most kBlock. Now and then asks the
  // database, and blocks then.
  absl::StatusOr<TaskId> Take(int64_t count) {
    if (end_ - next_ < count) {
      LEASEHOLD_ASSIGN_OR_RETURN(next_, store_.ReserveIds(kBlock));
      end_ = next_ + kBlock;
    }
    const TaskId first = next_;
    next_ += count;
    return first;
  }

  static constexpr int64_t kBlock = 10'000;

 private:
  TaskStore& store_;
  TaskId next_ = 0;
  TaskId end_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_ID_ALLOCATOR_H_
