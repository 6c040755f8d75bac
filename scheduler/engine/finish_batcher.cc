#include "scheduler/engine/finish_batcher.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "common/concurrency/thread_pool.h"
#include "common/logging/log.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kReportOverheadBytes = 256;
constexpr absl::Duration kWriteLimit = absl::Seconds(30);

size_t WeightOf(const Report& report) {
  size_t weight = kReportOverheadBytes;
  if (const auto* payload = std::get_if<Payload>(&report.outcome)) {
    weight += payload->bytes.size();
  } else if (const auto* error = std::get_if<TaskError>(&report.outcome)) {
    weight += error->message.size();
  }
  return weight;
}

// The database, not the report, is why it failed: the executor repeats it.
bool PassesByItself(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kAborted;
}

// What is recorded when the database takes everything but this outcome:
// recording a failure must not be able to fail.
Report Unstorable(const Report& report) {
  scheduler::Report failure = report;
  failure.refused = true;
  failure.outcome =
      TaskError{.error_class = ErrorClass::kNonRetryable,
                .code = "INVALID_RESULT",
                .message =
                    "the database refused to store what the handler "
                    "reported; the scheduler's log says why"};
  return failure;
}

}  // namespace

FinishBatcher::FinishBatcher(TaskChanger& changer, const EngineBounds& bounds,
                             SchedulerMetrics& metrics, const Clock& clock)
    : changer_(changer),
      bounds_(bounds),
      metrics_(metrics),
      clock_(clock),
      probe_("finish", kWriteLimit, clock),
      queue_(bounds.finish_queue_reports, bounds.finish_queue_bytes),
      thread_([this] { Run(); }) {}

void FinishBatcher::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void FinishBatcher::Report(std::vector<scheduler::Report> reports,
                           const std::shared_ptr<ReportSource>& source) {
  const SteadyTime now = clock_.SteadyNow();
  std::vector<DecidedReport> refused;
  for (scheduler::Report& report : reports) {
    const size_t weight = WeightOf(report);
    const LeaseRef lease = report.lease;
    if (!queue_.TryPush(Item{std::move(report), source, now}, weight)) {
      metrics_.reports_try_again.Increment();
      refused.push_back({lease, ReportDisposition::kTryAgain});
    }
  }
  if (!refused.empty()) source->OnReportsDecided(std::move(refused));
}

void FinishBatcher::Run() {
  NameThisThread("finish");
  std::vector<Item> items;
  while (queue_.PopBatch(bounds_.finish_batch_reports,
                         bounds_.finish_batch_bytes, &items)) {
    LoopProbe::Round round(probe_);
    const SteadyTime now = clock_.SteadyNow();
    for (const Item& item : items) {
      metrics_.finish_wait.Observe(
          absl::ToDoubleSeconds(absl::FromChrono(now - item.since)));
    }
    while (!items.empty()) items = WriteDistinct(std::move(items));
  }
}

std::vector<FinishBatcher::Item> FinishBatcher::WriteDistinct(
    std::vector<Item> items) {
  absl::flat_hash_set<TaskId> seen;
  std::vector<Item> now;
  std::vector<Item> later;
  now.reserve(items.size());
  for (Item& item : items) {
    const bool first = seen.insert(item.report.lease.task_id).second;
    (first ? now : later).push_back(std::move(item));
  }
  std::sort(now.begin(), now.end(), [](const Item& a, const Item& b) {
    return a.report.lease.task_id < b.report.lease.task_id;
  });
  Write(std::move(now));
  return later;
}

void FinishBatcher::Write(std::vector<Item> items) {
  std::vector<ReportDisposition> dispositions(items.size());
  const absl::Status status = TryWrite(items, &dispositions);
  if (status.ok() || PassesByItself(status)) {
    if (!status.ok()) {
      std::fill(dispositions.begin(), dispositions.end(),
                ReportDisposition::kTryAgain);
    }
    metrics_.finish_batch_reports.Observe(static_cast<double>(items.size()));
    Answer(items, dispositions);
    return;
  }
  LogError("finish batch failed",
           {{"reports", items.size()}, {"error", status}});
  if (items.size() > 1) {
    for (Item& item : items) {
      std::vector<Item> one;
      one.push_back(std::move(item));
      Write(std::move(one));
    }
    return;
  }
  if (items[0].report.refused) {  // Even the failure could not be stored.
    Answer(items, {ReportDisposition::kTryAgain});
    return;
  }
  items[0].report = Unstorable(items[0].report);
  Write(std::move(items));
}

absl::Status FinishBatcher::TryWrite(
    const std::vector<Item>& items,
    std::vector<ReportDisposition>* dispositions) {
  std::vector<TaskId> ids;
  ids.reserve(items.size());
  for (const Item& item : items) ids.push_back(item.report.lease.task_id);
  return changer_.ChangeTasks(
      ids, /*reported=*/true, [&](size_t i, const TaskView& task) {
        ReportDecision decision = DecideReport(
            task, items[i].report, absl::Uniform<double>(random_, 0.0, 1.0));
        (*dispositions)[i] = decision.disposition;
        if (decision.change.update.has_value()) {
          decision.change.checkpoint = items[i].report.checkpoint;
        }
        return std::move(decision.change);
      });
}

void FinishBatcher::Answer(const std::vector<Item>& items,
                           const std::vector<ReportDisposition>& dispositions) {
  // Few sources have many reports each.
  std::vector<std::pair<ReportSource*, std::vector<DecidedReport>>> by_source;
  for (size_t i = 0; i < items.size(); ++i) {
    ReportSource* source = items[i].source.get();
    auto it = std::find_if(by_source.begin(), by_source.end(),
                           [&](const auto& s) { return s.first == source; });
    if (it == by_source.end()) {
      it = by_source.insert(by_source.end(), {source, {}});
    }
    it->second.push_back({items[i].report.lease, dispositions[i]});
    Count(dispositions[i]);
  }
  for (auto& [source, decided] : by_source) {
    source->OnReportsDecided(std::move(decided));
  }
}

void FinishBatcher::Count(ReportDisposition disposition) {
  switch (disposition) {
    case ReportDisposition::kRecorded:
      return metrics_.reports_recorded.Increment();
    case ReportDisposition::kDuplicate:
      return metrics_.reports_duplicate.Increment();
    case ReportDisposition::kStale:
      return metrics_.reports_stale.Increment();
    case ReportDisposition::kRefused:
      return metrics_.reports_refused.Increment();
    case ReportDisposition::kTryAgain:
    case ReportDisposition::kUnspecified:
      return metrics_.reports_try_again.Increment();
  }
}

}  // namespace leasehold::scheduler
