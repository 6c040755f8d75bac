// Where everybody who watches the storm writes down what was seen. Thread-safe.
#ifndef TESTS_E2E_STORM_OBSERVATIONS_H_
#define TESTS_E2E_STORM_OBSERVATIONS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "leasehold/v1/task.pb.h"
#include "tests/support/history.h"

namespace leasehold::e2e {

int64_t NowMicros();

class Observations {
 public:
  void Acknowledged(const std::string& task);
  // `asked_us` is when the call began.
  void Saw(const v1::Task& task, int64_t asked_us);
  void Asked(Request request);
  void Leased(std::vector<LeaseSighting> leases);
  void Died(pid_t pid);
  void Fault(const std::string& kind);
  // Of every call that failed. `allowed`: a client must expect it.
  void Error(const std::string& call, const grpc::Status& status, bool allowed);
  void Submitted() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++submitted_;
  }

  size_t acknowledged() const;
  std::string AcknowledgedTask(size_t index) const;

  // Moves the records out.
  History TakeHistory();
  int64_t submitted() const;
  std::map<std::string, int> faults() const;
  std::map<std::string, int> errors() const;
  // One line each; the first few of every kind.
  std::vector<std::string> forbidden_errors() const;

 private:
  mutable std::mutex mutex_;
  History history_;
  int64_t submitted_ = 0;
  std::map<std::string, int> faults_;
  std::map<std::string, int> errors_;
  std::map<std::string, int> forbidden_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_E2E_STORM_OBSERVATIONS_H_
