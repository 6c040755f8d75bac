#include "tests/e2e/storm/observations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace leasehold::e2e {
namespace {

using Lock = std::lock_guard<std::mutex>;

const char* CodeName(grpc::StatusCode code) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "?";
}

}  // namespace

int64_t NowMicros() { return absl::ToUnixMicros(absl::Now()); }

void Observations::Acknowledged(const std::string& task) {
  const Lock lock(mutex_);
  history_.acknowledged.push_back(task);
}

void Observations::Saw(const v1::Task& task, int64_t asked_us) {
  const int64_t now_us = NowMicros();
  const int64_t finish_us = task.has_finish_time()
                                ? task.finish_time().seconds() * 1'000'000 +
                                      task.finish_time().nanos() / 1000
                                : 0;
  const Lock lock(mutex_);
  history_.states.push_back(
      {task.id(), task.state(), finish_us, asked_us, now_us});
}

void Observations::Asked(Request request) {
  request.answered_us = NowMicros();
  const Lock lock(mutex_);
  history_.requests.push_back(std::move(request));
}

void Observations::Leased(std::vector<LeaseSighting> leases) {
  const Lock lock(mutex_);
  for (LeaseSighting& lease : leases)
    history_.leases.push_back(std::move(lease));
}

void Observations::Died(pid_t pid) {
  const int64_t now_us = NowMicros();
  const Lock lock(mutex_);
  history_.deaths.emplace(pid, now_us);
}

void Observations::Fault(const std::string& kind) {
  const Lock lock(mutex_);
  ++faults_[kind];
}

void Observations::Error(const std::string& call, const grpc::Status& status,
                         bool allowed) {
  const Lock lock(mutex_);
  const std::string code = CodeName(status.error_code());
  ++errors_[code];
  if (!allowed) {
    ++forbidden_[absl::StrCat(call, ": ", code, " ",
                              status.error_message().substr(0, 200))];
  }
}

size_t Observations::acknowledged() const {
  const Lock lock(mutex_);
  return history_.acknowledged.size();
}

std::string Observations::AcknowledgedTask(size_t index) const {
  const Lock lock(mutex_);
  return history_.acknowledged[index];
}

History Observations::TakeHistory() {
  const Lock lock(mutex_);
  return std::move(history_);
}

int64_t Observations::submitted() const {
  const Lock lock(mutex_);
  return submitted_;
}

std::map<std::string, int> Observations::faults() const {
  const Lock lock(mutex_);
  return faults_;
}

std::map<std::string, int> Observations::errors() const {
  const Lock lock(mutex_);
  return errors_;
}

std::vector<std::string> Observations::forbidden_errors() const {
  const Lock lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [what, count] : forbidden_)
    lines.push_back(absl::StrCat(count, "x ", what));
  return lines;
}

}  // namespace leasehold::e2e
