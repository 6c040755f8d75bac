#include "scheduler/config/flags.h"

#include <cstdint>

#include "scheduler/engine/options.h"

using leasehold::scheduler::ByteSize;
using leasehold::scheduler::EngineBounds;

namespace {

// Abseil wants constant defaults as values; options.h is where they stand.
constexpr EngineBounds kBounds;

}  // namespace

// There is no authentication yet, so the default serves this machine only.
ABSL_FLAG(std::string, listen, "127.0.0.1:7070",
          "Address for gRPC: clients, operators and executors. Nothing is "
          "authenticated: give another address only in a network you trust");
ABSL_FLAG(std::string, http_listen, "127.0.0.1:7071",
          "Address for /healthz, /readyz and /metrics; empty turns it off");
ABSL_FLAG(std::string, mysql, "",
          "Database, such as \"host=127.0.0.1 port=3306 user=leasehold "
          "db=leasehold password_file=/run/secrets/db\"; also unix_socket, "
          "ssl_ca, ssl_cert and ssl_key");
ABSL_FLAG(bool, migrate_only, false,
          "Bring the database's schema up to date and exit");
ABSL_FLAG(absl::Duration, lease_duration, absl::Seconds(15),
          "How long a lease lasts without a heartbeat, 3s-10m. Work of an "
          "executor that dies is run elsewhere after that time");
ABSL_FLAG(absl::Duration, heartbeat_interval, absl::Seconds(5),
          "How often executors renew their leases; at most a third of "
          "--lease_duration");
ABSL_FLAG(absl::Duration, accept_timeout, absl::Seconds(10),
          "An executor that has not accepted a lease for that long loses it, "
          "1s-10m");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(8),
          "On SIGTERM, how long running calls may take to end, 1s-10s");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning, error or off");
ABSL_FLAG(std::string, scheduler_id, "",
          "Name of this replica in logs and session ids; by default made from "
          "the host's name");
ABSL_FLAG(int, read_threads, kBounds.read_threads,
          "Threads, each with a database connection, that read for clients, "
          "1-64");

ABSL_FLAG(
    int64_t, submit_queue_tasks, kBounds.submit_queue_tasks,
    "Tasks that may wait to be stored; beyond, submits get RESOURCE_EXHAUSTED");
ABSL_FLAG(int64_t, submit_batch_tasks, kBounds.submit_batch_tasks,
          "Most tasks stored in one transaction");
ABSL_FLAG(int64_t, claim_batch_tasks, kBounds.claim_batch_tasks,
          "Most tasks leased by one statement");
ABSL_FLAG(int64_t, finish_queue_reports, kBounds.finish_queue_reports,
          "Reports that may wait to be stored; beyond, executors keep them and "
          "send them again");
ABSL_FLAG(int64_t, finish_batch_reports, kBounds.finish_batch_reports,
          "Most reports stored in one transaction");
ABSL_FLAG(int64_t, ready_index_tasks, kBounds.ready_index_tasks,
          "Waiting tasks known in memory; the rest stays in the database");
ABSL_FLAG(int64_t, read_queue_calls, kBounds.read_queue_calls,
          "Reads that may wait for a connection");
ABSL_FLAG(int64_t, watches, kBounds.watches,
          "Most WatchTask and WaitTask calls at a time");
ABSL_FLAG(int64_t, sessions, kBounds.sessions,
          "Most executors connected to this replica");

ABSL_FLAG(ByteSize, submit_queue_bytes,
          ByteSize{static_cast<int64_t>(kBounds.submit_queue_bytes)},
          "Payload bytes that may wait to be stored");
ABSL_FLAG(ByteSize, submit_batch_bytes,
          ByteSize{static_cast<int64_t>(kBounds.submit_batch_bytes)},
          "Most payload bytes in one transaction");
ABSL_FLAG(ByteSize, finish_queue_bytes,
          ByteSize{static_cast<int64_t>(kBounds.finish_queue_bytes)},
          "Result bytes that may wait to be stored");
ABSL_FLAG(ByteSize, finish_batch_bytes,
          ByteSize{static_cast<int64_t>(kBounds.finish_batch_bytes)},
          "Most result bytes in one transaction");
ABSL_FLAG(ByteSize, ready_index_payload_bytes,
          ByteSize{static_cast<int64_t>(kBounds.ready_index_payload_bytes)},
          "Payload bytes kept in memory for tasks that wait");
ABSL_FLAG(
    ByteSize, session_outbox_bytes,
    ByteSize{static_cast<int64_t>(kBounds.session_outbox_bytes)},
    "Bytes that may wait for one executor to read; beyond, it is cut off");

namespace leasehold::scheduler {

const std::vector<BoundFlag>& BoundFlags() {
  static const auto& flags = *new std::vector<BoundFlag>{
      {"submit_queue_tasks", &EngineBounds::submit_queue_tasks,
       &FLAGS_submit_queue_tasks, nullptr, 1000, 10'000'000},
      {"submit_batch_tasks", &EngineBounds::submit_batch_tasks,
       &FLAGS_submit_batch_tasks, nullptr, 1, 10'000},
      {"claim_batch_tasks", &EngineBounds::claim_batch_tasks,
       &FLAGS_claim_batch_tasks, nullptr, 1, 400},
      {"finish_queue_reports", &EngineBounds::finish_queue_reports,
       &FLAGS_finish_queue_reports, nullptr, 1000, 10'000'000},
      {"finish_batch_reports", &EngineBounds::finish_batch_reports,
       &FLAGS_finish_batch_reports, nullptr, 1, 10'000},
      {"ready_index_tasks", &EngineBounds::ready_index_tasks,
       &FLAGS_ready_index_tasks, nullptr, 1000, 10'000'000},
      {"read_queue_calls", &EngineBounds::read_queue_calls,
       &FLAGS_read_queue_calls, nullptr, 10, 1'000'000},
      {"watches", &EngineBounds::watches, &FLAGS_watches, nullptr, 1,
       1'000'000},
      {"sessions", &EngineBounds::sessions, &FLAGS_sessions, nullptr, 1,
       100'000},
      {"submit_queue_bytes", &EngineBounds::submit_queue_bytes, nullptr,
       &FLAGS_submit_queue_bytes, 4 << 20, int64_t{16} << 30},
      {"submit_batch_bytes", &EngineBounds::submit_batch_bytes, nullptr,
       &FLAGS_submit_batch_bytes, 1 << 20, 64 << 20},
      {"finish_queue_bytes", &EngineBounds::finish_queue_bytes, nullptr,
       &FLAGS_finish_queue_bytes, 4 << 20, int64_t{16} << 30},
      {"finish_batch_bytes", &EngineBounds::finish_batch_bytes, nullptr,
       &FLAGS_finish_batch_bytes, 1 << 20, 64 << 20},
      {"ready_index_payload_bytes", &EngineBounds::ready_index_payload_bytes,
       nullptr, &FLAGS_ready_index_payload_bytes, 0, int64_t{64} << 30},
      {"session_outbox_bytes", &EngineBounds::session_outbox_bytes, nullptr,
       &FLAGS_session_outbox_bytes, 4 << 20, 1 << 30},
  };
  return flags;
}

const std::vector<FlagGroup>& FlagGroups() {
  static const auto& groups = *new std::vector<FlagGroup>{
      {"Addresses", {"listen", "http_listen"}},
      {"Database", {"mysql", "migrate_only"}},
      {"Leases", {"lease_duration", "heartbeat_interval", "accept_timeout"}},
      {"Process", {"drain_timeout", "log_level", "scheduler_id"}},
      {"Bounds in memory",
       {"submit_queue_tasks", "submit_queue_bytes", "finish_queue_reports",
        "finish_queue_bytes", "ready_index_tasks", "ready_index_payload_bytes",
        "read_queue_calls", "watches", "sessions", "session_outbox_bytes"}},
      {"Database work",
       {"read_threads", "submit_batch_tasks", "submit_batch_bytes",
        "claim_batch_tasks", "finish_batch_reports", "finish_batch_bytes"}},
  };
  return groups;
}

}  // namespace leasehold::scheduler
