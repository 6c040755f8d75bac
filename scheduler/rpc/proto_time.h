// Protobuf's times and microseconds, which the rest of the scheduler uses.
#ifndef SCHEDULER_RPC_PROTO_TIME_H_
#define SCHEDULER_RPC_PROTO_TIME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace leasehold::scheduler {

// Cut to whole microseconds. Null when outside what Protobuf allows: years 1 to
// 9999 and about 10,000 years of duration, nanoseconds within their second and
// with its sign. So no result overflows.
std::optional<int64_t> ToMicros(const google::protobuf::Timestamp& time);
std::optional<int64_t> ToMicros(const google::protobuf::Duration& duration);

void SetMicros(int64_t micros, google::protobuf::Timestamp* time);
void SetMicros(int64_t micros, google::protobuf::Duration* duration);

// As in an error message: `99ms`, or the fields as they came when they are out
// of range.
std::string Show(const google::protobuf::Duration& duration);
std::string Show(const google::protobuf::Timestamp& time);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_PROTO_TIME_H_
