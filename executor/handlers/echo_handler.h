// Returns its payload: for trying out, and for measuring everything else.
#ifndef EXECUTOR_HANDLERS_ECHO_HANDLER_H_
#define EXECUTOR_HANDLERS_ECHO_HANDLER_H_

#include "executor/sdk/handler.h"

namespace leasehold::executor {

class EchoHandler : public Handler {
 public:
  HandlerResult Run(HandlerContext& ctx) override {
    return HandlerResult::Success(ctx.TakePayload());
  }
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_ECHO_HANDLER_H_
