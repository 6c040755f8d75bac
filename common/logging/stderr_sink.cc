#include "common/logging/stderr_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "absl/strings/str_cat.h"

namespace leasehold {

bool StderrSink::Writable(int wait_ms) const {
  pollfd poll_fd{fd_, POLLOUT, 0};
  int ready;
  do {
    ready = poll(&poll_fd, 1, wait_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// A pipe that poll calls writable takes PIPE_BUF bytes at once (pipe(7)), and a
// file always does; so no write below waits, unless another process that shares
// the pipe fills it in between.
bool StderrSink::Write(absl::string_view text) {
  constexpr int kRestOfLineMs = 50;
  bool begun = false;
  while (!text.empty()) {
    if (!Writable(begun ? kRestOfLineMs : 0)) return begun;
    const ssize_t written =
        write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return begun;  // Closed, or its disk is full.
    begun = true;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (dropped_ > 0) {
    const std::string note =
        absl::StrCat("(", dropped_, " log lines dropped: nobody read them)\n");
    if (!Write(note)) {
      ++dropped_;
      return;
    }
    dropped_ = 0;
  }
  if (!Write(absl::string_view(line.data(), line.size()))) ++dropped_;
}

}  // namespace leasehold
