#include "scheduler/config/scheduler_config.h"

#include <unistd.h>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ids/ids.h"
#include "common/logging/log.h"
#include "common/text/utf8.h"
#include "scheduler/config/flags.h"

namespace leasehold::scheduler {
namespace {

using MistakeList = std::vector<std::string>;

std::string Flag(absl::string_view name, absl::string_view value) {
  return absl::StrCat("--", name, "=", value);
}
std::string Flag(absl::string_view name, absl::Duration value) {
  return Flag(name, absl::FormatDuration(value));
}

bool CheckDuration(const char* name, absl::Duration value, absl::Duration min,
                   absl::Duration max, MistakeList* mistakes) {
  if (value >= min && value <= max) return true;
  mistakes->push_back(absl::StrCat(Flag(name, value), ": want ",
                                   absl::FormatDuration(min), "-",
                                   absl::FormatDuration(max)));
  return false;
}

LeaseTimes ReadLeaseTimes(MistakeList* mistakes) {
  LeaseTimes times;
  times.lease_duration = absl::GetFlag(FLAGS_lease_duration);
  times.heartbeat_interval = absl::GetFlag(FLAGS_heartbeat_interval);
  times.accept_timeout = absl::GetFlag(FLAGS_accept_timeout);
  CheckDuration("lease_duration", times.lease_duration, absl::Seconds(3),
                absl::Minutes(10), mistakes);
  CheckDuration("heartbeat_interval", times.heartbeat_interval,
                absl::Milliseconds(100), absl::Minutes(3), mistakes);
  CheckDuration("accept_timeout", times.accept_timeout, absl::Seconds(1),
                absl::Minutes(10), mistakes);
  if (times.lease_duration < 3 * times.heartbeat_interval) {
    mistakes->push_back(absl::StrCat(
        Flag("lease_duration", times.lease_duration), " must be at least 3x ",
        Flag("heartbeat_interval", times.heartbeat_interval)));
  }
  return times;
}

EngineBounds ReadBounds(MistakeList* mistakes) {
  EngineBounds bounds;
  for (const BoundFlag& flag : BoundFlags()) {
    const int64_t value = flag.count != nullptr
                              ? absl::GetFlag(*flag.count)
                              : absl::GetFlag(*flag.bytes).bytes;
    const auto show = [&](int64_t number) {
      return flag.count != nullptr ? absl::StrCat(number)
                                   : AbslUnparseFlag(ByteSize{number});
    };
    if (value < flag.min || value > flag.max) {
      mistakes->push_back(absl::StrCat(Flag(flag.name, show(value)), ": want ",
                                       show(flag.min), "-", show(flag.max)));
    } else {
      bounds.*flag.field = static_cast<size_t>(value);
    }
  }
  bounds.read_threads = absl::GetFlag(FLAGS_read_threads);
  if (bounds.read_threads < 1 || bounds.read_threads > 64) {
    mistakes->push_back(
        absl::StrCat(Flag("read_threads", absl::StrCat(bounds.read_threads)),
                     ": want 1-64"));
  }
  return bounds;
}

// host:port, the host perhaps in brackets.
void CheckAddress(const char* name, const std::string& value,
                  MistakeList* mistakes) {
  const size_t colon = value.rfind(':');
  int port = -1;
  const bool well_formed = colon != std::string::npos && colon > 0 &&
                           absl::SimpleAtoi(value.substr(colon + 1), &port) &&
                           port >= 0 && port <= 65535 &&
                           (value.find(':') == colon ||
                            (value.front() == '[' && value[colon - 1] == ']'));
  if (well_formed) return;
  mistakes->push_back(
      absl::StrCat(Flag(name, QuoteForMessage(value)),
                   ": want host:port, such as 127.0.0.1:7070 or [::1]:7070"));
}

MySqlConfig ReadMySql(MistakeList* mistakes) {
  const std::string text = absl::GetFlag(FLAGS_mysql);
  if (text.empty()) {
    mistakes->push_back(
        "--mysql: not set, want \"host=.. user=.. db=.. password_file=..\", "
        "here or in the environment variable LEASEHOLD_MYSQL");
    return {};
  }
  absl::StatusOr<MySqlConfig> config = ParseMySqlConfig(text);
  if (config.ok()) return *std::move(config);
  const std::string message(config.status().message());
  for (absl::string_view line : absl::StrSplit(message, '\n')) {
    mistakes->push_back(absl::StrCat("--mysql: ", line));
  }
  return {};
}

std::string SchedulerId() {
  std::string given = absl::GetFlag(FLAGS_scheduler_id);
  if (!given.empty()) return given;
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return absl::StrCat(host, "-", RandomHex(3));
}

}  // namespace

SchedulerConfig ConfigFromFlags(std::vector<std::string>* mistakes) {
  SchedulerConfig config;
  config.listen = absl::GetFlag(FLAGS_listen);
  config.http_listen = absl::GetFlag(FLAGS_http_listen);
  CheckAddress("listen", config.listen, mistakes);
  if (!config.http_listen.empty()) {
    CheckAddress("http_listen", config.http_listen, mistakes);
  }
  config.mysql = ReadMySql(mistakes);
  config.migrate_only = absl::GetFlag(FLAGS_migrate_only);
  config.engine.leases = ReadLeaseTimes(mistakes);
  config.engine.bounds = ReadBounds(mistakes);
  config.engine.scheduler_id = SchedulerId();
  config.engine.address = config.listen;
  if (config.engine.scheduler_id.size() > 128) {
    mistakes->push_back(absl::StrCat(
        Flag("scheduler_id", QuoteForMessage(config.engine.scheduler_id)),
        ": want at most 128 bytes"));
  }
  config.mysql.read_connections = config.engine.bounds.read_threads;
  config.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  CheckDuration("drain_timeout", config.drain_timeout, absl::Seconds(1),
                absl::Seconds(10), mistakes);
  const absl::Status level = SetLogLevelByName(absl::GetFlag(FLAGS_log_level));
  if (!level.ok()) {
    mistakes->push_back(absl::StrCat("--log_level: ", level.message()));
  }
  return config;
}

}  // namespace leasehold::scheduler
