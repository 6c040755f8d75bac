#include "scheduler/server/core.h"

#include <utility>

#include "common/status/status_macros.h"
#include "scheduler/dispatch/dispatcher.h"
#include "scheduler/engine/control_batcher.h"
#include "scheduler/engine/db_clock.h"
#include "scheduler/engine/finish_batcher.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/lease_renewer.h"
#include "scheduler/engine/polling_watch_hub.h"
#include "scheduler/engine/queue_pauser.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/submit_batcher.h"
#include "scheduler/engine/task_changer.h"
#include "scheduler/engine/task_reader_pool.h"
#include "scheduler/engine/update_writer.h"
#include "scheduler/maintenance/deadline_patrol.h"
#include "scheduler/maintenance/lease_reaper.h"
#include "scheduler/maintenance/periodic_loop.h"
#include "scheduler/maintenance/replica_keeper.h"
#include "scheduler/session/session_opener.h"
#include "scheduler/session/session_registry.h"

namespace leasehold::scheduler {
namespace {

// Twice in the time that an executor needs to notice, so that an expired lease
// goes on within half a second.
constexpr absl::Duration kReapPause = absl::Milliseconds(500);
constexpr absl::Duration kKeeperPause = absl::Seconds(1);
constexpr absl::Duration kPatrolPause = absl::Seconds(1);
// Started leases are looked for this often; with the delay of half a second
// before they count, they are written within the second of the contract.
constexpr absl::Duration kLazySweep = absl::Milliseconds(300);

// Members are in the order in which they are built: each uses only those above
// it, except through the hooks, which run once everything stands.
class Core final : public SchedulerCore {
 public:
  Core(const EngineOptions& options, std::unique_ptr<TaskStore> store,
       int64_t now_us, MetricRegistry& registry, const Clock& clock)
      : options_(options),
        store_(std::move(store)),
        metrics_(registry),
        db_clock_(clock, now_us),
        lanes_(*store_, options_.leases),
        changer_(*store_),
        board_(options_.scheduler_id),
        sessions_(
            options_.bounds.sessions,
            {.serve = [this](const auto& l) { dispatcher_.index().Serve(l); },
             .unserve =
                 [this](const auto& l) { dispatcher_.index().Unserve(l); }}),
        dispatcher_(
            *store_, changer_, lanes_, db_clock_, options_.bounds,
            [this] { return Targets(); }, metrics_),
        watch_hub_(*store_, options_.bounds, clock),
        submitter_(*store_, lanes_, dispatcher_.index(), options_.bounds,
                   metrics_, clock, &dispatcher_.direct_leases()),
        finisher_(changer_, options_.bounds, metrics_, clock),
        renewer_(
            *store_, kLazySweep, [this] { return Renewals(); }, metrics_,
            clock),
        updates_(
            *store_, [this](auto ids) { watch_hub_.OnTouched(ids); }, clock),
        reader_(*store_, options_.bounds, metrics_),
        control_(*store_, changer_, lanes_, clock),
        queues_(*store_, lanes_, board_),
        opener_(*store_, changer_, lanes_, sessions_, options_.bounds.sessions),
        session_services_{
            .times = options_.leases,
            .clock = db_clock_,
            .finisher = finisher_,
            .renewer = renewer_,
            .updates = updates_,
            .open = [this](auto session) { opener_.Open(std::move(session)); },
            .wake_dispatcher = [this] { dispatcher_.Wake(); },
            .ended = [this](auto& s) { sessions_.OnSessionEnded(s); }},
        reaper_(
            {}, *store_, changer_, lanes_,
            [this](HolderId holder, int64_t since_us) {
              return sessions_.HeardSince(holder, since_us);
            },
            metrics_, clock),
        patrol_({}, *store_, changer_),
        keeper_(
            {.address = options_.address, .start_us = now_us}, *store_, lanes_,
            board_, {&dispatcher_.probe(), &submitter_.probe()},
            [this] {
              return static_cast<int>(sessions_.ReadySessions().size());
            },
            clock),
        clock_(clock) {
    RegisterGauges(registry);
  }

  ~Core() override { Stop(); }

  // Listeners first, then the threads that cause changes.
  absl::Status StartLoops() {
    LEASEHOLD_RETURN_IF_ERROR(lanes_.Load());
    LEASEHOLD_RETURN_IF_ERROR(keeper_.RunOnce());
    sessions_.SetServices(&session_services_);
    dispatcher_.Start();
    reap_loop_ = std::make_unique<PeriodicLoop>(
        "reap", kReapPause, [this] { return reaper_.RunOnce(); }, clock_);
    patrol_loop_ = std::make_unique<PeriodicLoop>(
        "patrol", kPatrolPause,
        [this] {
          LEASEHOLD_RETURN_IF_ERROR(SyncClock());
          return patrol_.RunOnce();
        },
        clock_);
    keeper_loop_ = std::make_unique<PeriodicLoop>(
        "replica", kKeeperPause,
        [this] {
          LEASEHOLD_RETURN_IF_ERROR(keeper_.RunOnce());
          dispatcher_.index().SetShare(board_.Share());
          return absl::OkStatus();
        },
        clock_);
    return absl::OkStatus();
  }

  void AddListeners() {
    changer_.AddListener(&dispatcher_.index());
    changer_.AddListener(&watch_hub_);
    changer_.AddListener(&sessions_);
    changer_.AddListener(&ended_counter_);
  }

  TaskSubmitter& submitter() override { return submitter_; }
  TaskReader& reader() override { return reader_; }
  TaskControl& control() override { return control_; }
  QueueControl& queues() override { return queues_; }
  TaskWatchHub& watch_hub() override { return watch_hub_; }
  SessionHost& sessions() override { return sessions_; }

  std::vector<LoopAge> LoopAges() const override {
    std::vector<LoopAge> ages;
    for (const LoopProbe* probe :
         {&submitter_.probe(), &dispatcher_.probe(), &finisher_.probe(),
          &renewer_.probe(), &updates_.probe(), &watch_hub_.probe(),
          &control_.probe(), &reap_loop_->probe(), &patrol_loop_->probe(),
          &keeper_loop_->probe()}) {
      ages.push_back({probe->name(), probe->Age(), probe->limit()});
    }
    return ages;
  }

  bool DatabaseUp() const override { return reaper_.database_up(); }

  void Drain(absl::Duration limit) override {
    sessions_.Drain(limit / 2);
    submitter_.Stop();
    control_.Stop();
    queues_.Stop();
    finisher_.Stop();
    watch_hub_.Stop();
    reader_.Stop();
  }

  // What can change tasks first, then what is told of changes.
  void Stop() override {
    if (std::exchange(stopped_, true)) return;
    reap_loop_.reset();
    patrol_loop_.reset();
    const bool kept = keeper_loop_ != nullptr;
    keeper_loop_.reset();
    sessions_.Drain(absl::ZeroDuration());
    opener_.Stop();
    submitter_.Stop();
    control_.Stop();
    dispatcher_.Stop();
    finisher_.Stop();
    renewer_.Stop();
    updates_.Stop();
    watch_hub_.Stop();
    reader_.Stop();
    queues_.Stop();
    if (kept) keeper_.Leave();
  }

 private:
  // Counts how tasks end and how often they go back.
  class EndedCounter : public ChangeListener {
   public:
    explicit EndedCounter(SchedulerMetrics& metrics) : metrics_(metrics) {}
    void OnChanged(absl::Span<const CommittedChange> changes) override {
      for (const CommittedChange& change : changes) Count(change);
    }

   private:
    void Count(const CommittedChange& change) {
      switch (change.ended_as) {
        case TaskState::kSucceeded:
          return metrics_.tasks_succeeded.Increment();
        case TaskState::kFailed:
          return metrics_.tasks_failed.Increment();
        case TaskState::kCancelled:
          return metrics_.tasks_cancelled.Increment();
        default:
          if (change.lease_number != 0 && change.after.has_value() &&
              change.after->phase == Phase::kWaiting) {
            metrics_.tasks_retried.Increment();
          }
      }
    }
    SchedulerMetrics& metrics_;
  };

  Dispatcher::Targets Targets() const {
    if (!board_.Current(clock_.SteadyNow())) return {};
    const auto sessions = sessions_.ReadySessions();
    return {sessions.begin(), sessions.end()};
  }

  std::vector<std::shared_ptr<RenewalSource>> Renewals() const {
    const auto sessions = sessions_.ReadySessions();
    return {sessions.begin(), sessions.end()};
  }

  absl::Status SyncClock() {
    const SteadyTime sent = clock_.SteadyNow();
    LEASEHOLD_ASSIGN_OR_RETURN(const int64_t now_us, store_->NowUs());
    db_clock_.Observe(sent, now_us);
    return absl::OkStatus();
  }

  void RegisterGauges(MetricRegistry& registry) {
    const auto gauge = [&](const char* name, const char* help,
                           std::function<double()> read) {
      gauges_.push_back(registry.AddCallbackGauge(name, help, std::move(read)));
    };
    gauge("leasehold_ready_index_tasks",
          "Waiting tasks that this replica has at hand. Bounded; the rest of "
          "the backlog is in the database alone",
          [this] { return static_cast<double>(dispatcher_.index().size()); });
    gauge("leasehold_ready_index_bytes", "Payloads kept with those tasks",
          [this] {
            return static_cast<double>(dispatcher_.index().spec_bytes());
          });
    gauge("leasehold_sessions", "Executors connected to this replica",
          [this] { return static_cast<double>(sessions_.session_count()); });
    gauge("leasehold_slots",
          "Handlers that the executors connected here can run at once", [this] {
            double slots = 0;
            for (const auto& s : sessions_.ReadySessions()) slots += s->slots();
            return slots;
          });
    gauge("leasehold_leases_held",
          "Leases that the executors connected here hold. At the sum of their "
          "max_leases they take no more",
          [this] {
            double held = 0;
            for (const auto& s : sessions_.ReadySessions()) {
              held += s->held_leases();
            }
            return held;
          });
    gauge("leasehold_database_up",
          "1 while the database answers. 0: submits fail, executors work on",
          [this] { return reaper_.database_up() ? 1.0 : 0.0; });
  }

  const EngineOptions options_;
  const std::unique_ptr<TaskStore> store_;
  SchedulerMetrics metrics_;
  DbClock db_clock_;
  LaneDirectory lanes_;
  TaskChanger changer_;
  EndedCounter ended_counter_{metrics_};
  ReplicaBoard board_;
  SessionRegistry sessions_;
  Dispatcher dispatcher_;
  PollingWatchHub watch_hub_;
  SubmitBatcher submitter_;
  FinishBatcher finisher_;
  LeaseRenewer renewer_;
  UpdateWriter updates_;
  TaskReaderPool reader_;
  ControlBatcher control_;
  QueuePauser queues_;
  SessionOpener opener_;
  SessionServices session_services_;
  LeaseReaper reaper_;
  DeadlinePatrol patrol_;
  ReplicaKeeper keeper_;
  const Clock& clock_;
  std::vector<CallbackGauge> gauges_;
  std::unique_ptr<PeriodicLoop> reap_loop_;
  std::unique_ptr<PeriodicLoop> patrol_loop_;
  std::unique_ptr<PeriodicLoop> keeper_loop_;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SchedulerCore>> SchedulerCore::Start(
    const EngineOptions& options, std::unique_ptr<TaskStore> store,
    MetricRegistry& metrics, const Clock& clock) {
  LEASEHOLD_ASSIGN_OR_RETURN(const int64_t now_us, store->NowUs());
  auto core =
      std::make_unique<Core>(options, std::move(store), now_us, metrics, clock);
  core->AddListeners();
  LEASEHOLD_RETURN_IF_ERROR(core->StartLoops());
  return core;
}

}  // namespace leasehold::scheduler
