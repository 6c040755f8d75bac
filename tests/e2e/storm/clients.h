// The clients of the storm: some submit, some watch, some control. All go on
// until they are stopped, whatever the schedulers answer.
#ifndef TESTS_E2E_STORM_CLIENTS_H_
#define TESTS_E2E_STORM_CLIENTS_H_

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/storm/observations.h"
#include "tests/e2e/storm/options.h"
#include "tests/support/task_client.h"

namespace leasehold::e2e {

// One client with a connection to every replica. For one thread.
class StormClient {
 public:
  StormClient(uint64_t seed, const std::vector<std::string>& addresses,
              const StormOptions& options, Observations& observations);

  // Submits until it is acknowledged, or `stop`; always with the same keys.
  void Submit(const std::string& key, size_t count,
              const std::atomic<bool>& stop);
  // Looks at one of the acknowledged tasks, in one of the ways that there are.
  void Look();
  // Cancels, pauses, resumes or retries one of them.
  void Control();

  size_t Pick(size_t size) {
    return std::uniform_int_distribution<size_t>(0, size - 1)(random_);
  }

 private:
  v1::Task NewStormTask(const std::string& key);
  v1::TaskService::Stub& AnyStub();
  // One of the acknowledged tasks, mostly a young one; "" when there is none.
  std::string AnyTask();
  // Writes the failure down; says whether the call succeeded.
  bool Succeeded(const std::string& call, const grpc::Status& status,
                 bool control = false);

  void Watch(const std::string& task);
  void Cancel(const std::string& task);
  void PauseAndResume(const std::string& task);
  void Retry(const std::string& task);

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<TaskClient>> replicas_;
  const StormOptions& options_;
  Observations& observations_;
};

// Runs them in threads of their own.
class StormClients {
 public:
  StormClients(const StormOptions& options,
               const std::vector<std::string>& addresses,
               Observations& observations);
  ~StormClients();

  // Waits until every task has been submitted and acknowledged; gives up after
  // `bound`.
  void StopSubmitting(absl::Duration bound);
  void StopControlling();
  void StopLooking();

 private:
  void SubmitAll(size_t thread);

  const StormOptions options_;
  const std::vector<std::string> addresses_;
  Observations& observations_;
  std::atomic<bool> give_up_{false};
  std::atomic<bool> stop_controlling_{false};
  std::atomic<bool> stop_looking_{false};
  std::atomic<size_t> submitting_{0};
  std::vector<std::thread> submitters_;
  std::vector<std::thread> controllers_;
  std::vector<std::thread> lookers_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_E2E_STORM_CLIENTS_H_
