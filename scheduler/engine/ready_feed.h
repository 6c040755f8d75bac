// Where tasks that have just been stored are offered for leasing. The
// dispatcher's index implements it.
#ifndef SCHEDULER_ENGINE_READY_FEED_H_
#define SCHEDULER_ENGINE_READY_FEED_H_

#include <memory>
#include <vector>

#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

struct OfferedTask {
  ReadyTask task;
  std::unique_ptr<TaskSpec> spec;  // May be null: it is read when needed.
};

class ReadyFeed {
 public:
  virtual ~ReadyFeed() = default;
  // What is offered is a hint; it may be dropped, and is then found in the
  // database. Thread-safe; does not block.
  virtual void Offer(std::vector<OfferedTask> tasks) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_READY_FEED_H_
