#include "tests/bench/async_load.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "tests/support/task_client.h"

namespace leasehold::bench {

using leasehold::v1::SubmitTasksRequest;
using leasehold::v1::SubmitTasksResponse;
using leasehold::v1::Task;
using leasehold::v1::TaskService;

void RunInFlight(
    size_t calls, size_t in_flight,
    const std::function<void(size_t, std::function<void()>)>& start) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t running = 0;
  const auto done = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    --running;
    changed.notify_one();
  };
  for (size_t i = 0; i < calls; ++i) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return running < in_flight; });
      ++running;
    }
    start(i, done);
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return running == 0; });
}

namespace {

struct GroupCall {
  std::unique_ptr<grpc::ClientContext> context;
  SubmitTasksRequest request;
  SubmitTasksResponse response;
};

void StartGroup(TaskService::Stub& stub, const std::shared_ptr<GroupCall>& call,
                const std::function<void()>& done) {
  call->context = e2e::ContextWithTimeout();
  stub.async()->SubmitTasks(
      call->context.get(), &call->request, &call->response,
      [&stub, call, done](const grpc::Status& status) {
        if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
          absl::SleepFor(absl::Milliseconds(10));
          StartGroup(stub, call, done);
          return;
        }
        if (!status.ok()) {
          std::fprintf(stderr, "SubmitTasks: %s\n",
                       status.error_message().c_str());
          std::exit(1);
        }
        done();
      });
}

}  // namespace

std::vector<std::string> SubmitInGroups(TaskService::Stub& stub,
                                        const std::vector<Task>& tasks,
                                        size_t group, size_t in_flight) {
  const size_t groups = (tasks.size() + group - 1) / group;
  std::vector<std::string> ids(tasks.size());
  RunInFlight(
      groups, in_flight, [&](size_t index, const std::function<void()>& done) {
        const size_t from = index * group;
        const auto call = std::make_shared<GroupCall>();
        for (size_t i = from; i < std::min(from + group, tasks.size()); ++i) {
          *call->request.add_tasks() = tasks[i];
        }
        StartGroup(stub, call, [call_ptr = call.get(), from, &ids, done] {
          for (int i = 0; i < call_ptr->response.tasks_size(); ++i) {
            ids[from + static_cast<size_t>(i)] =
                call_ptr->response.tasks(i).id();
          }
          done();
        });
      });
  return ids;
}

}  // namespace leasehold::bench
