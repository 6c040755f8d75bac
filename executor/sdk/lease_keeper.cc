#include "executor/sdk/lease_keeper.h"

#include <algorithm>
#include <mutex>

namespace leasehold::executor {
namespace {

constexpr size_t kMaxKnownHeartbeats = 1000;

SteadyTime After(SteadyTime start, absl::Duration duration) {
  return start + absl::ToChronoNanoseconds(duration);
}

}  // namespace

LeaseKey KeyOf(const v1::LeaseRef& ref) {
  return {ref.task_id(), ref.lease_number()};
}

void FillRef(const LeaseKey& key, v1::LeaseRef* ref) {
  ref->set_task_id(key.task_id);
  ref->set_lease_number(key.lease_number);
}

void LeaseKeeper::OnHelloSent(SteadyTime now) {
  hello_sent_ = now;
  // Acknowledgements of an older stream's heartbeats never come here.
  sent_.clear();
}

void LeaseKeeper::FillHeartbeat(SteadyTime now, size_t max_checkpoint_bytes,
                                v1::Heartbeat* heartbeat) {
  const int64_t sequence = ++last_sequence_;
  sent_.emplace_back(sequence, now);
  if (sent_.size() > kMaxKnownHeartbeats) sent_.pop_front();
  heartbeat->set_sequence(sequence);
  for (auto& [key, held] : held_) {
    if (held.lost) continue;
    if (held.first_sequence == 0) held.first_sequence = sequence;
    v1::LeaseStatus* status = heartbeat->add_leases();
    FillRef(key, status->mutable_lease());
    FillStatus(held, sequence, &max_checkpoint_bytes, status);
  }
}

void LeaseKeeper::FillStatus(Held& held, int64_t sequence,
                             size_t* checkpoint_budget,
                             v1::LeaseStatus* status) {
  TaskRun& run = *held.run;
  status->set_started(run.phase.load() == TaskRun::Phase::kStarted);
  const std::lock_guard<std::mutex> lock(run.live_mutex);
  const LiveState& live = run.live;
  if (live.progress_version != held.progress_acked) {
    v1::Progress* progress = status->mutable_progress();
    progress->set_done(live.progress.done);
    progress->set_total(live.progress.total);
    progress->set_message(live.progress.message);
    if (held.progress_sent != live.progress_version) {
      held.progress_sent = live.progress_version;
      held.progress_sent_in = sequence;
    }
  }
  if (live.checkpoint_version != held.checkpoint_acked &&
      live.checkpoint.size() <= *checkpoint_budget) {
    *checkpoint_budget -= live.checkpoint.size();
    status->set_checkpoint(live.checkpoint);
    if (held.checkpoint_sent != live.checkpoint_version) {
      held.checkpoint_sent = live.checkpoint_version;
      held.checkpoint_sent_in = sequence;
    }
  }
}

std::optional<SteadyTime> LeaseKeeper::SentAt(int64_t sequence) const {
  if (sequence == 0) return hello_sent_;
  const auto it = std::lower_bound(
      sent_.begin(), sent_.end(), sequence,
      [](const auto& entry, int64_t wanted) { return entry.first < wanted; });
  if (it == sent_.end() || it->first != sequence) return std::nullopt;
  return it->second;
}

void LeaseKeeper::OnHeartbeatAck(int64_t sequence) {
  const std::optional<SteadyTime> sent = SentAt(sequence);
  if (!sent.has_value() || sequence == 0) return;
  for (auto& [key, held] : held_) {
    if (held.lost || held.first_sequence == 0 ||
        held.first_sequence > sequence) {
      continue;
    }
    held.end = std::max(held.end, After(*sent, held.duration));
    if (held.progress_sent_in != 0 && held.progress_sent_in <= sequence) {
      held.progress_acked = held.progress_sent;
    }
    if (held.checkpoint_sent_in != 0 && held.checkpoint_sent_in <= sequence) {
      held.checkpoint_acked = held.checkpoint_sent;
    }
  }
}

LeaseKeeper::Added LeaseKeeper::Add(std::shared_ptr<TaskRun> run,
                                    absl::Duration first_duration,
                                    absl::Duration duration,
                                    int64_t heartbeat_sequence,
                                    SteadyTime now) {
  LeaseKey key = run->key();
  if (held_.contains(key)) return Added::kKnown;
  const std::optional<SteadyTime> sent = SentAt(heartbeat_sequence);
  if (!sent.has_value()) return Added::kOver;
  const SteadyTime end = After(*sent, first_duration);
  if (end <= now) return Added::kOver;
  Held held;
  held.run = std::move(run);
  held.duration = duration;
  held.end = end;
  held_.emplace(std::move(key), std::move(held));
  return Added::kHeld;
}

LeaseKeeper::Held* LeaseKeeper::Find(const LeaseKey& key) {
  const auto it = held_.find(key);
  return it == held_.end() ? nullptr : &it->second;
}

void LeaseKeeper::Remove(const LeaseKey& key) { held_.erase(key); }

std::optional<absl::Duration> LeaseKeeper::ShortestDuration() const {
  std::optional<absl::Duration> shortest;
  for (const auto& [key, held] : held_) {
    if (held.lost) continue;
    shortest = std::min(shortest.value_or(held.duration), held.duration);
  }
  return shortest;
}

bool LeaseKeeper::HoldsTask(const std::string& task_id) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& entry) {
    return entry.first.task_id == task_id;
  });
}

}  // namespace leasehold::executor
