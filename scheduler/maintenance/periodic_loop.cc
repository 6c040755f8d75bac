#include "scheduler/maintenance/periodic_loop.h"

#include <utility>

#include "common/concurrency/thread_pool.h"

namespace leasehold::scheduler {
namespace {

constexpr absl::Duration kRoundLimit = absl::Seconds(30);

}  // namespace

PeriodicLoop::PeriodicLoop(const std::string& name, absl::Duration pause,
                           std::function<absl::Status()> run_once,
                           const Clock& clock)
    : name_(name),
      pause_(pause),
      run_once_(std::move(run_once)),
      probe_(name, kRoundLimit, clock),
      thread_([this] { Run(); }) {}

void PeriodicLoop::Stop() {
  stop_.Stop();
  if (thread_.joinable()) thread_.join();
}

void PeriodicLoop::Run() {
  NameThisThread(name_);
  while (!stop_.WaitFor(pause_)) {
    LoopProbe::Round round(probe_);
    const absl::Status status = run_once_();
    if (!status.ok()) {
      log_.Warning("maintenance failed, will retry",
                   {{"loop", name_}, {"error", status}});
    }
  }
}

}  // namespace leasehold::scheduler
