// What happens between hello and welcome: names become ids, older sessions of
// the executor end, and the leases that the database gives this incarnation are
// compared with those that it names.
#ifndef SCHEDULER_SESSION_SESSION_OPENER_H_
#define SCHEDULER_SESSION_SESSION_OPENER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/concurrency/thread_pool.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/task_changer.h"
#include "scheduler/session/executor_session.h"
#include "scheduler/session/session_registry.h"

namespace leasehold::scheduler {

// Thread-safe. Opens on threads of its own, since it waits for the database.
class SessionOpener {
 public:
  SessionOpener(TaskStore& store, TaskChanger& changer, LaneDirectory& lanes,
                SessionRegistry& registry, size_t max_waiting);

  // Welcomes the session, or closes it with the reason. Does not block.
  void Open(const std::shared_ptr<ExecutorSession>& session);

  // Opens what waits and joins. Idempotent.
  void Stop() { pool_.Shutdown(); }

 private:
  // Names become ids.
  absl::Status Identify(const std::shared_ptr<ExecutorSession>& session);
  // Settles the leases of older sessions and makes the session ready.
  absl::Status Welcome(const std::shared_ptr<ExecutorSession>& session);
  // Leases that hello does not name go back.
  absl::Status GiveBackUnnamed(const HelloMessage& hello, HolderId holder);
  // Renews those that it names, and says what became of each.
  absl::StatusOr<std::vector<ReportAck>> RenewNamed(const HelloMessage& hello,
                                                    HolderId holder);

  TaskStore& store_;
  TaskChanger& changer_;
  LaneDirectory& lanes_;
  SessionRegistry& registry_;
  ThreadPool pool_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_SESSION_OPENER_H_
