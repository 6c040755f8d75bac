#include "scheduler/dispatch/lease_builder.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/status/status_macros.h"
#include "scheduler/domain/retry_policy.h"

namespace leasehold::scheduler {
namespace {

// Read at once; the bodies of one batch of claims are at most this and one more
// payload in memory besides what has been built.
constexpr int64_t kReadBytes = 8 << 20;

}  // namespace

absl::StatusOr<std::vector<std::optional<LeaseMessage>>> LeaseBuilder::Build(
    std::vector<ReadyIndex::Taken>& taken) {
  std::vector<std::optional<LeaseMessage>> leases(taken.size());
  absl::flat_hash_map<TaskId, size_t> unread;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i].spec != nullptr) {
      leases[i] = MakeLease(taken[i].task, std::move(*taken[i].spec), "");
    } else {
      unread.emplace(taken[i].task.id, i);
    }
  }
  while (!unread.empty()) {
    std::vector<TaskId> ids;
    ids.reserve(unread.size());
    for (const auto& [id, i] : unread) ids.push_back(id);
    LEASEHOLD_ASSIGN_OR_RETURN(std::vector<LeaseBody> bodies,
                               store_.LoadLeaseBodies(ids, kReadBytes));
    if (bodies.empty()) break;  // The rest has none.
    for (LeaseBody& body : bodies) {
      const auto it = unread.find(body.id);
      if (it == unread.end()) continue;
      leases[it->second] =
          MakeLease(taken[it->second].task, std::move(body.spec),
                    std::move(body.checkpoint));
      unread.erase(it);
    }
  }
  return leases;
}

LeaseMessage LeaseBuilder::MakeLease(const ReadyTask& task, TaskSpec spec,
                                     std::string checkpoint) const {
  const QueueSettings settings = lanes_.Settings(spec.queue);
  LeaseMessage lease;
  lease.lease = {task.id, task.lease_number + 1};
  lease.attempt = task.attempt + 1;
  lease.max_attempts = spec.retry_policy.max_attempts.value_or(
      settings.retry_policy.max_attempts.value_or(kDefaultMaxAttempts));
  lease.lease_duration_us = settings.lease_duration_us;
  lease.attempt_timeout_us = spec.attempt_timeout_us > 0
                                 ? spec.attempt_timeout_us
                                 : settings.attempt_timeout_us;
  lease.spec = std::move(spec);
  lease.checkpoint = std::move(checkpoint);
  return lease;
}

}  // namespace leasehold::scheduler
