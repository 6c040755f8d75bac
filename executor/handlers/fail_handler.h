// Fails as its payload says: for trying out retries and dead letters.
#ifndef EXECUTOR_HANDLERS_FAIL_HANDLER_H_
#define EXECUTOR_HANDLERS_FAIL_HANDLER_H_

#include "executor/sdk/handler.h"

namespace leasehold::executor {

// {"error_class": "RETRYABLE", "code": "BOOM", "message": "..",
// "retry_after_ms": 7000, "times": 2}; with `times`, attempts after the first
// `times` succeed and return {"attempt": 3}.
class FailHandler : public Handler {
 public:
  HandlerResult Run(HandlerContext& ctx) override;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_FAIL_HANDLER_H_
