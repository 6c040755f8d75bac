#include "scheduler/rpc/long_calls.h"

#include <utility>
#include <vector>

#include "scheduler/engine/shutting_down.h"
#include "scheduler/rpc/grpc_status.h"

namespace leasehold::scheduler {

absl::Status LongCallRegistry::Add(const LongCall* key,
                                   std::weak_ptr<LongCall> call) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (draining_) return ShuttingDown();
  calls_[key] = std::move(call);
  return absl::OkStatus();
}

void LongCallRegistry::Remove(const LongCall* key) {
  std::lock_guard<std::mutex> lock(mutex_);
  calls_.erase(key);
}

void LongCallRegistry::EndAll() {
  std::vector<std::weak_ptr<LongCall>> calls;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    draining_ = true;
    for (const auto& [key, call] : calls_) calls.push_back(call);
  }
  // Without the lock: a call that ends removes itself.
  for (const std::weak_ptr<LongCall>& weak : calls) {
    if (const auto call = weak.lock()) call->End(ShuttingDown());
  }
}

size_t LongCallRegistry::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return calls_.size();
}

}  // namespace leasehold::scheduler
