#include "scheduler/rpc/proto_time.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace leasehold::scheduler {
namespace {

constexpr int64_t kMicros = 1'000'000;
constexpr int64_t kFirstSecond = -62'135'596'800;  // 0001-01-01T00:00:00Z
constexpr int64_t kLastSecond = 253'402'300'799;   // 9999-12-31T23:59:59Z
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;
constexpr int32_t kMaxNanos = 999'999'999;

std::string ShowFields(int64_t seconds, int32_t nanos) {
  return absl::StrCat("{seconds: ", seconds, " nanos: ", nanos, "}");
}

}  // namespace

std::optional<int64_t> ToMicros(const google::protobuf::Timestamp& time) {
  if (time.seconds() < kFirstSecond || time.seconds() > kLastSecond ||
      time.nanos() < 0 || time.nanos() > kMaxNanos) {
    return std::nullopt;
  }
  return time.seconds() * kMicros + time.nanos() / 1000;
}

std::optional<int64_t> ToMicros(const google::protobuf::Duration& duration) {
  const int64_t seconds = duration.seconds();
  const int32_t nanos = duration.nanos();
  if (seconds < -kMaxDurationSeconds || seconds > kMaxDurationSeconds ||
      nanos < -kMaxNanos || nanos > kMaxNanos || (seconds > 0 && nanos < 0) ||
      (seconds < 0 && nanos > 0)) {
    return std::nullopt;
  }
  return seconds * kMicros + nanos / 1000;
}

void SetMicros(int64_t micros, google::protobuf::Timestamp* time) {
  int64_t seconds = micros / kMicros;
  int64_t rest = micros % kMicros;
  if (rest < 0) {  // Nanoseconds of a Timestamp count forward.
    rest += kMicros;
    --seconds;
  }
  time->set_seconds(seconds);
  time->set_nanos(static_cast<int32_t>(rest * 1000));
}

void SetMicros(int64_t micros, google::protobuf::Duration* duration) {
  duration->set_seconds(micros / kMicros);
  duration->set_nanos(static_cast<int32_t>(micros % kMicros * 1000));
}

std::string Show(const google::protobuf::Duration& duration) {
  if (!ToMicros(duration)) {
    return ShowFields(duration.seconds(), duration.nanos());
  }
  return absl::FormatDuration(absl::Seconds(duration.seconds()) +
                              absl::Nanoseconds(duration.nanos()));
}

std::string Show(const google::protobuf::Timestamp& time) {
  if (!ToMicros(time)) return ShowFields(time.seconds(), time.nanos());
  return absl::FormatTime(
      absl::RFC3339_full,
      absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()),
      absl::UTCTimeZone());
}

}  // namespace leasehold::scheduler
