#include "executor/sdk/result_outbox.h"

#include <utility>

namespace leasehold::executor {
namespace {

// What an entry costs beyond its own bytes: keys, maps, the field's header.
constexpr size_t kEntryOverheadBytes = 64;

size_t SizeOf(const Report& report) {
  return std::visit([](const auto& message) { return message.ByteSizeLong(); },
                    report) +
         kEntryOverheadBytes;
}

}  // namespace

void ResultOutbox::Add(const LeaseKey& key, Report report) {
  const size_t bytes = SizeOf(report);
  const bool is_new =
      entries_.try_emplace(key, Entry{std::move(report), bytes, State::kUnsent})
          .second;
  if (!is_new) return;
  bytes_ += bytes;
  unsent_.push_back(key);
}

bool ResultOutbox::NextMessage(SteadyTime now, v1::ExecutorMessage* message) {
  MoveDueRetries(now);
  size_t message_bytes = 0;
  size_t count = 0;
  std::optional<size_t> kind;
  while (!unsent_.empty() && count < limits_.message_reports) {
    const auto it = entries_.find(unsent_.front());
    if (it == entries_.end() || it->second.state != State::kUnsent) {
      unsent_.pop_front();
      continue;
    }
    Entry& entry = it->second;
    if (kind.has_value() && *kind != entry.report.index()) break;
    if (count > 0 && message_bytes + entry.bytes > limits_.message_bytes) break;
    if (in_flight_bytes_ > 0 &&
        in_flight_bytes_ + entry.bytes > limits_.unacknowledged_bytes) {
      break;
    }
    kind = entry.report.index();
    AppendTo(entry, message);
    message_bytes += entry.bytes;
    ++count;
    entry.state = State::kSent;
    in_flight_bytes_ += entry.bytes;
    unsent_.pop_front();
  }
  return count > 0;
}

void ResultOutbox::AppendTo(Entry& entry, v1::ExecutorMessage* message) {
  if (const auto* result = std::get_if<v1::TaskResult>(&entry.report)) {
    *message->mutable_results()->add_results() = *result;
  } else {
    *message->mutable_released()->add_leases() =
        std::get<v1::LeaseRelease>(entry.report);
  }
}

void ResultOutbox::LeaveFlight(const Entry& entry) {
  if (entry.state == State::kSent) in_flight_bytes_ -= entry.bytes;
}

bool ResultOutbox::OnAck(const LeaseKey& key, v1::ReportDisposition disposition,
                         SteadyTime now, double jitter) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return false;
  LeaveFlight(it->second);
  if (disposition == v1::REPORT_DISPOSITION_TRY_AGAIN) {
    // All that are refused while one wait lasts are sent again together.
    if (retrying_.empty()) {
      retry_at_ = now + absl::ToChronoNanoseconds(backoff_.NextWith(jitter));
    }
    it->second.state = State::kRetrying;
    retrying_.push_back(key);
    return false;
  }
  backoff_.Reset();
  bytes_ -= it->second.bytes;
  entries_.erase(it);
  return true;
}

void ResultOutbox::MoveDueRetries(SteadyTime now) {
  if (retrying_.empty() || retry_at_ > now) return;
  for (LeaseKey& key : retrying_) {
    const auto it = entries_.find(key);
    if (it == entries_.end() || it->second.state != State::kRetrying) continue;
    it->second.state = State::kUnsent;
    unsent_.push_back(std::move(key));
  }
  retrying_.clear();
}

void ResultOutbox::OnNewStream() {
  in_flight_bytes_ = 0;
  unsent_.clear();
  retrying_.clear();
  for (auto& [key, entry] : entries_) {
    entry.state = State::kUnsent;
    unsent_.push_back(key);
  }
}

std::optional<SteadyTime> ResultOutbox::NextRetry() const {
  if (retrying_.empty()) return std::nullopt;
  return retry_at_;
}

}  // namespace leasehold::executor
