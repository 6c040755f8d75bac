#include "tests/support/history_checker.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::TaskState;

// All that the history knows of one task.
struct TaskHistory {
  std::vector<const Run*> runs;
  std::vector<const LeaseSighting*> leases;
  std::vector<const StateSighting*> states;
  std::vector<const Request*> requests;
  const FinalTask* final_task = nullptr;
};

class Checker {
 public:
  explicit Checker(const History& history) : history_(history) {
    for (const Run& run : history.runs) tasks_[run.task].runs.push_back(&run);
    for (const auto& lease : history.leases)
      tasks_[lease.task].leases.push_back(&lease);
    for (const auto& state : history.states)
      tasks_[state.task].states.push_back(&state);
    for (const auto& request : history.requests)
      tasks_[request.task].requests.push_back(&request);
    for (const auto& [task, row] : history.final_tasks)
      tasks_[task].final_task = &row;
  }

  Verdict Check() {
    for (const std::string& task : history_.acknowledged) {
      if (history_.final_tasks.count(task) == 0)
        Report(Broken::kLostTask, task, "acknowledged, and in no table");
    }
    for (auto& [task, known] : tasks_) {
      CheckLeases(task, known);
      CheckStates(task, known);
      CheckRequests(task, known);
      if (known.final_task != nullptr) CheckEnd(task, known);
    }
    std::sort(verdict_.violations.begin(), verdict_.violations.end(),
              [](const Violation& a, const Violation& b) {
                return std::tie(a.broken, a.task) < std::tie(b.broken, b.task);
              });
    return std::move(verdict_);
  }

 private:
  void Report(Broken broken, const std::string& task, std::string what) {
    verdict_.violations.push_back({broken, task, std::move(what)});
  }

  // Until when the run went on for certain.
  int64_t EndOf(const Run& run) const {
    if (run.end_us.has_value()) return *run.end_us;
    const auto death = history_.deaths.find(run.pid);
    return death == history_.deaths.end() ? history_.end_us : death->second;
  }

  // The latest end of this lease that the database has promised.
  static int64_t LatestExpiry(const TaskHistory& known, int64_t lease_number) {
    int64_t latest = std::numeric_limits<int64_t>::min();
    for (const LeaseSighting* lease : known.leases) {
      if (lease->lease_number == lease_number)
        latest = std::max(latest, lease->expire_us);
    }
    return latest;
  }

  // When a lease newer than this was first seen to exist, by its run or in its
  // row.
  static int64_t FirstNewer(const TaskHistory& known, int64_t lease_number) {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const Run* run : known.runs) {
      if (run->lease_number > lease_number)
        first = std::min(first, run->start_us);
    }
    for (const LeaseSighting* lease : known.leases) {
      if (lease->lease_number > lease_number)
        first = std::min(first, lease->seen_us);
    }
    return first;
  }

  void CheckLeases(const std::string& task, TaskHistory& known) {
    std::sort(known.runs.begin(), known.runs.end(),
              [](const Run* a, const Run* b) {
                return std::tie(a->lease_number, a->start_us) <
                       std::tie(b->lease_number, b->start_us);
              });
    const Run* before = nullptr;
    for (const Run* run : known.runs) {
      if (!run->end_us.has_value()) ++verdict_.runs_without_end;
      if (before != nullptr && before->lease_number == run->lease_number) {
        Report(Broken::kOverlappingLeases, task,
               absl::StrCat("lease ", run->lease_number, " ran twice, in ",
                            before->pid, " at ", before->start_us, " and in ",
                            run->pid, " at ", run->start_us));
      }
      before = run;
      const int64_t newer_us = FirstNewer(known, run->lease_number);
      if (newer_us >= EndOf(*run)) continue;
      const int64_t expire_us = LatestExpiry(known, run->lease_number);
      if (newer_us < expire_us) {
        Report(
            Broken::kOverlappingLeases, task,
            absl::StrCat("lease ", run->lease_number, " was valid until ",
                         expire_us, " and ran in ", run->pid, " until ",
                         EndOf(*run), ", a newer one was there at ", newer_us));
      } else {
        ++verdict_.runs_past_lease;
      }
    }
  }

  // Whether a RetryTask may have taken effect between the two times.
  static bool MayBeRetried(const TaskHistory& known, int64_t from_us,
                           int64_t until_us) {
    return std::any_of(known.requests.begin(), known.requests.end(),
                       [&](const Request* request) {
                         return request->kind == Request::Kind::kRetry &&
                                request->answer != Request::Answer::kRefused &&
                                request->asked_us < until_us &&
                                (request->answer == Request::Answer::kUnknown ||
                                 request->answered_us > from_us);
                       });
  }

  void CheckStates(const std::string& task, TaskHistory& known) {
    std::vector<StateSighting> sightings;
    for (const StateSighting* state : known.states) sightings.push_back(*state);
    if (known.final_task != nullptr) {
      sightings.push_back({task, known.final_task->state,
                           known.final_task->finish_us, history_.end_us,
                           history_.end_us});
    }
    for (const StateSighting& first : sightings) {
      if (!IsTerminal(first.state)) continue;
      for (const StateSighting& later : sightings) {
        if (later.asked_us <= first.seen_us) continue;
        if (later.state == first.state && later.finish_us == first.finish_us)
          continue;
        if (MayBeRetried(known, first.asked_us, later.seen_us)) continue;
        Report(Broken::kTerminalChanged, task,
               absl::StrCat(TaskState_Name(first.state), " of ",
                            first.finish_us, " was read at ", first.seen_us,
                            ", ", TaskState_Name(later.state), " of ",
                            later.finish_us, " at ", later.seen_us));
        return;
      }
    }
  }

  void CheckRequests(const std::string& task, const TaskHistory& known) {
    const FinalTask* end = known.final_task;
    if (end == nullptr || !IsTerminal(end->state)) return;
    bool cancelled = false;
    for (const Request* request : known.requests) {
      if (request->kind == Request::Kind::kRetry) {
        CheckRefusedRetry(task, known, *request);
        continue;
      }
      if (request->answer != Request::Answer::kRefused) cancelled = true;
      if (MayBeRetried(known, request->asked_us, history_.end_us)) continue;
      const bool expired = end->reason == leasehold::v1::FAILURE_REASON_EXPIRED;
      if (request->answer == Request::Answer::kAccepted && !expired &&
          end->state == leasehold::v1::TASK_STATE_FAILED) {
        Report(
            Broken::kDishonestAnswer, task,
            absl::StrCat("CancelTask was accepted at ", request->answered_us,
                         ", and it FAILED, ", FailureReason_Name(end->reason)));
      }
      if (request->answer == Request::Answer::kRefused &&
          (end->state == leasehold::v1::TASK_STATE_CANCELLED ||
           end->finish_us > request->answered_us)) {
        Report(Broken::kDishonestAnswer, task,
               absl::StrCat("CancelTask was refused at ", request->answered_us,
                            ", and it became ", TaskState_Name(end->state),
                            " at ", end->finish_us));
      }
    }
    if (end->state == leasehold::v1::TASK_STATE_CANCELLED && !cancelled) {
      Report(Broken::kWrongOutcome, task, "CANCELLED, and nobody asked for it");
    }
  }

  // Refused, though it had ended in a state that can be retried, and stayed so.
  void CheckRefusedRetry(const std::string& task, const TaskHistory& known,
                         const Request& request) {
    const FinalTask& end = *known.final_task;
    if (request.answer == Request::Answer::kRefused &&
        end.state != leasehold::v1::TASK_STATE_SUCCEEDED &&
        end.finish_us < request.asked_us) {
      Report(Broken::kDishonestAnswer, task,
             absl::StrCat("RetryTask was refused at ", request.answered_us,
                          ", and it was ", TaskState_Name(end.state), " since ",
                          end.finish_us));
    }
  }

  void CheckEnd(const std::string& task, const TaskHistory& known) {
    const FinalTask& end = *known.final_task;
    if (!IsTerminal(end.state)) {
      const bool late = end.deadline_us < history_.end_us;
      if (late) ++verdict_.past_deadline;
      Report(
          Broken::kNotEnded, task,
          absl::StrCat(TaskState_Name(end.state), ", lease ", end.lease_number,
                       late ? ", its deadline was " : ", its deadline is ",
                       end.deadline_us));
      return;
    }
    if (!known.runs.empty() &&
        known.runs.back()->lease_number > end.lease_number) {
      Report(Broken::kWrongOutcome, task,
             absl::StrCat("ended by lease ", end.lease_number, ", lease ",
                          known.runs.back()->lease_number, " had run"));
    }
    const char* wanted = nullptr;
    if (end.state == leasehold::v1::TASK_STATE_SUCCEEDED)
      wanted = kOutcomeSucceeded;
    if (end.reason == leasehold::v1::FAILURE_REASON_NON_RETRYABLE)
      wanted = kOutcomeFatal;
    if (wanted == nullptr) return;
    for (const Run* run : known.runs) {
      if (run->lease_number == end.lease_number && run->outcome == wanted)
        return;
    }
    Report(Broken::kWrongOutcome, task,
           absl::StrCat(TaskState_Name(end.state), " by lease ",
                        end.lease_number, ", which has no such run"));
  }

  const History& history_;
  std::unordered_map<std::string, TaskHistory> tasks_;
  Verdict verdict_;
};

}  // namespace

const char* BrokenName(Broken broken) {
  switch (broken) {
    case Broken::kOverlappingLeases:
      return "overlapping leases";
    case Broken::kLostTask:
      return "lost task";
    case Broken::kTerminalChanged:
      return "terminal state changed";
    case Broken::kNotEnded:
      return "not ended";
    case Broken::kWrongOutcome:
      return "wrong outcome";
    case Broken::kDishonestAnswer:
      return "dishonest answer";
  }
  return "?";
}

size_t Verdict::Count(Broken broken) const {
  return static_cast<size_t>(std::count_if(
      violations.begin(), violations.end(),
      [broken](const Violation& v) { return v.broken == broken; }));
}

Verdict CheckHistory(const History& history) {
  return Checker(history).Check();
}

}  // namespace leasehold::e2e
