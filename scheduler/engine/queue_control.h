// What people do to whole queues.
#ifndef SCHEDULER_ENGINE_QUEUE_CONTROL_H_
#define SCHEDULER_ENGINE_QUEUE_CONTROL_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Thread-safe.
class QueueControl {
 public:
  using Done = std::function<void(absl::StatusOr<QueueRow>)>;

  virtual ~QueueControl() = default;
  // No task of the queue is leased by any replica after `done`, which is called
  // exactly once, possibly before this returns, and must not block. NOT_FOUND;
  // RESOURCE_EXHAUSTED (too many such calls wait); UNAVAILABLE: the database is
  // away, or a replica has not confirmed; the queue may be paused, repeat the
  // call to be sure.
  virtual void Pause(std::string queue, Done done) = 0;
  virtual void Resume(std::string queue, Done done) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_QUEUE_CONTROL_H_
