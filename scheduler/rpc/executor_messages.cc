// ReadExecutorMessage: from the executor.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/ids/ids.h"
#include "common/logging/rate_limited_log.h"
#include "common/text/json.h"
#include "common/text/utf8.h"
#include "scheduler/domain/limits.h"
#include "scheduler/rpc/proto_time.h"
#include "scheduler/rpc/session_conversion.h"
#include "scheduler/rpc/task_conversion.h"
#include "scheduler/rpc/validation.h"

namespace leasehold::scheduler {
namespace {

std::optional<LeaseRef> ReadLease(const std::string& field,
                                  const v1::LeaseRef& lease,
                                  Mistakes* mistakes) {
  const std::optional<int64_t> id = ParseTaskId(lease.task_id());
  if (!id) {
    mistakes->Add(field + ".task_id", QuoteForMessage(lease.task_id()),
                  "the id of a task");
  }
  if (lease.lease_number() < 1) {
    mistakes->Add(field + ".lease_number", absl::StrCat(lease.lease_number()),
                  ">= 1");
  }
  if (!id || lease.lease_number() < 1) return std::nullopt;
  return LeaseRef{*id, lease.lease_number()};
}

template <class List>
std::vector<LeaseRef> ReadLeases(const std::string& field, const List& list,
                                 Mistakes* mistakes) {
  std::vector<LeaseRef> leases;
  leases.reserve(static_cast<size_t>(list.size()));
  for (int i = 0; i < list.size(); ++i) {
    if (const auto lease = ReadLease(absl::StrCat(field, "[", i, "]"),
                                     list.Get(i), mistakes)) {
      leases.push_back(*lease);
    }
  }
  return leases;
}

// Of what an executor holds or did hold: its leases of one task are few, and
// each is one statement more to renew.
void CheckHeld(const std::string& field, std::vector<LeaseRef> leases,
               Mistakes* mistakes) {
  std::sort(leases.begin(), leases.end());
  for (size_t i = 0; i + kMaxLeasesOfATask < leases.size(); ++i) {
    const TaskId id = leases[i].task_id;
    if (leases[i + kMaxLeasesOfATask].task_id != id) continue;
    mistakes->Add(
        field,
        absl::StrCat("more than ", kMaxLeasesOfATask, " leases of task ", id),
        absl::StrCat("at most ", kMaxLeasesOfATask, " of a task"));
    return;
  }
}

void CheckCount(const std::string& field, int count, Mistakes* mistakes) {
  if (count <= kMaxHeldLeases) return;
  mistakes->Add(field, absl::StrCat(count, " leases"),
                absl::StrCat("at most ", kMaxHeldLeases));
}

void CheckIdentity(const char* field, const std::string& value,
                   size_t max_bytes, Mistakes* mistakes) {
  // Shown in logs, tables and terminals.
  const bool control = std::any_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (value.empty() || value.size() > max_bytes || control) {
    mistakes->Add(
        field, QuoteForMessage(value),
        absl::StrCat("1-", max_bytes, " bytes without control characters"));
  }
}

void ReadSubscriptions(const v1::Hello& hello, HelloMessage* out,
                       Mistakes* mistakes) {
  for (int i = 0; i < hello.subscriptions_size(); ++i) {
    const v1::Subscription& subscription = hello.subscriptions(i);
    const std::string path = absl::StrCat("hello.subscriptions[", i, "].");
    if (!IsQueueName(subscription.queue())) {
      mistakes->Add(path + "queue", QuoteForMessage(subscription.queue()),
                    "1-64 of [a-z0-9._-]");
    }
    if (subscription.types().empty()) {
      mistakes->Add(path + "types", "empty", "at least one type");
    }
    for (int j = 0; j < subscription.types_size(); ++j) {
      if (!IsTypeName(subscription.types(j))) {
        mistakes->Add(absl::StrCat(path, "types[", j, "]"),
                      QuoteForMessage(subscription.types(j)),
                      "1-64 of [A-Za-z0-9._-]");
      }
      out->lanes.emplace_back(subscription.queue(), subscription.types(j));
    }
  }
  std::sort(out->lanes.begin(), out->lanes.end());
  out->lanes.erase(std::unique(out->lanes.begin(), out->lanes.end()),
                   out->lanes.end());
  if (out->lanes.empty() || out->lanes.size() > kMaxSubscribedLanes) {
    mistakes->Add("hello.subscriptions",
                  absl::StrCat(out->lanes.size(), " pairs of queue and type"),
                  absl::StrCat("1-", kMaxSubscribedLanes));
  }
}

HelloMessage ReadHello(const v1::Hello& hello, const std::string& address,
                       Mistakes* mistakes) {
  CheckIdentity("hello.executor_id", hello.executor_id(), kMaxExecutorIdBytes,
                mistakes);
  CheckIdentity("hello.incarnation", hello.incarnation(), kMaxIncarnationBytes,
                mistakes);
  if (hello.slots() < 1 || hello.slots() > kMaxSlots) {
    mistakes->Add("hello.slots", absl::StrCat(hello.slots()),
                  absl::StrCat("1-", kMaxSlots));
  }
  if (hello.max_leases() < hello.slots() || hello.max_leases() > kMaxSlots) {
    mistakes->Add("hello.max_leases", absl::StrCat(hello.max_leases()),
                  absl::StrCat("at least slots: ", hello.slots(), ", at most ",
                               kMaxSlots));
  }
  CheckLabels("hello.labels", hello.labels(), mistakes);
  CheckCount("hello.held_leases", hello.held_leases_size(), mistakes);
  HelloMessage out;
  out.executor_id = hello.executor_id();
  out.incarnation = hello.incarnation();
  ReadSubscriptions(hello, &out, mistakes);
  out.slots = hello.slots();
  out.max_leases = hello.max_leases();
  out.version = TruncateUtf8(hello.version(), kMaxVersionBytes);
  out.address = address;
  out.labels = ToLabels(hello.labels());
  out.held_leases =
      ReadLeases("hello.held_leases", hello.held_leases(), mistakes);
  CheckHeld("hello.held_leases", out.held_leases, mistakes);
  return out;
}

// Too large: dropped, and the one before it stays. A handler's mistake must not
// cost its executor the stream.
std::optional<std::string> ReadCheckpoint(std::string* checkpoint,
                                          const LeaseRef& lease) {
  if (checkpoint->empty()) return std::nullopt;
  if (checkpoint->size() > kMaxCheckpointBytes) {
    static RateLimitedLog log;
    log.Warning("checkpoint dropped", {{"task", lease.task_id},
                                       {"bytes", checkpoint->size()},
                                       {"max_bytes", kMaxCheckpointBytes}});
    return std::nullopt;
  }
  return std::move(*checkpoint);
}

HeartbeatMessage ReadHeartbeat(v1::Heartbeat* heartbeat, Mistakes* mistakes) {
  HeartbeatMessage out;
  out.sequence = heartbeat->sequence();
  out.load = {heartbeat->load().running(), heartbeat->load().queued(),
              heartbeat->load().rejected_total(),
              heartbeat->load().leaked_slots()};
  CheckCount("heartbeat.leases", heartbeat->leases_size(), mistakes);
  if (heartbeat->leases_size() > kMaxHeldLeases) return out;
  out.leases.reserve(static_cast<size_t>(heartbeat->leases_size()));
  std::vector<LeaseRef> named;
  for (int i = 0; i < heartbeat->leases_size(); ++i) {
    v1::LeaseStatus* status = heartbeat->mutable_leases(i);
    const auto lease =
        ReadLease(absl::StrCat("heartbeat.leases[", i, "].lease"),
                  status->lease(), mistakes);
    if (!lease) continue;
    named.push_back(*lease);
    LeaseStatus& read = out.leases.emplace_back();
    read.lease = *lease;
    read.started = status->started();
    if (status->has_progress()) {
      const v1::Progress& progress = status->progress();
      read.progress =
          Progress{progress.done(), progress.total(),
                   TruncateUtf8(progress.message(), kMaxProgressMessageBytes)};
    }
    read.checkpoint = ReadCheckpoint(status->mutable_checkpoint(), *lease);
  }
  CheckHeld("heartbeat.leases", std::move(named), mistakes);
  return out;
}

ErrorClass ReadErrorClass(int value) {
  // LEASE_EXPIRED is the scheduler's own finding; from an executor it is no
  // more than a retryable error. So is a class of a newer executor.
  if (!v1::ErrorClass_IsValid(value) ||
      value == v1::ERROR_CLASS_LEASE_EXPIRED) {
    return ErrorClass::kRetryable;
  }
  return static_cast<ErrorClass>(value);
}

TaskError ReadError(const v1::TaskError& error) {
  TaskError out;
  out.error_class = ReadErrorClass(error.error_class());
  out.code = TruncateUtf8(error.code(), kMaxErrorCodeBytes);
  out.message = TruncateUtf8(error.message(), kMaxErrorMessageBytes);
  out.retry_after_us = std::clamp<int64_t>(
      ToMicros(error.retry_after()).value_or(0), 0, kMaxRetryAfterUs);
  return out;
}

void Refuse(const char* code, std::string message, LeaseOutcome* out) {
  out->refused = true;
  out->outcome = TaskError{ErrorClass::kNonRetryable, code, std::move(message),
                           /*retry_after_us=*/0};
}

void ReadResult(v1::Payload* result, LeaseOutcome* out) {
  const bool json = result->kind_case() == v1::Payload::kJson;
  const size_t bytes = json ? result->json().size() : result->data().size();
  if (bytes > kMaxResultBytes) {
    return Refuse("RESULT_TOO_LARGE",
                  absl::StrCat("result: ", bytes, " bytes, want at most ",
                               kMaxResultBytes),
                  out);
  }
  if (result->kind_case() == v1::Payload::KIND_NOT_SET) {
    out->outcome = Payload{};
  } else if (!json) {
    out->outcome =
        Payload{PayloadKind::kData, std::move(*result->mutable_data())};
  } else if (const absl::Status valid = ValidateJson(result->json());
             !valid.ok()) {
    Refuse("INVALID_RESULT", absl::StrCat("result.json: ", valid.message()),
           out);
  } else {
    out->outcome =
        Payload{PayloadKind::kJson, std::move(*result->mutable_json())};
  }
}

OutcomesMessage ReadResults(v1::Results* results, Mistakes* mistakes) {
  OutcomesMessage out;
  out.outcomes.reserve(static_cast<size_t>(results->results_size()));
  for (int i = 0; i < results->results_size(); ++i) {
    v1::TaskResult* result = results->mutable_results(i);
    const auto lease = ReadLease(absl::StrCat("results.results[", i, "].lease"),
                                 result->lease(), mistakes);
    if (!lease) continue;
    LeaseOutcome& read = out.outcomes.emplace_back();
    read.lease = *lease;
    switch (result->outcome_case()) {
      case v1::TaskResult::kResult:
        ReadResult(result->mutable_result(), &read);
        break;
      case v1::TaskResult::kError:
        read.outcome = ReadError(result->error());
        break;
      case v1::TaskResult::OUTCOME_NOT_SET:
        // Perhaps an outcome of a newer executor's; taking it for a success
        // would be wrong.
        Refuse("INVALID_RESULT", "neither result nor error is set", &read);
        break;
    }
  }
  return out;
}

Release ReadRelease(const v1::LeaseRelease& release) {
  Release out;
  if (v1::ReleaseReason_IsValid(release.reason())) {
    out.reason = static_cast<ReleaseReason>(release.reason());
  }
  if (release.has_delay()) {
    out.delay_us = std::clamp<int64_t>(ToMicros(release.delay()).value_or(0), 0,
                                       kMaxReleaseDelayUs);
  }
  return out;
}

OutcomesMessage ReadReleased(v1::Released* released, Mistakes* mistakes) {
  OutcomesMessage out;
  out.outcomes.reserve(static_cast<size_t>(released->leases_size()));
  for (int i = 0; i < released->leases_size(); ++i) {
    v1::LeaseRelease* release = released->mutable_leases(i);
    const auto lease = ReadLease(absl::StrCat("released.leases[", i, "].lease"),
                                 release->lease(), mistakes);
    if (!lease) continue;
    LeaseOutcome& read = out.outcomes.emplace_back();
    read.lease = *lease;
    read.outcome = ReadRelease(*release);
    read.checkpoint = ReadCheckpoint(release->mutable_checkpoint(), *lease);
  }
  return out;
}

ExecutorMessage Read(v1::ExecutorMessage* message, const std::string& address,
                     Mistakes* mistakes) {
  switch (message->message_case()) {
    case v1::ExecutorMessage::kHello:
      return ReadHello(message->hello(), address, mistakes);
    case v1::ExecutorMessage::kAccepted:
      return AcceptedMessage{ReadLeases(
          "accepted.leases", message->accepted().leases(), mistakes)};
    case v1::ExecutorMessage::kStarted:
      return StartedMessage{
          ReadLeases("started.leases", message->started().leases(), mistakes)};
    case v1::ExecutorMessage::kHeartbeat:
      return ReadHeartbeat(message->mutable_heartbeat(), mistakes);
    case v1::ExecutorMessage::kResults:
      return ReadResults(message->mutable_results(), mistakes);
    case v1::ExecutorMessage::kReleased:
      return ReadReleased(message->mutable_released(), mistakes);
    case v1::ExecutorMessage::kRowResults:
      mistakes->AddText("row_results",
                        "no rows have been leased to this executor");
      break;
    case v1::ExecutorMessage::kGoodbye:
      break;
    case v1::ExecutorMessage::MESSAGE_NOT_SET:
      mistakes->AddText("message", "not set, want one of ExecutorMessage");
      break;
  }
  return GoodbyeMessage{};
}

}  // namespace

absl::StatusOr<ExecutorMessage> ReadExecutorMessage(
    v1::ExecutorMessage* message, const std::string& address) {
  Mistakes mistakes;
  const size_t bytes = message->ByteSizeLong();
  // One result that is far too large must fail its task, not its executor,
  // which would send it again for ever.
  const bool one_result =
      message->has_results() && message->results().results_size() == 1;
  if (bytes > kMaxStreamMessageBytes && !one_result) {
    mistakes.Add("message", absl::StrCat(bytes, " bytes"),
                 absl::StrCat("at most ", kMaxStreamMessageBytes));
    return mistakes.ToStatus();
  }
  ExecutorMessage read = Read(message, address, &mistakes);
  if (!mistakes.empty()) return mistakes.ToStatus();
  return read;
}

}  // namespace leasehold::scheduler
