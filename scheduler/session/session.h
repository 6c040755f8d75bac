// One executor's session: the rules of OpenSession, without gRPC.
//
// The transport (scheduler/rpc) hands every message in, in order, and
// implements SessionSink for what goes out. Nothing here blocks or touches the
// database: work is posted to the batchers, whose threads call back.
#ifndef SCHEDULER_SESSION_SESSION_H_
#define SCHEDULER_SESSION_SESSION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/session/messages.h"

namespace leasehold::scheduler {

// The outgoing half of a stream. Thread-safe; never blocks and never calls back
// into the session. Both are no-ops once the stream has ended.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Messages leave in the order of the calls. When the outbox is over its
  // bound, the sink drops the stream by itself: the peer does not read.
  virtual void Send(SchedulerMessage message) = 0;
  // Ends the stream with `status` once what was sent before has been written.
  virtual void Close(absl::Status status) = 0;
};

// The incoming half. Thread-safe, though messages must come in stream order.
class Session {
 public:
  virtual ~Session() = default;
  // A message that breaks the protocol makes the session close itself with
  // INVALID_ARGUMENT, which names the message.
  virtual void OnMessage(ExecutorMessage message) = 0;
  // The stream is over, for whatever reason; its leases go on. No Send after.
  virtual void OnStreamEnded() = 0;
};

class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // A session for a new stream. RESOURCE_EXHAUSTED: too many sessions;
  // UNAVAILABLE: draining.
  virtual absl::StatusOr<std::shared_ptr<Session>> OpenSession(
      std::shared_ptr<SessionSink> sink) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_SESSION_H_
