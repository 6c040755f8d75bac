#include "scheduler/engine/lane_directory.h"

#include <algorithm>

#include "common/status/status_macros.h"
#include "scheduler/domain/limits.h"

namespace leasehold::scheduler {
namespace {

QueueSettings Defaults(const LeaseTimes& times) {
  QueueSettings settings;
  settings.attempt_timeout_us = kDefaultAttemptTimeoutUs;
  settings.lease_duration_us = absl::ToInt64Microseconds(times.lease_duration);
  settings.first_lease_us = absl::ToInt64Microseconds(
      std::min(times.lease_duration, times.accept_timeout));
  return settings;
}

}  // namespace

LaneDirectory::LaneDirectory(TaskStore& store, const LeaseTimes& defaults)
    : store_(store),
      defaults_(Defaults(defaults)),
      accept_timeout_us_(absl::ToInt64Microseconds(defaults.accept_timeout)),
      longest_lease_us_(defaults_.lease_duration_us) {}

absl::Status LaneDirectory::Load() {
  LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<Lane> lanes, store_.ListLanes());
  {
    std::lock_guard lock(mutex_);
    for (const Lane& lane : lanes) {
      LaneName name(lane.queue, lane.type);
      names_[lane.id] = std::make_shared<const LaneName>(name);
      ids_[std::move(name)] = lane.id;
    }
  }
  return RefreshQueues();
}

QueueSettings LaneDirectory::Resolve(const QueueRow& row) const {
  QueueSettings settings = defaults_;
  settings.paused = row.paused;
  settings.retry_policy = row.retry_policy;
  if (row.attempt_timeout_us > 0) {
    settings.attempt_timeout_us = row.attempt_timeout_us;
  }
  if (row.lease_duration_us > 0) {
    settings.lease_duration_us = row.lease_duration_us;
    settings.first_lease_us =
        std::min(row.lease_duration_us, accept_timeout_us_);
  }
  return settings;
}

absl::Status LaneDirectory::RefreshQueues() {
  LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<QueueRow> rows,
                             store_.ListQueues());
  absl::flat_hash_map<std::string, QueueSettings> queues;
  int64_t longest = defaults_.lease_duration_us;
  int64_t version = 0;
  for (const QueueRow& row : rows) {
    version = std::max(version, row.version);
    QueueSettings settings = Resolve(row);
    longest = std::max(longest, settings.lease_duration_us);
    queues.emplace(row.name, std::move(settings));
  }
  std::lock_guard lock(mutex_);
  queues_ = std::move(queues);
  longest_lease_us_ = longest;
  version_ = version;
  return absl::OkStatus();
}

int64_t LaneDirectory::version() const {
  std::lock_guard lock(mutex_);
  return version_;
}

void LaneDirectory::Note(const QueueRow& row) {
  QueueSettings settings = Resolve(row);
  std::lock_guard lock(mutex_);
  longest_lease_us_ = std::max(longest_lease_us_, settings.lease_duration_us);
  queues_[row.name] = std::move(settings);
}

std::optional<LaneId> LaneDirectory::Find(const LaneName& name) const {
  std::lock_guard lock(mutex_);
  const auto it = ids_.find(name);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<std::vector<LaneId>> LaneDirectory::Intern(
    absl::Span<const LaneName> names) {
  std::vector<LaneId> ids(names.size());
  std::vector<LaneName> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::optional<LaneId> id = Find(names[i]);
    if (id.has_value()) {
      ids[i] = *id;
    } else {
      missing.push_back(names[i]);
    }
  }
  if (missing.empty()) return ids;

  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<LaneId> made,
                             store_.InternLanes(missing));
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < missing.size(); ++i) {
    ids_[missing[i]] = made[i];
    names_[made[i]] = std::make_shared<const LaneName>(missing[i]);
  }
  for (size_t i = 0; i < names.size(); ++i) ids[i] = ids_[names[i]];
  return ids;
}

std::shared_ptr<const LaneName> LaneDirectory::Name(LaneId id) const {
  std::lock_guard lock(mutex_);
  const auto it = names_.find(id);
  return it == names_.end() ? nullptr : it->second;
}

QueueSettings LaneDirectory::Settings(const std::string& queue) const {
  std::lock_guard lock(mutex_);
  const auto it = queues_.find(queue);
  return it == queues_.end() ? defaults_ : it->second;
}

bool LaneDirectory::Paused(LaneId id) const {
  std::lock_guard lock(mutex_);
  const auto name = names_.find(id);
  if (name == names_.end()) return false;
  const auto queue = queues_.find(name->second->first);
  return queue != queues_.end() && queue->second.paused;
}

int64_t LaneDirectory::LongestLeaseUs() const {
  std::lock_guard lock(mutex_);
  return longest_lease_us_;
}

}  // namespace leasehold::scheduler
