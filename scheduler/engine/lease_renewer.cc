#include "scheduler/engine/lease_renewer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/concurrency/thread_pool.h"
#include "common/logging/log.h"
#include "common/logging/rate_limited_log.h"

namespace leasehold::scheduler {
namespace {

constexpr absl::Duration kRenewLimit = absl::Seconds(30);

}  // namespace

LeaseRenewer::LeaseRenewer(
    TaskStore& store, absl::Duration sweep,
    std::function<std::vector<std::shared_ptr<RenewalSource>>()> list_sources,
    SchedulerMetrics& metrics, const Clock& clock)
    : store_(store),
      sweep_(sweep),
      list_sources_(std::move(list_sources)),
      metrics_(metrics),
      probe_("renew", kRenewLimit, clock),
      thread_([this] { Run(); }) {}

void LeaseRenewer::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LeaseRenewer::Renew(std::shared_ptr<RenewalSource> source) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (std::find(waiting_.begin(), waiting_.end(), source) == waiting_.end()) {
      waiting_.push_back(std::move(source));
    }
  }
  changed_.notify_one();
}

void LeaseRenewer::Run() {
  NameThisThread("renew");
  next_sweep_ =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(sweep_);
  for (bool stopped = false; !stopped;) {
    std::vector<std::shared_ptr<RenewalSource>> sources = NextSources(&stopped);
    if (sources.empty()) continue;
    LoopProbe::Round round(probe_);
    RenewAll(std::move(sources));
  }
}

std::vector<std::shared_ptr<RenewalSource>> LeaseRenewer::NextSources(
    bool* stopped) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, next_sweep_,
                      [&] { return stopped_ || !waiting_.empty(); });
  *stopped = stopped_;
  if (std::chrono::steady_clock::now() < next_sweep_) {
    return std::exchange(waiting_, {});
  }
  // The sweep asks everybody, and those that wait although they are not listed:
  // a session that opens still.
  std::vector<std::shared_ptr<RenewalSource>> sources =
      std::exchange(waiting_, {});
  lock.unlock();
  next_sweep_ =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(sweep_);
  const size_t waited = sources.size();
  for (std::shared_ptr<RenewalSource>& source : list_sources_()) {
    const auto end = sources.begin() + static_cast<std::ptrdiff_t>(waited);
    if (std::find(sources.begin(), end, source) == end) {
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

void LeaseRenewer::RenewAll(
    std::vector<std::shared_ptr<RenewalSource>> sources) {
  std::vector<Renewal> all;
  std::vector<size_t> ends;
  for (const auto& source : sources) {
    std::vector<Renewal> renewals = source->TakeRenewals();
    all.insert(all.end(), renewals.begin(), renewals.end());
    ends.push_back(all.size());
  }
  absl::StatusOr<std::vector<RenewOutcome>> outcomes =
      std::vector<RenewOutcome>();
  if (!all.empty()) {
    metrics_.renew_batch_leases.Observe(static_cast<double>(all.size()));
    outcomes = store_.RenewLeases(all);
    if (!outcomes.ok()) {
      static RateLimitedLog log;
      log.Warning("leases not renewed, waiting for the next heartbeat",
                  {{"leases", all.size()}, {"error", outcomes.status()}});
    }
  }
  size_t begin = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t count = ends[i] - begin;
    const auto renewals = absl::MakeConstSpan(all).subspan(begin, count);
    if (!outcomes.ok()) {
      sources[i]->OnRenewed(renewals, outcomes);
    } else {
      std::vector<RenewOutcome> mine(outcomes->begin() + begin,
                                     outcomes->begin() + ends[i]);
      for (const RenewOutcome outcome : mine) {
        (outcome == RenewOutcome::kLost ? metrics_.leases_lost
                                        : metrics_.leases_renewed)
            .Increment();
      }
      sources[i]->OnRenewed(renewals, std::move(mine));
    }
    begin = ends[i];
  }
}

}  // namespace leasehold::scheduler
