#include "executor/sdk/handler.h"

#include <chrono>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"
#include "executor/sdk/limits.h"
#include "executor/sdk/task_run.h"

namespace leasehold::executor {

const TaskInput& HandlerContext::task() const { return run_.input; }

Payload HandlerContext::TakePayload() { return std::move(run_.input.payload); }

SteadyTime HandlerContext::deadline() const { return run_.deadline; }

absl::Duration HandlerContext::TimeLeft() const {
  if (run_.deadline == SteadyTime::max()) return absl::InfiniteDuration();
  return absl::FromChrono(run_.deadline - std::chrono::steady_clock::now());
}

const CancellationToken& HandlerContext::cancellation() const {
  return run_.token;
}

void HandlerContext::SetProgress(int64_t done, int64_t total,
                                 absl::string_view message) {
  std::string text = TruncateUtf8(
      SanitizeUtf8(message.substr(0, 2 * kMaxProgressMessageBytes)),
      kMaxProgressMessageBytes);
  {
    const std::lock_guard<std::mutex> lock(run_.live_mutex);
    run_.live.progress = {done, total, std::move(text)};
    ++run_.live.progress_version;
  }
  if (run_.on_live_change) run_.on_live_change();
}

absl::Status HandlerContext::SaveCheckpoint(std::string checkpoint) {
  if (checkpoint.size() > kMaxCheckpointBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint: ", checkpoint.size(), " bytes, want at most ",
                     kMaxCheckpointBytes));
  }
  {
    const std::lock_guard<std::mutex> lock(run_.live_mutex);
    run_.live.checkpoint = std::move(checkpoint);
    ++run_.live.checkpoint_version;
  }
  if (run_.on_live_change) run_.on_live_change();
  return absl::OkStatus();
}

}  // namespace leasehold::executor
