#include "scheduler/session/held_leases.h"

namespace leasehold::scheduler {

void HeldLeases::Add(const LeaseRef& lease, int64_t lease_duration_us,
                     int64_t attempt_timeout_us) {
  leases_[lease.task_id] = Held{.lease_number = lease.lease_number,
                                .lease_duration_us = lease_duration_us,
                                .attempt_timeout_us = attempt_timeout_us};
}

HeldLeases::Held* HeldLeases::Find(const LeaseRef& lease) {
  const auto it = leases_.find(lease.task_id);
  if (it == leases_.end()) return nullptr;
  return it->second.lease_number == lease.lease_number ? &it->second : nullptr;
}

bool HeldLeases::Remove(const LeaseRef& lease) {
  if (Find(lease) == nullptr) return false;
  leases_.erase(lease.task_id);
  return true;
}

bool HeldLeases::Contains(const LeaseRef& lease) const {
  const auto it = leases_.find(lease.task_id);
  return it != leases_.end() && it->second.lease_number == lease.lease_number;
}

void HeldLeases::Accept(const LeaseRef& lease, int64_t now_us) {
  Held* held = Find(lease);
  if (held != nullptr && held->accept_us == 0) held->accept_us = now_us;
}

void HeldLeases::Start(const LeaseRef& lease, int64_t now_us) {
  Held* held = Find(lease);
  if (held != nullptr && held->start_us == 0) held->start_us = now_us;
}

int64_t HeldLeases::StartUs(const LeaseRef& lease) const {
  const auto it = leases_.find(lease.task_id);
  if (it == leases_.end()) return 0;
  return it->second.lease_number == lease.lease_number ? it->second.start_us
                                                       : 0;
}

void HeldLeases::Name(const LeaseRef& lease) {
  if (Held* held = Find(lease); held != nullptr) held->named = true;
}

std::vector<Renewal> HeldLeases::Take(HolderId holder, int64_t now_us,
                                      int64_t lazy_us) {
  std::vector<Renewal> renewals;
  for (auto& [id, held] : leases_) {
    const bool start_due = held.start_us > 0 && !held.start_written &&
                           held.start_us + lazy_us <= now_us;
    const bool accept_due = held.accept_us > 0 && !held.accept_written &&
                            held.accept_us + lazy_us <= now_us;
    if (!held.named && !start_due && !accept_due) continue;
    held.named = false;
    const bool write_start = held.start_us > 0 && !held.start_written;
    renewals.push_back({.lease = {id, held.lease_number},
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
