// What sessions work with: one struct, so that the object graph is built in one
// place and tests can see what a session needs.
#ifndef SCHEDULER_SESSION_SESSION_SERVICES_H_
#define SCHEDULER_SESSION_SESSION_SERVICES_H_

#include <functional>
#include <memory>

#include "common/concurrency/thread_pool.h"
#include "scheduler/engine/db_clock.h"
#include "scheduler/engine/finish_batcher.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/lease_renewer.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/update_writer.h"
#include "scheduler/session/messages.h"

namespace leasehold::scheduler {

class ExecutorSession;

struct SessionServices {
  const LeaseTimes& times;
  const DbClock& clock;
  FinishBatcher& finisher;
  LeaseRenewer& renewer;
  UpdateWriter& updates;
  // The session has said hello: look it up, welcome it, make it ready. Must not
  // block.
  std::function<void(std::shared_ptr<ExecutorSession>)> open;
  // It has more room for leases than before.
  std::function<void()> wake_dispatcher;
  // Its stream is over.
  std::function<void(const std::shared_ptr<ExecutorSession>&)> ended;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_SESSION_SERVICES_H_
