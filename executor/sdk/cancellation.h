// How a handler learns that it should stop.
//
//   while (!done) {
//     if (ctx.cancellation().cancelled()) return HandlerResult::Cancelled();
//     ...
//   }
//   ctx.cancellation().WaitFor(absl::Seconds(1));            // instead of
//   sleep auto watch = ctx.cancellation().OnCancel([&] { Abort(); });
#ifndef EXECUTOR_SDK_CANCELLATION_H_
#define EXECUTOR_SDK_CANCELLATION_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace leasehold::executor {

enum class CancelReason {
  kNone,
  kCancelled,  // Somebody asked for the task's cancellation.
  kTimeout,    // attempt_timeout has passed.
  kLeaseLost,  // The task is no longer this executor's.
  kDraining,   // The executor leaves and its patience is over.
};

// "cancelled", "timeout", ...: for logs.
absl::string_view CancelReasonName(CancelReason reason);

// Thread-safe and cheap to copy. All copies are one token.
class CancellationToken {
 public:
  struct State;

  // Ends the watch when destroyed: the callback is then not running and never
  // runs again. Not to be destroyed by its own callback.
  class [[nodiscard]] Watch {
   public:
    Watch() = default;
    Watch(std::shared_ptr<State> state, int id)
        : state_(std::move(state)), id_(id) {}
    Watch(Watch&& other) noexcept = default;
    Watch& operator=(Watch&& other) noexcept;
    ~Watch();

   private:
    std::shared_ptr<State> state_;
    int id_ = 0;
  };

  explicit CancellationToken(std::shared_ptr<State> state)
      : state_(std::move(state)) {}

  bool cancelled() const { return reason() != CancelReason::kNone; }
  // The first reason; it does not change any more.
  CancelReason reason() const;

  // Waits until cancelled or `timeout` has passed. True when cancelled.
  bool WaitFor(absl::Duration timeout) const;

  // Calls `callback` once, from the thread that cancels; at once, from this
  // one, when that has happened already. It must be quick and must not throw.
  Watch OnCancel(std::function<void()> callback) const;

 private:
  std::shared_ptr<State> state_;
};

// The side that cancels. Thread-safe.
class CancellationSource {
 public:
  CancellationSource();

  CancellationToken token() const { return CancellationToken(state_); }
  CancelReason reason() const { return token().reason(); }
  // False when it was cancelled before; the first reason stays.
  bool Cancel(CancelReason reason);

 private:
  std::shared_ptr<CancellationToken::State> state_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_CANCELLATION_H_
