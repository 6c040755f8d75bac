#include "executor/handlers/exec_conversation.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace leasehold::executor {
namespace {

constexpr size_t kErrorTailBytes = 4096;
// For what a descendant that escaped the group's KILL may still be writing.
constexpr std::chrono::milliseconds kDrainTime(200);
// How often a child is looked at where the system has no pidfd.
constexpr std::chrono::milliseconds kReapPoll(20);

SteadyTime Now() { return std::chrono::steady_clock::now(); }

// Reads once. False at the end of the stream.
bool ReadSome(const Fd& fd, std::string* out) {
  char buffer[64 << 10];
  const ssize_t size = read(fd.get(), buffer, sizeof(buffer));
  if (size > 0) {
    out->append(buffer, static_cast<size_t>(size));
    return true;
  }
  return size < 0 && (errno == EAGAIN || errno == EINTR);
}

int TimeoutMs(SteadyTime until) {
  if (until == SteadyTime::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - Now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

}  // namespace

ExecConversation::ExecConversation(Subprocess child, absl::string_view input,
                                   size_t max_output_bytes,
                                   absl::Duration kill_grace)
    : child_(std::move(child)),
      input_(input),
      max_output_bytes_(max_output_bytes),
      kill_grace_(kill_grace),
      cancelled_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ExecOutcome ExecConversation::Run(const CancellationToken& token) {
  const int event = cancelled_.get();
  const auto watch = token.OnCancel([event] { eventfd_write(event, 1); });
  if (input_.empty()) child_.input().Close();

  SteadyTime kill_at = SteadyTime::max();
  while (!child_.TryReap(&outcome_.wait_status)) {
    if (token.cancelled() && !terminated_) {
      terminated_ = true;
      child_.SignalGroup(SIGTERM);
      kill_at = Now() + absl::ToChronoNanoseconds(kill_grace_);
    }
    if (outcome_.too_much_output || Now() >= kill_at) {
      child_.SignalGroup(SIGKILL);
      kill_at = SteadyTime::max();
    }
    WaitForEvent(kill_at);
  }
  DrainOutput();
  return std::move(outcome_);
}

void ExecConversation::WaitForEvent(SteadyTime until) {
  const bool output_open = child_.output().open() && !outcome_.too_much_output;
  pollfd fds[] = {
      {child_.input().get(), POLLOUT, 0},
      {output_open ? child_.output().get() : -1, POLLIN, 0},
      {child_.error().get(), POLLIN, 0},
      {child_.pidfd().get(), POLLIN, 0},
      // Seen once it would keep poll from sleeping. It stays open, though: the
      // token may be about to write to it.
      {terminated_ ? -1 : cancelled_.get(), POLLIN, 0},
  };
  // Without them nothing wakes it.
  if (!child_.pidfd().open() || !cancelled_.open()) {
    until = std::min(until, Now() + kReapPoll);
  }
  if (poll(fds, std::size(fds), TimeoutMs(until)) <= 0) return;
  if (fds[0].revents != 0) WriteInput();
  if (fds[1].revents != 0) ReadOutput();
  if (fds[2].revents != 0) ReadError();
}

void ExecConversation::WriteInput() {
  const ssize_t size =
      write(child_.input().get(), input_.data(), input_.size());
  if (size > 0) input_.remove_prefix(static_cast<size_t>(size));
  const bool broken = size < 0 && errno != EAGAIN && errno != EINTR;
  // A child that does not want all of its input is no error.
  if (broken || input_.empty()) child_.input().Close();
}

void ExecConversation::ReadOutput() {
  if (!ReadSome(child_.output(), &outcome_.output)) child_.output().Close();
  if (outcome_.output.size() > max_output_bytes_) {
    outcome_.too_much_output = true;
    outcome_.output.clear();
  }
}

void ExecConversation::ReadError() {
  std::string& tail = outcome_.error_tail;
  if (!ReadSome(child_.error(), &tail)) child_.error().Close();
  if (tail.size() > kErrorTailBytes) {
    tail.erase(0, tail.size() - kErrorTailBytes);
  }
}

void ExecConversation::DrainOutput() {
  const SteadyTime until = Now() + kDrainTime;
  while (!outcome_.too_much_output && Now() < until &&
         (child_.output().open() || child_.error().open())) {
    pollfd fds[] = {{child_.output().get(), POLLIN, 0},
                    {child_.error().get(), POLLIN, 0}};
    if (poll(fds, std::size(fds), TimeoutMs(until)) <= 0) break;
    if (fds[0].revents != 0) ReadOutput();
    if (fds[1].revents != 0) ReadError();
  }
}

}  // namespace leasehold::executor
