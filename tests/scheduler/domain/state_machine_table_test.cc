// The state machine as one table: every situation x every event, each expected
// in words. The rules here are written from the contract, not from the code.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "scheduler/domain/state_machine.h"
#include "tests/scheduler/domain/decision_text.h"

namespace leasehold::scheduler {
namespace {

constexpr HolderId kHolder = 8;
constexpr int64_t kLeaseNumber = 7;

// A task as an event may find it.
struct Situation {
  std::optional<LiveTask> live;
  std::optional<EndedTask> ended;
  int64_t expire_us = 0;

  TaskView View() const {
    TaskView view;
    if (live.has_value()) view.live = &*live;
    if (ended.has_value()) view.ended = &*ended;
    view.policy.non_retryable_codes = {"LISTED"};
    view.expire_us = expire_us;
    view.now_us = kNowUs;
    return view;
  }
};

Situation Live(TaskState state, LeaseEnd lease_end, int attempt,
               int64_t cancel_us = 0) {
  const bool leased =
      state == TaskState::kDispatched || state == TaskState::kRunning;
  LiveTask live;
  live.id = 42;
  live.lane_id = 3;
  live.phase = state == TaskState::kPaused ? Phase::kPaused
               : leased                    ? Phase::kLeased
                                           : Phase::kWaiting;
  live.state = state;
  live.priority = 2;
  live.run_us = leased ? kNowUs - kSecondUs : kNowUs + 7 * kSecondUs;
  live.attempt = attempt;
  live.rate_limited_count = 3;
  live.expiry_count = 1;
  live.lease_number = kLeaseNumber;
  live.holder = kHolder;
  live.lease_end = lease_end;
  live.lease_expire_us = leased ? kNowUs + 10 * kSecondUs : 0;
  live.cancel_expire_us = cancel_us;
  live.state_us = kNowUs - kSecondUs;
  live.start_us = kNowUs - kSecondUs;
  return {live, std::nullopt, 0};
}

Situation Ended(TaskState state) {
  EndedTask ended;
  ended.state = state;
  ended.lease_number = kLeaseNumber;
  ended.holder = kHolder;
  return {std::nullopt, ended, 0};
}

// Names: P(ending), R(etrying), Z for paused, each with its latest lease
// c(losed) or e(xpired); D(ispatched) and U for running, with x once they are
// to be cancelled; S(ucceeded), F(ailed), C(ancelled); - for a task nobody
// knows.
const std::map<std::string, Situation>& Situations() {
  constexpr int64_t kCancelUs = kNowUs + 20 * kSecondUs;
  static const auto* all = new std::map<std::string, Situation>{
      {"Pc", Live(TaskState::kPending, LeaseEnd::kClosed, 0)},
      {"Pe", Live(TaskState::kPending, LeaseEnd::kExpired, 0)},
      {"Rc", Live(TaskState::kRetrying, LeaseEnd::kClosed, 1)},
      {"Re", Live(TaskState::kRetrying, LeaseEnd::kExpired, 1)},
      {"Zc", Live(TaskState::kPaused, LeaseEnd::kClosed, 1)},
      {"Ze", Live(TaskState::kPaused, LeaseEnd::kExpired, 1)},
      {"D", Live(TaskState::kDispatched, LeaseEnd::kOpen, 2)},
      {"U", Live(TaskState::kRunning, LeaseEnd::kOpen, 2)},
      {"Dx", Live(TaskState::kDispatched, LeaseEnd::kOpen, 2, kCancelUs)},
      {"Ux", Live(TaskState::kRunning, LeaseEnd::kOpen, 2, kCancelUs)},
      {"S", Ended(TaskState::kSucceeded)},
      {"F", Ended(TaskState::kFailed)},
      {"C", Ended(TaskState::kCancelled)},
      {"-", Situation{}},
  };
  return *all;
}

using Event = std::function<std::string(Situation)>;

Event Reported(decltype(Report::outcome) outcome,
               int64_t lease_number = kLeaseNumber, HolderId holder = kHolder,
               bool refused = false) {
  return [=](const Situation& s) {
    Report report;
    report.lease = {42, lease_number};
    report.holder = holder;
    report.outcome = outcome;
    report.refused = refused;
    return TextOf(DecideReport(s.View(), report, 0.0));
  };
}

Event Errors(ErrorClass error_class, const std::string& code = "E") {
  TaskError error;
  error.error_class = error_class;
  error.code = code;
  return Reported(error);
}

Event Releases(ReleaseReason reason) {
  return Reported(Release{reason, std::nullopt});
}

Event Expires(bool spoke_again, int64_t lease_end_us = kNowUs,
              int64_t lease_number = kLeaseNumber) {
  return [=](Situation s) {
    if (s.live.has_value()) s.live->lease_expire_us = lease_end_us;
    return TextOf(DecideExpiry(s.View(), {42, lease_number}, spoke_again, 0.0));
  };
}

Event NotHeld(int64_t lease_number, HolderId holder) {
  return [=](const Situation& s) {
    return TextOf(DecideNotHeld(s.View(), {42, lease_number}, holder));
  };
}

Event ExpireTime(int64_t expire_us) {
  return [=](Situation s) {
    s.expire_us = expire_us;
    return TextOf(DecideExpireTime(s.View()));
  };
}

Event CancelDeadline(int64_t offset_us) {
  return [=](Situation s) {
    if (s.live.has_value() && s.live->cancel_expire_us != 0) {
      s.live->cancel_expire_us = kNowUs + offset_us;
    }
    return TextOf(DecideCancelDeadline(s.View()));
  };
}

std::string RetryText(const Situation& s) {
  if (!s.ended.has_value()) return "n/a";
  const std::optional<LiveTask> live = DecideRetry(42, 3, 2, *s.ended, kNowUs);
  if (!live.has_value()) return "refused";
  Change change;
  change.update = live;
  return absl::StrCat(TextOf(change), " l", live->lease_number);
}

const std::map<std::string, Event>& Events() {
  const Payload result{PayloadKind::kJson, "1"};
  TaskError too_large;
  too_large.error_class = ErrorClass::kNonRetryable;
  too_large.code = "RESULT_TOO_LARGE";
  static const auto* all = new std::map<std::string, Event>{
      {"result", Reported(result)},
      {"result of an older lease", Reported(result, kLeaseNumber - 1)},
      {"result of a newer lease", Reported(result, kLeaseNumber + 1)},
      {"result of another holder", Reported(result, kLeaseNumber, 9)},
      {"refused result", Reported(too_large, kLeaseNumber, kHolder, true)},
      {"error without class", Errors(ErrorClass::kUnspecified)},
      {"retryable error", Errors(ErrorClass::kRetryable)},
      {"executor says lease expired", Errors(ErrorClass::kLeaseExpired)},
      {"timeout", Errors(ErrorClass::kTimeout, "")},
      {"handler stopped", Errors(ErrorClass::kCancelled, "")},
      {"rate limited", Errors(ErrorClass::kRateLimited)},
      {"non-retryable error", Errors(ErrorClass::kNonRetryable)},
      {"retryable listed code", Errors(ErrorClass::kRetryable, "LISTED")},
      {"rate limited listed code", Errors(ErrorClass::kRateLimited, "LISTED")},
      {"released", Releases(ReleaseReason::kUnspecified)},
      {"rejected", Releases(ReleaseReason::kRejected)},
      {"draining", Releases(ReleaseReason::kDraining)},
      {"snoozed", Reported(Release{ReleaseReason::kSnoozed, 90 * kSecondUs})},
      {"unknown type", Releases(ReleaseReason::kUnknownType)},
      {"expires, executor lives", Expires(true)},
      {"expires, executor silent", Expires(false)},
      {"looks expired, is not", Expires(false, kNowUs + 1)},
      {"older lease expires", Expires(false, kNowUs, kLeaseNumber - 1)},
      {"not in its hello", NotHeld(kLeaseNumber, kHolder)},
      {"not in another's hello", NotHeld(kLeaseNumber, 9)},
      {"older lease not in hello", NotHeld(kLeaseNumber - 1, kHolder)},
      {"expire_time passes", ExpireTime(kNowUs)},
      {"expire_time to come", ExpireTime(kNowUs + 1)},
      {"no expire_time", ExpireTime(0)},
      {"cancel",
       [](const Situation& s) {
         return TextOf(DecideCancel(s.View(), 15 * kSecondUs, ""));
       }},
      {"cancel deadline passes", CancelDeadline(0)},
      {"cancel deadline to come", CancelDeadline(1)},
      {"pause",
       [](const Situation& s) { return TextOf(DecidePause(s.View())); }},
      {"resume",
       [](const Situation& s) { return TextOf(DecideResume(s.View())); }},
      {"retry", RetryText},
  };
  return *all;
}

struct Expected {
  std::string events;      // Separated by " | ".
  std::string situations;  // Separated by blanks.
  std::string text;        // "aN" stands for the attempts of the situation.
};

std::vector<Expected> Table() {
  const std::string waiting = "Pc Pe Rc Re Zc Ze";
  const std::string ended = "S F C";
  const std::string everything = "Pc Pe Rc Re Zc Ze D U Dx Ux S F C -";
  const std::string any_error =
      "error without class | retryable error | executor says lease expired | "
      "timeout | handler stopped | rate limited | non-retryable error | "
      "retryable listed code | rate limited listed code";
  const std::string releases =
      "released | rejected | draining | snoozed | unknown type";
  const std::string retryable =
      "error without class | retryable error | executor says lease expired | "
      "timeout | handler stopped";
  const std::string closes =
      retryable +
      " | rate limited | released | rejected | draining | snoozed | "
      "unknown type";
  const std::string fatal = "non-retryable error";
  const std::string listed = "retryable listed code | rate limited listed code";
  const std::string plain_retryable =
      "error without class | retryable error | executor says lease expired";

  return {
      // Which reports count at all.
      {"result of an older lease | result of a newer lease | "
       "result of another holder",
       everything, "STALE nothing"},
      {"result | refused result | " + any_error + " | " + releases,
       "Pc Rc Zc S F C", "DUPLICATE nothing"},
      {"result | refused result | " + any_error + " | " + releases, "-",
       "STALE nothing"},

      // In time and late, success counts; over a cancellation too.
      {"result", "Pe Re Ze D U Dx Ux", "RECORDED END SUCCEEDED aN result"},

      // Late errors.
      {closes, "Pe", "RECORDED PENDING/closed a0 x1 r3 wait=7s"},
      {closes, "Re", "RECORDED RETRYING/closed a1 x1 r3 wait=7s"},
      {closes, "Ze", "RECORDED PAUSED/closed a1 x1 r3 wait=7s"},
      {fatal, "Pe Re Ze", "RECORDED END FAILED:NON_RETRYABLE aN code=E"},
      {listed, "Pe Re Ze", "RECORDED END FAILED:NON_RETRYABLE aN code=LISTED"},
      {"refused result", "Pe Re Ze",
       "REFUSED END FAILED:NON_RETRYABLE aN code=RESULT_TOO_LARGE"},

      // Errors in time. Backoff after the second attempt is 10 s.
      {plain_retryable, "D U",
       "RECORDED RETRYING/closed a2 x1 r0 wait=10s; attempt 2 E"},
      {"timeout", "D U",
       "RECORDED RETRYING/closed a2 x1 r0 wait=10s; attempt 2 ATTEMPT_TIMEOUT"},
      {"handler stopped", "D U",
       "RECORDED RETRYING/closed a2 x1 r0 wait=10s; attempt 2 CANCELLED"},
      {"rate limited", "D U",
       "RECORDED RETRYING/closed a1 x1 r4 wait=40s; attempt 2 E"},
      {fatal, "D U",
       "RECORDED END FAILED:NON_RETRYABLE a2 code=E; attempt 2 E"},
      {listed, "D U",
       "RECORDED END FAILED:NON_RETRYABLE a2 code=LISTED; attempt 2 LISTED"},
      {"refused result", "D U",
       "REFUSED END FAILED:NON_RETRYABLE a2 code=RESULT_TOO_LARGE; attempt 2 "
       "RESULT_TOO_LARGE"},

      // Errors of a task that is to be cancelled.
      {plain_retryable + " | " + fatal, "Dx Ux",
       "RECORDED END CANCELLED a2 code=CANCELLED; attempt 2 E"},
      {"rate limited", "Dx Ux",
       "RECORDED END CANCELLED a1 code=CANCELLED; attempt 2 E"},
      {"timeout", "Dx Ux",
       "RECORDED END CANCELLED a2 code=CANCELLED; attempt 2 ATTEMPT_TIMEOUT"},
      {"handler stopped", "Dx Ux",
       "RECORDED END CANCELLED a2 code=CANCELLED; attempt 2 CANCELLED"},
      {"retryable listed code", "Dx Ux",
       "RECORDED END CANCELLED a2 code=CANCELLED; attempt 2 LISTED"},
      {"rate limited listed code", "Dx Ux",
       "RECORDED END CANCELLED a1 code=CANCELLED; attempt 2 LISTED"},
      {"refused result", "Dx Ux",
       "REFUSED END CANCELLED a2 code=CANCELLED; attempt 2 RESULT_TOO_LARGE"},

      // Releases charge nothing.
      {"released | draining", "D U",
       "RECORDED RETRYING/closed a1 x1 r3 wait=0s"},
      {"rejected | unknown type", "D U",
       "RECORDED RETRYING/closed a1 x1 r3 wait=5s"},
      {"snoozed", "D U", "RECORDED RETRYING/closed a1 x1 r3 wait=90s"},
      {releases, "Dx Ux", "RECORDED END CANCELLED a1 code=CANCELLED"},

      // Leases that end without a report. It is the second expiry.
      {"expires, executor lives", "D",
       "RETRYING/expired a1 x1 r3 wait=0s; attempt 2 NEVER_STARTED"},
      {"expires, executor silent", "D",
       "RETRYING/expired a1 x2 r3 wait=0s; attempt 2 NEVER_STARTED"},
      {"expires, executor lives | expires, executor silent", "U",
       "RETRYING/expired a2 x2 r0 wait=10s; attempt 2 LEASE_EXPIRED"},
      {"expires, executor lives | expires, executor silent", "Dx",
       "END CANCELLED a1 code=CANCELLED; attempt 2 NEVER_STARTED"},
      {"expires, executor lives | expires, executor silent", "Ux",
       "END CANCELLED a2 code=CANCELLED; attempt 2 LEASE_EXPIRED"},
      {"expires, executor lives | expires, executor silent",
       waiting + " " + ended + " -", "nothing"},
      {"looks expired, is not | older lease expires", everything, "nothing"},

      // Leases that their executor never got.
      {"not in its hello", "D", "RETRYING/expired a1 x1 r3 wait=0s"},
      {"not in its hello", "U",
       "RETRYING/expired a1 x1 r3 wait=0s; attempt 2 LEASE_EXPIRED"},
      {"not in its hello", "Dx", "END CANCELLED a1 code=CANCELLED"},
      {"not in its hello", "Ux",
       "END CANCELLED a1 code=CANCELLED; attempt 2 LEASE_EXPIRED"},
      {"not in its hello", waiting + " " + ended + " -", "nothing"},
      {"not in another's hello | older lease not in hello", everything,
       "nothing"},

      // The task's own deadline.
      {"expire_time passes", waiting, "END FAILED:EXPIRED aN code=EXPIRED"},
      {"expire_time passes", "D U Dx Ux",
       "END FAILED:EXPIRED a2 cut=10s code=EXPIRED; attempt 2 EXPIRED"},
      {"expire_time passes", ended + " -", "nothing"},
      {"expire_time to come | no expire_time", everything, "nothing"},

      // Control.
      {"cancel", waiting, "DONE END CANCELLED aN code=CANCELLED"},
      {"cancel", "D", "DONE DISPATCHED/open a2 x1 r3 cancel=30s"},
      {"cancel", "U", "DONE RUNNING/open a2 x1 r3 cancel=30s"},
      {"cancel", "Dx Ux C", "ALREADY_DONE nothing"},
      {"cancel", "S F", "WRONG_STATE nothing"},
      {"cancel | pause | resume", "-", "NOT_FOUND nothing"},
      {"cancel deadline passes", "Ux",
       "END CANCELLED a2 cut=10s code=CANCELLED; attempt 2 CANCELLED"},
      {"cancel deadline passes", waiting + " D U Dx " + ended + " -",
       "nothing"},
      {"cancel deadline to come", everything, "nothing"},
      {"pause", "Pc", "DONE PAUSED/closed a0 x1 r3 wait=7s"},
      {"pause", "Pe", "DONE PAUSED/expired a0 x1 r3 wait=7s"},
      {"pause", "Rc", "DONE PAUSED/closed a1 x1 r3 wait=7s"},
      {"pause", "Re", "DONE PAUSED/expired a1 x1 r3 wait=7s"},
      {"pause", "Zc Ze", "ALREADY_DONE nothing"},
      {"pause", "D U Dx Ux S F C", "WRONG_STATE nothing"},
      {"resume", "Zc", "DONE RETRYING/closed a1 x1 r3 wait=7s"},
      {"resume", "Ze", "DONE RETRYING/expired a1 x1 r3 wait=7s"},
      {"resume", "Pc Pe Rc Re D U Dx Ux", "ALREADY_DONE nothing"},
      {"resume", "S F C", "WRONG_STATE nothing"},
      {"retry", "F C", "PENDING/closed a0 x0 r0 wait=0s l8"},
      {"retry", "S", "refused"},
      {"retry", "Pc Pe Rc Re Zc Ze D U Dx Ux -", "n/a"},
  };
}

TEST(StateMachineTable, DecidesEverySituationAndEventAsExpected) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Expected& row : Table()) {
    for (const std::string& event :
         std::vector<std::string>(absl::StrSplit(row.events, " | "))) {
      ASSERT_EQ(Events().count(event), 1u) << event;
      for (const std::string& name :
           std::vector<std::string>(absl::StrSplit(row.situations, ' '))) {
        ASSERT_EQ(Situations().count(name), 1u) << name;
        const Situation& situation = Situations().at(name);
        const int attempt =
            situation.live.has_value() ? situation.live->attempt : 0;
        const std::string expected = absl::StrReplaceAll(
            row.text, {{" aN", absl::StrCat(" a", attempt)}});

        EXPECT_TRUE(seen.insert({event, name}).second)
            << "twice in the table: " << event << " in " << name;
        EXPECT_EQ(Events().at(event)(situation), expected)
            << event << " in " << name;
      }
    }
  }

  for (const auto& [event, decide] : Events()) {
    for (const auto& [name, situation] : Situations()) {
      EXPECT_EQ(seen.count({event, name}), 1u)
          << "not in the table: " << event << " in " << name;
    }
  }
}

}  // namespace
}  // namespace leasehold::scheduler
