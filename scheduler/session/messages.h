// The executor protocol in the scheduler's own words: what arrives on a session
// and what leaves it. The same shapes as
// proto/leasehold/v1/executor_service.proto, without gRPC or Protobuf;
// scheduler/rpc converts.
#ifndef SCHEDULER_SESSION_MESSAGES_H_
#define SCHEDULER_SESSION_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// ---- From the executor; already validated for shape and sizes by rpc. ----

struct HelloMessage {
  std::string executor_id;
  std::string incarnation;
  std::vector<std::pair<std::string, std::string>> lanes;  // (queue, type)
  int slots = 0;
  int max_leases = 0;
  std::string version;
  std::string address;  // The peer's.
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<LeaseRef> held_leases;
};

struct AcceptedMessage {
  std::vector<LeaseRef> leases;
};

struct StartedMessage {
  std::vector<LeaseRef> leases;
};

struct LeaseStatus {
  LeaseRef lease;
  bool started = false;
  std::optional<Progress> progress;
  std::optional<std::string> checkpoint;
};

struct ExecutorLoad {
  int running = 0;
  int queued = 0;
  int64_t rejected_total = 0;
  int leaked_slots = 0;
};

struct HeartbeatMessage {
  int64_t sequence = 0;
  std::vector<LeaseStatus> leases;
  ExecutorLoad load;
};

struct LeaseOutcome {  // A result, an error, or a release.
  LeaseRef lease;
  std::variant<Payload, TaskError, Release> outcome;
  bool refused = false;                   // See Report::refused.
  std::optional<std::string> checkpoint;  // Of a release.
};

struct OutcomesMessage {  // Results or Released.
  std::vector<LeaseOutcome> outcomes;
};

struct GoodbyeMessage {};

using ExecutorMessage =
    std::variant<HelloMessage, AcceptedMessage, StartedMessage,
                 HeartbeatMessage, OutcomesMessage, GoodbyeMessage>;

// ---- To the executor ----

struct ReportAck {
  LeaseRef lease;
  ReportDisposition disposition = ReportDisposition::kUnspecified;
};

struct WelcomeMessage {
  std::string session_id;
  int64_t heartbeat_interval_us = 0;
  int64_t lease_duration_us = 0;
  int64_t accept_timeout_us = 0;
  std::vector<ReportAck> held_leases;
};

struct LeaseMessage {
  LeaseRef lease;
  TaskSpec spec;
  std::string checkpoint;
  int attempt = 0;
  int max_attempts = 0;
  int64_t lease_duration_us = 0;
  int64_t attempt_timeout_us = 0;
};

struct LeasesMessage {  // At most 3 MiB of payloads each.
  std::vector<LeaseMessage> leases;
  int64_t heartbeat_sequence = 0;
};

struct HeartbeatAckMessage {
  int64_t sequence = 0;
  std::vector<LeaseRef> lost;
  std::vector<LeaseRef> cancelled;
};

struct ReportAcksMessage {
  std::vector<ReportAck> acks;
};

struct CancelLeasesMessage {
  std::vector<LeaseRef> leases;
  std::string reason;
};

struct DrainMessage {
  bool reconnect = false;
};

using SchedulerMessage =
    std::variant<WelcomeMessage, LeasesMessage, HeartbeatAckMessage,
                 ReportAcksMessage, CancelLeasesMessage, DrainMessage>;

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_MESSAGES_H_
