// Feeds a child process and listens to it until it has ended.
#ifndef EXECUTOR_HANDLERS_EXEC_CONVERSATION_H_
#define EXECUTOR_HANDLERS_EXEC_CONVERSATION_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "executor/handlers/subprocess.h"
#include "executor/sdk/cancellation.h"

namespace leasehold::executor {

struct ExecOutcome {
  int wait_status = 0;
  std::string output;
  std::string error_tail;  // The last 4 KiB of stderr.
  bool too_much_output = false;
};

class ExecConversation {
 public:
  ExecConversation(Subprocess child, absl::string_view input,
                   size_t max_output_bytes, absl::Duration kill_grace);

  // Returns once the child has ended: by itself, or because `token` was
  // cancelled (TERM, then KILL after kill_grace), or because it wrote more than
  // it may. Descendants that still hold a pipe are not waited for.
  ExecOutcome Run(const CancellationToken& token);

 private:
  // Waits for the child, its pipes, a cancellation, or `until`.
  void WaitForEvent(SteadyTime until);
  void WriteInput();
  void ReadOutput();
  void ReadError();
  void DrainOutput();

  Subprocess child_;
  absl::string_view input_;
  const size_t max_output_bytes_;
  const absl::Duration kill_grace_;
  Fd cancelled_;  // An eventfd that the token's watch writes to.
  bool terminated_ = false;
  ExecOutcome outcome_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_EXEC_CONVERSATION_H_
