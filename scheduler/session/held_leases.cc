#include "scheduler/session/held_leases.h"

namespace leasehold::scheduler {

void HeldLeases::Add(const LeaseRef& lease, int64_t lease_duration_us,
                     int64_t attempt_timeout_us, int64_t now_us) {
  leases_[lease] = Held{.lease_duration_us = lease_duration_us,
                        .attempt_timeout_us = attempt_timeout_us,
                        .heard_us = now_us};
}

HeldLeases::Held* HeldLeases::Find(const LeaseRef& lease) {
  const auto it = leases_.find(lease);
  return it == leases_.end() ? nullptr : &it->second;
}

bool HeldLeases::Remove(const LeaseRef& lease) {
  return leases_.erase(lease) > 0;
}

bool HeldLeases::Contains(const LeaseRef& lease) const {
  return leases_.contains(lease);
}

bool HeldLeases::Accepted(const LeaseRef& lease) const {
  const auto it = leases_.find(lease);
  return it != leases_.end() && it->second.accept_us != 0;
}

void HeldLeases::Accept(const LeaseRef& lease, int64_t now_us) {
  Held* held = Find(lease);
  if (held == nullptr) return;
  held->heard_us = now_us;
  if (held->accept_us == 0) held->accept_us = now_us;
}

void HeldLeases::Start(const LeaseRef& lease, int64_t now_us) {
  Held* held = Find(lease);
  if (held != nullptr && held->start_us == 0) held->start_us = now_us;
}

int64_t HeldLeases::StartUs(const LeaseRef& lease) const {
  const auto it = leases_.find(lease);
  return it == leases_.end() ? 0 : it->second.start_us;
}

void HeldLeases::Name(const LeaseRef& lease, int64_t now_us) {
  Held* held = Find(lease);
  if (held == nullptr) return;
  held->heard_us = now_us;
  held->named = true;
}

std::vector<LeaseRef> HeldLeases::DropUnheard(int64_t now_us) {
  std::vector<LeaseRef> never_accepted;
  absl::erase_if(leases_, [&](const auto& entry) {
    const auto& [lease, held] = entry;
    if (held.heard_us + held.lease_duration_us > now_us) return false;
    if (held.accept_us == 0) never_accepted.push_back(lease);
    return true;
  });
  return never_accepted;
}

std::vector<Renewal> HeldLeases::Take(HolderId holder, int64_t now_us,
                                      int64_t lazy_us) {
  std::vector<Renewal> renewals;
  for (auto& [lease, held] : leases_) {
    const bool start_due = held.start_us > 0 && !held.start_written &&
                           held.start_us + lazy_us <= now_us;
    const bool accept_due = held.accept_us > 0 && !held.accept_written &&
                            held.accept_us + lazy_us <= now_us;
    if (!held.named && !start_due && !accept_due) continue;
    held.named = false;
    const bool write_start = held.start_us > 0 && !held.start_written;
    renewals.push_back({.lease = lease,
                        .holder = holder,
                        .lease_us = held.lease_duration_us,
                        .start_us = write_start ? held.start_us : 0,
                        .attempt_timeout_us = held.attempt_timeout_us});
    held.accept_written = true;
    held.start_written |= write_start;
  }
  return renewals;
}

void HeldLeases::NotWritten(const Renewal& renewal) {
  Held* held = Find(renewal.lease);
  if (held == nullptr) return;
  held->accept_written = false;
  if (renewal.start_us > 0) held->start_written = false;
}

}  // namespace leasehold::scheduler
