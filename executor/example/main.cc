// The smallest executor with a handler of its own; see executor/README.md.
#include "absl/strings/ascii.h"
#include "executor/sdk/executor.h"

using namespace leasehold::executor;  // NOLINT: an example.

int main() {
  leasehold::SignalWaiter signals;  // First of all, before any thread starts.
  Registry registry;
  const absl::Status registered =
      registry.Register("documents", "shout", [](HandlerContext& ctx) {
        return HandlerResult::Data(absl::AsciiStrToUpper(ctx.payload().bytes));
      });
  if (!registered.ok()) return 2;
  auto executor =
      Executor::Create({.schedulers = {"127.0.0.1:7070"}}, std::move(registry));
  if (!executor.ok()) return 2;
  return (*executor)->RunUntilSignal(signals).ok() ? 0 : 1;
}
