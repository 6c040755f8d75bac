// The public API as tests use it: every call with a deadline, and the few
// patterns that they repeat.
#ifndef TESTS_SUPPORT_TASK_CLIENT_H_
#define TESTS_SUPPORT_TASK_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "leasehold/v1/task_service.grpc.pb.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {

leasehold::v1::Task NewTask(const std::string& queue, const std::string& type,
                            const std::string& data = "");
leasehold::v1::Task NewJsonTask(const std::string& queue,
                                const std::string& type,
                                const std::string& json);

// Thread-safe.
class TaskClient {
 public:
  explicit TaskClient(const std::string& address);

  leasehold::v1::TaskService::Stub& stub() { return *stub_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  grpc::Status Submit(const leasehold::v1::Task& task,
                      leasehold::v1::Task* stored);
  // These throw when the call fails.
  std::string Submit(const leasehold::v1::Task& task);
  std::vector<std::string> SubmitAll(
      const std::vector<leasehold::v1::Task>& tasks);
  leasehold::v1::Task Get(const std::string& task_id);
  std::vector<leasehold::v1::Task> List(
      leasehold::v1::ListTasksRequest request);

  // Waits until the task is terminal; throws when it is not in time.
  leasehold::v1::Task Wait(const std::string& task_id,
                           absl::Duration timeout = kPatience);
  // Waits until the task is in `state`.
  leasehold::v1::Task WaitForState(const std::string& task_id,
                                   leasehold::v1::TaskState state,
                                   absl::Duration timeout = kPatience);
  // Waits until as many tasks of the queue are in `state`; says whether it
  // came.
  bool WaitForCount(const std::string& queue, leasehold::v1::TaskState state,
                    size_t count, absl::Duration timeout = kPatience);

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<leasehold::v1::TaskService::Stub> stub_;
};

// A context whose deadline is `timeout` from now.
std::unique_ptr<grpc::ClientContext> ContextWithTimeout(
    absl::Duration timeout = kPatience);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_TASK_CLIENT_H_
