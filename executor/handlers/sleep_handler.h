// Sleeps, and returns how long: {"slept_ms": 1500}.
#ifndef EXECUTOR_HANDLERS_SLEEP_HANDLER_H_
#define EXECUTOR_HANDLERS_SLEEP_HANDLER_H_

#include "absl/time/time.h"
#include "executor/sdk/handler.h"

namespace leasehold::executor {

class SleepHandler : public Handler {
 public:
  explicit SleepHandler(absl::Duration default_duration)
      : default_duration_(default_duration) {}

  // The payload's {"ms": 1500} wins over the default.
  HandlerResult Run(HandlerContext& ctx) override;

 private:
  const absl::Duration default_duration_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_SLEEP_HANDLER_H_
