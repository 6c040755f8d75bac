#include "scheduler/store/metered_task_store.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::scheduler {
namespace {

class Method {
 public:
  Method(MetricRegistry& metrics, std::string name)
      : metrics_(metrics),
        name_(std::move(name)),
        seconds_(metrics.AddHistogram(
            "leasehold_sql_seconds",
            "Time of a store call with its repetitions. Slow calls of one "
            "method point at locks or disk",
            LatencyBuckets(), {{"method", name_}})),
        batch_size_(metrics.AddHistogram(
            "leasehold_sql_batch_size",
            "Items in a store call. Large batches mean high load, not trouble",
            SizeBuckets(), {{"method", name_}})) {}

  void Observe(absl::Duration took, size_t items, const absl::Status& status) {
    seconds_.Observe(took);
    if (items > 0) batch_size_.Observe(static_cast<double>(items));
    if (status.ok()) return;
    metrics_
        .AddCounter("leasehold_sql_errors_total",
                    "Store calls that failed. UNAVAILABLE: the database is "
                    "away; ABORTED: too many deadlocks; else look at the log",
                    {{"method", name_},
                     {"code", absl::StatusCodeToString(status.code())}})
        .Increment();
  }

 private:
  MetricRegistry& metrics_;
  const std::string name_;
  Histogram seconds_;
  Histogram batch_size_;
};

absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

class MeteredTaskStore : public TaskStore {
 public:
  MeteredTaskStore(std::unique_ptr<TaskStore> store, MetricRegistry& metrics,
                   const Clock& clock)
      : store_(std::move(store)), metrics_(metrics), clock_(clock) {}

 private:
  template <typename Call>
  auto Metered(Method& method, size_t items, Call call) {
    const SteadyTime start = clock_.SteadyNow();
    auto result = call();
    method.Observe(absl::FromChrono(clock_.SteadyNow() - start), items,
                   StatusOf(result));
    return result;
  }

 public:
  absl::StatusOr<int64_t> NowUs() override {
    return Metered(now_, 0, [&] { return store_->NowUs(); });
  }
  absl::StatusOr<TaskId> ReserveIds(int64_t count) override {
    return Metered(reserve_ids_, 0, [&] { return store_->ReserveIds(count); });
  }
  absl::StatusOr<std::vector<LaneId>> InternLanes(
      absl::Span<const std::pair<std::string, std::string>> names) override {
    return Metered(intern_lanes_, names.size(),
                   [&] { return store_->InternLanes(names); });
  }
  absl::StatusOr<std::vector<Lane>> ListLanes() override {
    return Metered(list_lanes_, 0, [&] { return store_->ListLanes(); });
  }
  absl::StatusOr<std::vector<QueueRow>> ListQueues() override {
    return Metered(list_queues_, 0, [&] { return store_->ListQueues(); });
  }
  absl::StatusOr<QueueRow> SetQueuePaused(const std::string& name,
                                          bool paused) override {
    return Metered(set_queue_, 0,
                   [&] { return store_->SetQueuePaused(name, paused); });
  }
  absl::StatusOr<std::vector<ReplicaRow>> TouchReplica(
      const ReplicaRow& replica, int64_t alive_us) override {
    return Metered(touch_replica_, 0,
                   [&] { return store_->TouchReplica(replica, alive_us); });
  }
  absl::Status RemoveReplica(const std::string& id) override {
    return store_->RemoveReplica(id);
  }
  absl::StatusOr<HolderId> InternHolder(
      const std::string& executor_id, const std::string& incarnation) override {
    return Metered(intern_holder_, 0, [&] {
      return store_->InternHolder(executor_id, incarnation);
    });
  }
  absl::StatusOr<std::vector<LeasedTask>> ListLeases(HolderId holder) override {
    return Metered(list_leases_, 0, [&] { return store_->ListLeases(holder); });
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
  SubmitTasks(absl::Span<const std::vector<NewTask>> calls) override {
    size_t tasks = 0;
    for (const auto& call : calls) tasks += call.size();
    return Metered(submit_tasks_, tasks,
                   [&] { return store_->SubmitTasks(calls); });
  }
  absl::StatusOr<std::vector<ReadyHead>> ListReadyHeads() override {
    return Metered(list_ready_heads_, 0,
                   [&] { return store_->ListReadyHeads(); });
  }
  absl::StatusOr<ReadyPage> ScanReady(LaneId lane_id, int priority,
                                      int64_t after_run_us, TaskId after_id,
                                      int64_t until_us, int limit,
                                      const IdShare& share) override {
    return Metered(scan_ready_, 0, [&] {
      return store_->ScanReady(lane_id, priority, after_run_us, after_id,
                               until_us, limit, share);
    });
  }
  absl::StatusOr<ClaimResult> ClaimLeases(
      absl::Span<const Claim> claims) override {
    return Metered(claim_leases_, claims.size(),
                   [&] { return store_->ClaimLeases(claims); });
  }
  absl::StatusOr<std::vector<LeaseBody>> LoadLeaseBodies(
      absl::Span<const TaskId> ids, int64_t max_bytes) override {
    return Metered(load_lease_bodies_, ids.size(),
                   [&] { return store_->LoadLeaseBodies(ids, max_bytes); });
  }
  absl::StatusOr<std::vector<RenewOutcome>> RenewLeases(
      absl::Span<const Renewal> renewals) override {
    return Metered(renew_leases_, renewals.size(),
                   [&] { return store_->RenewLeases(renewals); });
  }
  absl::Status SaveLeaseUpdates(
      absl::Span<const LeaseUpdate> updates) override {
    return Metered(save_lease_updates_, updates.size(),
                   [&] { return store_->SaveLeaseUpdates(updates); });
  }
  absl::Status ChangeTasks(
      absl::Span<const TaskId> ids,
      absl::FunctionRef<Change(size_t, const TaskView&)> decide,
      Role role) override {
    return Metered(change_tasks_, ids.size(),
                   [&] { return store_->ChangeTasks(ids, decide, role); });
  }
  absl::StatusOr<std::vector<LeasedTask>> FindExpiredLeases(
      int limit) override {
    return Metered(find_expired_leases_, 0,
                   [&] { return store_->FindExpiredLeases(limit); });
  }
  absl::StatusOr<std::vector<TaskId>> FindExpiredTasks(int limit) override {
    return Metered(find_expired_tasks_, 0,
                   [&] { return store_->FindExpiredTasks(limit); });
  }
  absl::StatusOr<std::vector<TaskId>> FindOverdueCancels(int limit) override {
    return Metered(find_overdue_cancels_, 0,
                   [&] { return store_->FindOverdueCancels(limit); });
  }
  absl::StatusOr<std::vector<TaskRecord>> GetTasks(
      absl::Span<const TaskId> ids, const ReadOptions& options) override {
    return Metered(get_tasks_, ids.size(),
                   [&] { return store_->GetTasks(ids, options); });
  }
  absl::StatusOr<ListPage> ListTasks(const ListFilter& filter, TaskId below,
                                     int page_size,
                                     int64_t max_bytes) override {
    return Metered(list_tasks_, 0, [&] {
      return store_->ListTasks(filter, below, page_size, max_bytes);
    });
  }
  absl::StatusOr<std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>>
  CountLiveTasks() override {
    return Metered(count_live_tasks_, 0,
                   [&] { return store_->CountLiveTasks(); });
  }

 private:
  const std::unique_ptr<TaskStore> store_;
  MetricRegistry& metrics_;
  const Clock& clock_;

  Method now_{metrics_, "now"};
  Method reserve_ids_{metrics_, "reserve_ids"};
  Method intern_lanes_{metrics_, "intern_lanes"};
  Method list_lanes_{metrics_, "list_lanes"};
  Method list_queues_{metrics_, "list_queues"};
  Method set_queue_{metrics_, "set_queue_paused"};
  Method touch_replica_{metrics_, "touch_replica"};
  Method intern_holder_{metrics_, "intern_holder"};
  Method list_leases_{metrics_, "list_leases"};
  Method submit_tasks_{metrics_, "submit_tasks"};
  Method list_ready_heads_{metrics_, "list_ready_heads"};
  Method scan_ready_{metrics_, "scan_ready"};
  Method claim_leases_{metrics_, "claim_leases"};
  Method load_lease_bodies_{metrics_, "load_lease_bodies"};
  Method renew_leases_{metrics_, "renew_leases"};
  Method save_lease_updates_{metrics_, "save_lease_updates"};
  Method change_tasks_{metrics_, "change_tasks"};
  Method find_expired_leases_{metrics_, "find_expired_leases"};
  Method find_expired_tasks_{metrics_, "find_expired_tasks"};
  Method find_overdue_cancels_{metrics_, "find_overdue_cancels"};
  Method get_tasks_{metrics_, "get_tasks"};
  Method list_tasks_{metrics_, "list_tasks"};
  Method count_live_tasks_{metrics_, "count_live_tasks"};
};

}  // namespace

std::unique_ptr<TaskStore> MeterTaskStore(std::unique_ptr<TaskStore> store,
                                          MetricRegistry& metrics,
                                          const Clock& clock) {
  return std::make_unique<MeteredTaskStore>(std::move(store), metrics, clock);
}

std::function<void(absl::string_view, absl::string_view)> CountRetries(
    MetricRegistry& metrics) {
  return [&metrics](absl::string_view method, absl::string_view cause) {
    metrics
        .AddCounter(
            "leasehold_sql_retries_total",
            "Transactions that ran again after a deadlock, a lock wait "
            "or a key that somebody else took. A few are normal",
            {{"method", std::string(method)}, {"cause", std::string(cause)}})
        .Increment();
  };
}

}  // namespace leasehold::scheduler
