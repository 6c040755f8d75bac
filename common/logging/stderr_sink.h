// Writes log lines to a file descriptor without ever waiting for whoever reads
// it: a stalled log collector must not stall a scheduler.
#ifndef COMMON_LOGGING_STDERR_SINK_H_
#define COMMON_LOGGING_STDERR_SINK_H_

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>

#include "absl/strings/string_view.h"

namespace leasehold {

// Thread-safe. A line that would have to wait is dropped; the next one that is
// written says how many were.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  bool Write(absl::string_view text);
  bool Writable(int wait_ms) const;

  const int fd_;
  int64_t dropped_ = 0;
};

}  // namespace leasehold

#endif  // COMMON_LOGGING_STDERR_SINK_H_
