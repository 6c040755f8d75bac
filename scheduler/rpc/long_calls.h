// Calls that stay open for minutes or for good, so that a drain can end them
// before gRPC waits for them.
#ifndef SCHEDULER_RPC_LONG_CALLS_H_
#define SCHEDULER_RPC_LONG_CALLS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/status/status.h"

namespace leasehold::scheduler {

class LongCall {
 public:
  virtual ~LongCall() = default;
  // Ends the call with `status` unless it has ended. Does not wait.
  virtual void End(const absl::Status& status) = 0;
};

// Thread-safe.
class LongCallRegistry {
 public:
  // Remembers a call until Remove. UNAVAILABLE once draining.
  absl::Status Add(const LongCall* key, std::weak_ptr<LongCall> call);
  void Remove(const LongCall* key);
  // Ends all calls with UNAVAILABLE and refuses new ones. Idempotent.
  void EndAll();
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  bool draining_ = false;
  std::unordered_map<const LongCall*, std::weak_ptr<LongCall>> calls_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_LONG_CALLS_H_
