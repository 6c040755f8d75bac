// Decisions in words, so that a table of them can be read and compared:
//
//   RECORDED RETRYING/closed a2 x1 r0 wait=10s; attempt 2 E
//   DONE END CANCELLED a1 code=CANCELLED
//
// a, x and r are the attempts, expiries and rate limits counted afterwards.
#ifndef TESTS_SCHEDULER_DOMAIN_DECISION_TEXT_H_
#define TESTS_SCHEDULER_DOMAIN_DECISION_TEXT_H_

#include <cstdint>
#include <string>

#include "scheduler/domain/state_machine.h"

namespace leasehold::scheduler {

// 1,000 s after the epoch: when every decision of these tests is made.
inline constexpr int64_t kNowUs = 1'000'000'000;
inline constexpr int64_t kSecondUs = 1'000'000;

std::string NameOf(TaskState state);
std::string TextOf(const Change& change);
std::string TextOf(const ReportDecision& decision);
std::string TextOf(const ControlDecision& decision);

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_DOMAIN_DECISION_TEXT_H_
