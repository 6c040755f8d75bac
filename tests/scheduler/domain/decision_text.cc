#include "tests/scheduler/domain/decision_text.h"

#include "absl/strings/str_cat.h"

namespace leasehold::scheduler {
namespace {

std::string NameOf(LeaseEnd end) {
  switch (end) {
    case LeaseEnd::kOpen:
      return "open";
    case LeaseEnd::kExpired:
      return "expired";
    case LeaseEnd::kClosed:
      return "closed";
  }
  return "?";
}

std::string NameOf(FailureReason reason) {
  constexpr const char* kNames[] = {
      "-",       "NON_RETRYABLE", "ATTEMPTS_EXHAUSTED",
      "EXPIRED", "POISONED",      "RATE_LIMITED",
  };
  return kNames[static_cast<int>(reason)];
}

std::string Seconds(int64_t us) {
  return us % kSecondUs == 0 ? absl::StrCat(us / kSecondUs, "s")
                             : absl::StrCat(us, "us");
}

std::string UpdateText(const LiveTask& live) {
  std::string text = absl::StrCat(
      NameOf(live.state), "/", NameOf(live.lease_end), " a", live.attempt, " x",
      live.expiry_count, " r", live.rate_limited_count);
  if (live.phase != Phase::kLeased) {
    absl::StrAppend(&text, " wait=", Seconds(live.run_us - kNowUs));
  }
  if (live.cancel_expire_us != 0) {
    absl::StrAppend(&text, " cancel=", Seconds(live.cancel_expire_us - kNowUs));
  }
  return text;
}

std::string EndText(const EndedTask& end) {
  std::string text = absl::StrCat("END ", NameOf(end.state));
  if (end.reason != FailureReason::kUnspecified) {
    absl::StrAppend(&text, ":", NameOf(end.reason));
  }
  absl::StrAppend(&text, " a", end.attempt);
  if (end.lease_expire_us != 0) {
    absl::StrAppend(&text, " cut=", Seconds(end.lease_expire_us - kNowUs));
  }
  if (!end.result.bytes.empty()) absl::StrAppend(&text, " result");
  if (end.error.has_value()) absl::StrAppend(&text, " code=", end.error->code);
  return text;
}

}  // namespace

std::string NameOf(TaskState state) {
  constexpr const char* kNames[] = {"-",         "PENDING",  "DISPATCHED",
                                    "RUNNING",   "RETRYING", "PAUSED",
                                    "SUCCEEDED", "FAILED",   "CANCELLED"};
  return kNames[static_cast<int>(state)];
}

std::string TextOf(const Change& change) {
  if (change.update.has_value() && change.end.has_value()) return "BOTH";
  std::string text = "nothing";
  if (change.update.has_value()) text = UpdateText(*change.update);
  if (change.end.has_value()) text = EndText(*change.end);
  if (change.attempt.has_value()) {
    absl::StrAppend(&text, "; attempt ", change.attempt->number, " ",
                    change.attempt->error.code);
  }
  return text;
}

std::string TextOf(const ReportDecision& decision) {
  constexpr const char* kNames[] = {"-",     "RECORDED",  "DUPLICATE",
                                    "STALE", "TRY_AGAIN", "REFUSED"};
  return absl::StrCat(kNames[static_cast<int>(decision.disposition)], " ",
                      TextOf(decision.change));
}

std::string TextOf(const ControlDecision& decision) {
  constexpr const char* kNames[] = {"DONE", "ALREADY_DONE", "WRONG_STATE",
                                    "NOT_FOUND"};
  return absl::StrCat(kNames[static_cast<int>(decision.outcome)], " ",
                      TextOf(decision.change));
}

}  // namespace leasehold::scheduler
