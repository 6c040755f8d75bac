// Judges a history: proves from it what the promises say, or names the task
// that broke one.
#ifndef TESTS_SUPPORT_HISTORY_CHECKER_H_
#define TESTS_SUPPORT_HISTORY_CHECKER_H_

#include <string>
#include <vector>

#include "tests/support/history.h"

namespace leasehold::e2e {

enum class Broken {
  // A lease was given while an older one was valid, by the database's own word,
  // and its handler ran; or one lease ran twice.
  kOverlappingLeases,
  kLostTask,         // Acknowledged, and in no table.
  kTerminalChanged,  // A read showed another state than a terminal one before.
  kNotEnded,         // Live at the end, though nobody disturbed any more.
  // The outcome on record is of no run, or of one whose lease was not the
  // latest.
  kWrongOutcome,
  kDishonestAnswer,  // What a cancel or a retry was answered did not come true.
};
const char* BrokenName(Broken broken);

struct Violation {
  Broken broken;
  std::string task;
  std::string what;
};

struct Verdict {
  std::vector<Violation> violations;
  // Not forbidden: a run went on, or began, when somebody else had been given
  // the task because its own lease was over.
  size_t runs_past_lease = 0;
  size_t runs_without_end = 0;
  // Live at the end, with a deadline that had passed; each is in violations,
  // too.
  size_t past_deadline = 0;

  size_t Count(Broken broken) const;
};

// Pure.
Verdict CheckHistory(const History& history);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_HISTORY_CHECKER_H_
