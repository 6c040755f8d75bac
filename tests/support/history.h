// What was seen of a cluster from outside while it was mistreated, as plain
// records: what handlers wrote down, what clients were told, what the database
// said. history_checker.h judges it.
//
// All times are microseconds since 1970 of one machine's clock.
#ifndef TESTS_SUPPORT_HISTORY_H_
#define TESTS_SUPPORT_HISTORY_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/v1/task.pb.h"

namespace leasehold::e2e {

// One run of a handler.
struct Run {
  std::string task;
  int64_t lease_number = 0;
  pid_t pid = 0;
  int64_t start_us = 0;
  // Not set: its process was gone before, see History::deaths, or it still
  // runs.
  std::optional<int64_t> end_us;
  std::string outcome;  // kOutcomeSucceeded, kOutcomeFatal, or any other word.
};
inline constexpr char kOutcomeSucceeded[] = "succeeded";
inline constexpr char kOutcomeFatal[] = "fatal";

// A leased row, as it stood in the database.
struct LeaseSighting {
  std::string task;
  int64_t lease_number = 0;
  int64_t expire_us = 0;
  int64_t seen_us = 0;
};

// A state that a client was told; the call lay between the two times.
struct StateSighting {
  std::string task;
  v1::TaskState state = v1::TASK_STATE_UNSPECIFIED;
  int64_t finish_us = 0;  // 0: not terminal.
  int64_t asked_us = 0;
  int64_t seen_us = 0;
};

// A CancelTask or RetryTask.
struct Request {
  enum class Kind { kCancel, kRetry };
  enum class Answer {
    kAccepted,
    kRefused,  // FAILED_PRECONDITION.
    kUnknown,  // It may have happened, or may still.
  };
  std::string task;
  Kind kind = Kind::kCancel;
  Answer answer = Answer::kUnknown;
  int64_t asked_us = 0;
  int64_t answered_us = 0;
};

// A task's row at the end.
struct FinalTask {
  v1::TaskState state = v1::TASK_STATE_UNSPECIFIED;
  v1::FailureReason reason = v1::FAILURE_REASON_UNSPECIFIED;
  int64_t lease_number = 0;
  int64_t finish_us = 0;  // 0: live.
  // Of a live task: when somebody should have moved it on.
  int64_t deadline_us = 0;
};

struct History {
  std::vector<std::string> acknowledged;  // Submits that were answered with OK.
  std::vector<Run> runs;
  std::map<pid_t, int64_t> deaths;  // Processes that were killed, and when.
  std::vector<LeaseSighting> leases;
  std::vector<StateSighting> states;
  std::vector<Request> requests;
  std::map<std::string, FinalTask> final_tasks;
  int64_t end_us = 0;  // When final_tasks was read.
};

bool IsTerminal(v1::TaskState state);

// The log that handlers write: one line a start, one an end, each by a single
// append, so that any number of processes may share the file.
class RunLog {
 public:
  explicit RunLog(const std::string& path);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void Start(const std::string& task, int64_t lease_number);
  void End(const std::string& task, int64_t lease_number,
           const std::string& outcome);
  // This process leaves now; runs that have not ended end with it.
  void Exit();

 private:
  void Append(const std::string& line);
  const int file_;
};

// Throws at a line that no RunLog wrote.
std::vector<Run> ReadRunLog(const std::string& path);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_HISTORY_H_
