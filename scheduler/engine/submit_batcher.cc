#include "scheduler/engine/submit_batcher.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/concurrency/thread_pool.h"
#include "common/logging/log.h"
#include "common/status/status_macros.h"
#include "scheduler/engine/shutting_down.h"

namespace leasehold::scheduler {
namespace {

// What a task weighs besides its payload: memory, and its share of a batch.
constexpr size_t kTaskOverheadBytes = 1024;
constexpr absl::Duration kStoreLimit = absl::Seconds(30);

size_t WeightOf(const std::vector<TaskSpec>& specs) {
  size_t weight = 0;
  for (const TaskSpec& spec : specs) {
    weight += kTaskOverheadBytes + spec.payload.bytes.size();
  }
  return weight;
}

// One call's own fault, which must not be repeated with its neighbours.
bool MayBeOneCallsFault(const absl::Status& status) {
  return status.code() != absl::StatusCode::kUnavailable &&
         status.code() != absl::StatusCode::kAborted;
}

}  // namespace

SubmitBatcher::SubmitBatcher(TaskStore& store, LaneDirectory& lanes,
                             ReadyFeed& feed, const EngineBounds& bounds,
                             SchedulerMetrics& metrics, const Clock& clock,
                             DirectLeaser* direct_leaser)
    : store_(store),
      lanes_(lanes),
      feed_(feed),
      bounds_(bounds),
      metrics_(metrics),
      clock_(clock),
      direct_leaser_(direct_leaser),
      ids_(store),
      probe_("submit", kStoreLimit, clock),
      queue_(bounds.submit_queue_tasks, bounds.submit_queue_bytes),
      thread_([this] { Run(); }) {}

void SubmitBatcher::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void SubmitBatcher::Submit(std::vector<TaskSpec> specs, SubmitDone done) {
  const size_t weight = WeightOf(specs);
  Call call{std::move(specs), std::move(done), clock_.SteadyNow()};
  if (queue_.TryPush(std::move(call), weight)) return;
  // NOLINTBEGIN(bugprone-use-after-move): TryPush leaves what it refuses.
  if (queue_.closed()) {
    call.done(ShuttingDown());
    return;
  }
  metrics_.submits_refused.Increment();
  call.done(absl::ResourceExhaustedError(absl::StrCat(
      "the submit queue is full (", bounds_.submit_queue_tasks, " calls, ",
      bounds_.submit_queue_bytes >> 20, " MiB), try again later")));
  // NOLINTEND(bugprone-use-after-move)
}

void SubmitBatcher::Run() {
  NameThisThread("submit");
  std::vector<Call> calls;
  while (queue_.PopBatch(bounds_.submit_batch_tasks, bounds_.submit_batch_bytes,
                         &calls)) {
    LoopProbe::Round round(probe_);
    StoreBatch(std::move(calls));
  }
}

void SubmitBatcher::StoreBatch(std::vector<Call> calls) {
  const SteadyTime now = clock_.SteadyNow();
  Batch batch;
  batch.calls.reserve(calls.size());
  batch.tasks.reserve(calls.size());
  // The first call that finds the database away speaks for those after it:
  // each would wait for its own timeout.
  absl::Status away;
  for (Call& call : calls) {
    if (!away.ok()) {
      call.done(away);
      continue;
    }
    metrics_.submit_wait.Observe(
        absl::ToDoubleSeconds(absl::FromChrono(now - call.since)));
    absl::StatusOr<std::vector<NewTask>> tasks = Prepare(std::move(call.specs));
    if (!tasks.ok()) {
      if (absl::IsUnavailable(tasks.status())) away = tasks.status();
      call.done(std::move(tasks).status());
      continue;
    }
    batch.tasks.push_back(*std::move(tasks));
    batch.calls.push_back(std::move(call));
  }
  if (batch.calls.empty()) return;
  const std::unique_ptr<DirectLeaseBatch> direct =
      direct_leaser_ == nullptr ? nullptr : direct_leaser_->Begin();
  for (std::vector<NewTask>& tasks : batch.tasks) {
    batch.leases.emplace_back(tasks.size());
    for (size_t i = 0; direct != nullptr && i < tasks.size(); ++i) {
      std::optional<DirectLease>& lease = batch.leases.back()[i];
      lease = direct->Reserve(tasks[i].lane_id, tasks[i].spec);
      if (!lease.has_value()) continue;
      tasks[i].holder = lease->holder;
      tasks[i].lease_us = lease->lease_us;
    }
  }
  Commit(std::move(batch), direct.get());
}

absl::StatusOr<std::vector<NewTask>> SubmitBatcher::Prepare(
    std::vector<TaskSpec> specs) {
  std::vector<LaneName> names;
  names.reserve(specs.size());
  for (const TaskSpec& spec : specs) names.emplace_back(spec.queue, spec.type);
  LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<LaneId> lanes,
                             lanes_.Intern(names));
  LEASEHOLD_ASSIGN_OR_RETURN(TaskId id,
                             ids_.Take(static_cast<int64_t>(specs.size())));
  std::vector<NewTask> tasks(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    tasks[i].id = id++;
    tasks[i].lane_id = lanes[i];
    if (!specs[i].idempotency_key.empty()) {
      tasks[i].content_hash = ContentHash(specs[i]);
    }
    tasks[i].spec = std::move(specs[i]);
  }
  return tasks;
}

void SubmitBatcher::Commit(Batch batch, DirectLeaseBatch* direct) {
  auto outcomes = store_.SubmitTasks(batch.tasks);
  if (!outcomes.ok() && batch.calls.size() > 1 &&
      MayBeOneCallsFault(outcomes.status())) {
    LogWarning("submit batch failed, storing its calls one by one",
               {{"calls", batch.calls.size()},
                {"error", outcomes.status().ToString()}});
    for (size_t i = 0; i < batch.calls.size(); ++i) {
      Batch one;
      one.calls.push_back(std::move(batch.calls[i]));
      one.tasks.push_back(std::move(batch.tasks[i]));
      one.leases.push_back(std::move(batch.leases[i]));
      Commit(std::move(one), direct);
    }
    return;
  }
  // Passed on first: a task that can run should not wait for its batch's
  // answers.
  if (outcomes.ok()) {
    PassOn(batch, *outcomes, direct);
  } else {
    for (const auto& leases : batch.leases) CancelLeases(leases, direct);
  }
  for (size_t i = 0; i < batch.calls.size(); ++i) {
    if (outcomes.ok()) {
      batch.calls[i].done(std::move((*outcomes)[i]));
    } else {
      batch.calls[i].done(outcomes.status());
    }
  }
}

void SubmitBatcher::PassOn(
    Batch& batch,
    const std::vector<absl::StatusOr<std::vector<SubmittedTask>>>& outcomes,
    DirectLeaseBatch* direct) {
  std::vector<OfferedTask> offers;
  size_t stored = 0;
  for (size_t c = 0; c < batch.calls.size(); ++c) {
    if (!outcomes[c].ok()) {
      CancelLeases(batch.leases[c], direct);
      continue;
    }
    for (size_t i = 0; i < batch.tasks[c].size(); ++i) {
      NewTask& task = batch.tasks[c][i];
      const SubmittedTask& submitted = (*outcomes[c])[i];
      const std::optional<DirectLease>& lease = batch.leases[c][i];
      if (submitted.existed) {
        if (lease.has_value()) direct->Cancel(*lease);
        continue;
      }
      ++stored;
      if (lease.has_value()) {
        direct->Commit(*lease, submitted.id, task.lane_id,
                       std::move(task.spec));
        continue;
      }
      offers.push_back(
          {.task = {.id = submitted.id,
                    .lane_id = task.lane_id,
                    .priority = task.spec.priority,
                    .run_us = submitted.run_us},
           .spec = std::make_unique<TaskSpec>(std::move(task.spec))});
    }
  }
  metrics_.tasks_submitted.Increment(static_cast<double>(stored));
  metrics_.submit_batch_tasks.Observe(static_cast<double>(stored));
  if (direct != nullptr) direct->Send();
  if (!offers.empty()) feed_.Offer(std::move(offers));
}

void SubmitBatcher::CancelLeases(
    const std::vector<std::optional<DirectLease>>& leases,
    DirectLeaseBatch* direct) {
  for (const std::optional<DirectLease>& lease : leases) {
    if (lease.has_value()) direct->Cancel(*lease);
  }
}

}  // namespace leasehold::scheduler
