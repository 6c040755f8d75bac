#include "executor/sdk/executor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ids/ids.h"
#include "common/logging/log.h"
#include "common/status/status_macros.h"
#include "common/text/host_port.h"
#include "common/text/utf8.h"
#include "executor/sdk/session_client.h"

namespace leasehold::executor {
namespace {

constexpr int kMaxSlots = 1024;
constexpr int kMaxLeases = 4096;
constexpr size_t kMaxExecutorIdBytes = 128;
constexpr size_t kMaxHostBytes = 100;  // Of the default id.
constexpr absl::Duration kStopPoll = absl::Milliseconds(250);

// Two executors on one host must not have one name, since the newer would send
// the older away. Nothing is lost by a new name at each start: leases belong to
// the incarnation, which is new anyway.
std::string DefaultId() {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
    return absl::StrCat("executor-", RandomHex(3));
  }
  return absl::StrCat(TruncateUtf8(SanitizeUtf8(host), kMaxHostBytes), "-",
                      RandomHex(3));
}

void FillDefaults(ExecutorOptions* options) {
  if (options->executor_id.empty()) options->executor_id = DefaultId();
  if (options->slots == 0) {
    options->slots = std::clamp(
        static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxSlots);
  }
  if (options->max_leases == 0) {
    options->max_leases = std::clamp(2 * options->slots, 1, kMaxLeases);
  }
}

}  // namespace

absl::Status CheckOptions(ExecutorOptions options) {
  FillDefaults(&options);
  std::vector<std::string> mistakes;
  const auto want = [&](bool ok, auto... parts) {
    if (!ok) mistakes.push_back(absl::StrCat(parts...));
  };
  want(!options.schedulers.empty(), "scheduler: none, want host:port");
  for (const std::string& address : options.schedulers) {
    want(IsHostPort(address), "scheduler: ", QuoteForMessage(address),
         ", want host:port, such as 127.0.0.1:7070");
  }
  want(options.executor_id.size() <= kMaxExecutorIdBytes &&
           IsValidUtf8(options.executor_id) &&
           absl::c_none_of(options.executor_id, absl::ascii_iscntrl),
       "executor_id: ", QuoteForMessage(options.executor_id), ", want 1-",
       kMaxExecutorIdBytes, " bytes of UTF-8 without control characters");
  want(options.slots >= 1 && options.slots <= kMaxSlots,
       "slots: ", options.slots, ", want 1-", kMaxSlots);
  const int min_leases = std::clamp(options.slots, 1, kMaxSlots);
  want(options.max_leases >= min_leases && options.max_leases <= kMaxLeases,
       "max_leases: ", options.max_leases, ", want ", min_leases, "-",
       kMaxLeases, ", no less than slots");
  want(options.drain_timeout >= absl::ZeroDuration(),
       "drain_timeout: ", absl::FormatDuration(options.drain_timeout),
       ", want 0 or more");
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    ExecutorOptions options, Registry registry) {
  LEASEHOLD_RETURN_IF_ERROR(CheckOptions(options));
  if (registry.empty()) {
    return absl::InvalidArgumentError(
        "queue: none, want at least one with a handler");
  }
  FillDefaults(&options);
  return std::unique_ptr<Executor>(
      new Executor(std::move(options), std::move(registry)));
}

Executor::Executor(ExecutorOptions options, Registry registry)
    : options_(std::move(options)), registry_(std::move(registry)) {
  SessionClient::Options client;
  client.schedulers = options_.schedulers;
  client.identity = {options_.executor_id, RandomHex(16),  options_.version,
                     options_.labels,      options_.slots, options_.max_leases};
  client.runner.slots = options_.slots;
  client.runner.max_runs = options_.max_leases;
  client.runner.leak_grace = options_.leak_grace;
  client.reconnect_initial = options_.reconnect_initial;
  client.reconnect_max = options_.reconnect_max;
  client.on_leave = [this](absl::Status reason) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      reason_ = std::move(reason);
    }
    Stop();
  };
  client_ = std::make_unique<SessionClient>(std::move(client), &registry_);
}

Executor::~Executor() = default;

absl::Status Executor::Run() {
  LogInfo("executor starts", {{"executor", options_.executor_id},
                              {"slots", options_.slots},
                              {"max_leases", options_.max_leases}});
  client_->Start();
  WaitForStop();
  Drain();
  client_->Leave();
  const std::lock_guard<std::mutex> lock(mutex_);
  LogInfo("executor leaves",
          {{"executor", options_.executor_id}, {"status", reason_}});
  finished_ = true;
  return reason_;
}

absl::Status Executor::RunUntilSignal(SignalWaiter& signals) {
  std::thread watcher([&] {
    while (!finished()) {
      const std::optional<int> signal = signals.WaitFor(kStopPoll);
      if (!signal.has_value()) continue;
      LogInfo("signal received, draining", {{"signal", *signal}});
      Stop();
    }
  });
  absl::Status status = Run();
  watcher.join();
  return status;
}

void Executor::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++stops_;
  }
  changed_.notify_all();
}

bool Executor::finished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return finished_;
}

int Executor::leaked_slots() const { return client_->runner().load().leaked; }

void Executor::WaitForStop() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return stops_ > 0; });
}

bool Executor::WaitIdle(absl::Duration timeout) {
  const SteadyTime until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stops_ > 1 || !reason_.ok()) return false;
    }
    const absl::Duration left =
        absl::FromChrono(until - std::chrono::steady_clock::now());
    if (client_->runner().WaitIdle(
            std::clamp(left, absl::ZeroDuration(), kStopPoll))) {
      return true;
    }
    if (left <= absl::ZeroDuration()) return false;
  }
}

void Executor::Drain() {
  client_->StartDraining();
  TaskRunner& runner = client_->runner();
  if (!WaitIdle(options_.drain_timeout)) {
    LogWarning("drain timeout, cancelling what runs",
               {{"running", runner.load().running}});
    runner.CancelRunning(CancelReason::kDraining);
    // The runner itself gives up on handlers that ignore this.
    runner.WaitIdle(options_.leak_grace + absl::Seconds(1));
  }
  if (!client_->WaitSettled(options_.settle_timeout)) {
    LogWarning("leaving with reports that were not acknowledged");
  }
}

}  // namespace leasehold::executor
