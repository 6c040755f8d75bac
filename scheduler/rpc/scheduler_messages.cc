// ToProto(SchedulerMessage): to the executor.
#include <utility>

#include "common/ids/ids.h"
#include "scheduler/domain/limits.h"
#include "scheduler/rpc/proto_time.h"
#include "scheduler/rpc/session_conversion.h"
#include "scheduler/rpc/task_conversion.h"

namespace leasehold::scheduler {
namespace {

// Entries of small lists in one message: about 60 bytes each at most.
constexpr int kMaxListEntries = 50'000;

using Messages = std::vector<v1::SchedulerMessage>;

void SetLease(const LeaseRef& lease, v1::LeaseRef* out) {
  out->set_task_id(FormatTaskId(lease.task_id));
  out->set_lease_number(lease.lease_number);
}

void SetAck(const ReportAck& ack, v1::ReportAck* out) {
  SetLease(ack.lease, out->mutable_lease());
  out->set_disposition(static_cast<v1::ReportDisposition>(ack.disposition));
}

Messages Convert(WelcomeMessage&& message) {
  Messages out(1);
  v1::Welcome* welcome = out[0].mutable_welcome();
  welcome->set_session_id(message.session_id);
  SetMicros(message.heartbeat_interval_us,
            welcome->mutable_heartbeat_interval());
  SetMicros(message.lease_duration_us, welcome->mutable_lease_duration());
  SetMicros(message.accept_timeout_us, welcome->mutable_accept_timeout());
  // As many as hello named, which is bounded.
  for (const ReportAck& ack : message.held_leases) {
    SetAck(ack, welcome->add_held_leases());
  }
  return out;
}

void SetPayload(Payload&& payload, v1::Payload* out) {
  if (payload.kind == PayloadKind::kJson) {
    out->set_json(std::move(payload.bytes));
  } else if (payload.kind == PayloadKind::kData) {
    out->set_data(std::move(payload.bytes));
  }
}

v1::Lease ToLease(LeaseMessage&& message) {
  v1::Lease lease;
  TaskSpec& spec = message.spec;
  SetLease(message.lease, lease.mutable_lease());
  lease.set_queue(spec.queue);
  lease.set_type(spec.type);
  if (spec.payload.kind != PayloadKind::kNone) {
    SetPayload(std::move(spec.payload), lease.mutable_payload());
  }
  lease.set_attempt(message.attempt);
  lease.set_max_attempts(message.max_attempts);
  SetMicros(message.lease_duration_us, lease.mutable_lease_duration());
  SetMicros(message.attempt_timeout_us, lease.mutable_attempt_timeout());
  if (spec.expire_us != 0) {
    SetMicros(spec.expire_us, lease.mutable_expire_time());
  }
  lease.set_partition_key(spec.partition_key);
  lease.set_idempotency_key(spec.idempotency_key);
  ToProto(spec.labels, lease.mutable_labels());
  lease.set_traceparent(spec.traceparent);
  lease.set_checkpoint(std::move(message.checkpoint));
  if (spec.batch_id != 0) lease.set_batch_id(FormatTaskId(spec.batch_id));
  return lease;
}

Messages Convert(LeasesMessage&& message) {
  Messages out;
  v1::Leases* leases = nullptr;
  size_t bytes = 0;
  for (LeaseMessage& lease : message.leases) {
    v1::Lease converted = ToLease(std::move(lease));
    const size_t size =
        converted.ByteSizeLong() + 8;  // And its tag and length.
    // One lease alone is far below the limit of a message.
    if (leases == nullptr || bytes + size > kMaxLeasesMessageBytes) {
      leases = out.emplace_back().mutable_leases();
      leases->set_heartbeat_sequence(message.heartbeat_sequence);
      bytes = 0;
    }
    bytes += size;
    *leases->add_leases() = std::move(converted);
  }
  return out;
}

// The parts name the same heartbeat; each loses or cancels leases of its own.
Messages Convert(HeartbeatAckMessage&& message) {
  Messages out(1);
  v1::HeartbeatAck* ack = out[0].mutable_heartbeat_ack();
  const auto next = [&] {
    if (ack->lost_size() + ack->cancelled_size() >= kMaxListEntries) {
      ack = out.emplace_back().mutable_heartbeat_ack();
    }
    ack->set_sequence(message.sequence);
  };
  next();
  for (const LeaseRef& lease : message.lost) {
    next();
    SetLease(lease, ack->add_lost());
  }
  for (const LeaseRef& lease : message.cancelled) {
    next();
    SetLease(lease, ack->add_cancelled());
  }
  return out;
}

Messages Convert(ReportAcksMessage&& message) {
  Messages out;
  v1::ReportAcks* acks = nullptr;
  for (const ReportAck& ack : message.acks) {
    if (acks == nullptr || acks->acks_size() >= kMaxListEntries) {
      acks = out.emplace_back().mutable_report_acks();
    }
    SetAck(ack, acks->add_acks());
  }
  return out;
}

Messages Convert(CancelLeasesMessage&& message) {
  Messages out;
  v1::CancelLeases* cancel = nullptr;
  for (const LeaseRef& lease : message.leases) {
    if (cancel == nullptr || cancel->leases_size() >= kMaxListEntries) {
      cancel = out.emplace_back().mutable_cancel_leases();
      cancel->set_reason(message.reason);
    }
    SetLease(lease, cancel->add_leases());
  }
  return out;
}

Messages Convert(DrainMessage&& message) {
  Messages out(1);
  out[0].mutable_drain()->set_reconnect(message.reconnect);
  return out;
}

}  // namespace

std::vector<v1::SchedulerMessage> ToProto(SchedulerMessage message) {
  return std::visit(
      [](auto&& alternative) {
        return Convert(std::forward<decltype(alternative)>(alternative));
      },
      std::move(message));
}

}  // namespace leasehold::scheduler
