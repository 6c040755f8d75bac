#include "scheduler/engine/queue_pauser.h"

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/logging/log.h"
#include "common/status/status_macros.h"
#include "scheduler/engine/shutting_down.h"

namespace leasehold::scheduler {
namespace {

constexpr int kThreads = 2;
constexpr size_t kMaxWaiting = 100;
// How soon a call that waits for replicas notices that the scheduler stops.
constexpr absl::Duration kStopCheck = absl::Milliseconds(200);

}  // namespace

QueuePauser::QueuePauser(TaskStore& store, LaneDirectory& lanes,
                         const ReplicaBoard& board, absl::Duration patience)
    : store_(store),
      lanes_(lanes),
      board_(board),
      patience_(patience),
      pool_("queues", kThreads, kMaxWaiting) {}

void QueuePauser::Pause(std::string queue, Done done) {
  Run(std::move(queue), true, done);
}

void QueuePauser::Resume(std::string queue, Done done) {
  Run(std::move(queue), false, done);
}

void QueuePauser::Stop() {
  stopped_ = true;
  pool_.Shutdown();
}

void QueuePauser::Run(std::string queue, bool paused, const Done& done) {
  if (stopped_) return done(ShuttingDown());
  const bool queued = pool_.TryRun([this, queue = std::move(queue), paused,
                                    done] { done(SetPaused(queue, paused)); });
  if (!queued) {
    done(absl::ResourceExhaustedError(
        "too many changes of queues are waiting, try again later"));
  }
}

absl::StatusOr<QueueRow> QueuePauser::SetPaused(const std::string& queue,
                                                bool paused) {
  LEASEHOLD_ASSIGN_OR_RETURN(QueueRow row,
                             store_.SetQueuePaused(queue, paused));
  lanes_.Note(row);
  LogInfo(paused ? "queue paused" : "queue resumed",
          {{"queue", queue}, {"version", row.version}});
  if (paused) LEASEHOLD_RETURN_IF_ERROR(AwaitReplicas(row));
  return row;
}

absl::Status QueuePauser::AwaitReplicas(const QueueRow& queue) {
  // What the board showed before the change may lack a replica that came since.
  const int64_t seen = board_.updates();
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience_);
  while (true) {
    const int64_t updates = board_.updates();
    const bool news = updates > seen;
    const std::vector<std::string> behind = board_.Behind(queue.version);
    if (news && behind.empty()) return absl::OkStatus();
    if (stopped_) return ShuttingDown();
    if (std::chrono::steady_clock::now() >= until) {
      return absl::UnavailableError(absl::StrCat(
          "queue \"", queue.name, "\": is paused, but not confirmed by ",
          behind.empty() ? board_.own_id() : absl::StrJoin(behind, ", "),
          "; repeat the call to be sure"));
    }
    board_.WaitForNews(updates, kStopCheck);
  }
}

}  // namespace leasehold::scheduler
