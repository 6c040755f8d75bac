// Runs a command: payload on stdin, result from stdout.
//
// clang-format off
// | the command ends with        | the attempt                                   |
// |------------------------------|-----------------------------------------------|
// | status 0                     | succeeds; result JSON if stdout is, else bytes|
// | 64, 65, 66, 77, 78           | NON_RETRYABLE, code EXIT_65 ..                |
// | 79                           | RATE_LIMITED, code EXIT_79                    |
// | any other status             | RETRYABLE, code EXIT_1 ..                     |
// | a signal                     | RETRYABLE, code SIGNAL_9 ..                   |
// | more output than allowed     | NON_RETRYABLE, RESULT_TOO_LARGE; it is killed |
// | not found                    | RETRYABLE, COMMAND_NOT_FOUND                  |
// | not executable               | RETRYABLE, COMMAND_NOT_EXECUTABLE             |
// clang-format on
//
// With a status other than 0, a JSON object {"error": {"class": "RATE_LIMITED",
// "code": "QUOTA", "message": "..", "retry_after_ms": 7000}} on stdout says
// more. Otherwise the message is the end of stderr.
#ifndef EXECUTOR_HANDLERS_EXEC_HANDLER_H_
#define EXECUTOR_HANDLERS_EXEC_HANDLER_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "executor/handlers/subprocess.h"
#include "executor/sdk/handler.h"
#include "executor/sdk/limits.h"

namespace leasehold::executor {

class ExecHandler : public Handler {
 public:
  struct Options {
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment;
    bool clear_environment = false;
    std::string working_folder;
    size_t max_output_bytes = kMaxResultBytes;
    // From TERM to KILL, when the task is cancelled.
    absl::Duration kill_grace = absl::Seconds(5);
  };

  explicit ExecHandler(Options options);

  HandlerResult Run(HandlerContext& ctx) override;

 private:
  std::vector<std::string> EnvironmentFor(const HandlerContext& ctx) const;

  const Options options_;
  std::map<std::string, std::string> base_environment_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_EXEC_HANDLER_H_
