#include "tests/support/task_client.h"

#include <stdexcept>

#include "absl/time/clock.h"

namespace leasehold::e2e {

using leasehold::v1::ListTasksRequest;
using leasehold::v1::ListTasksResponse;
using leasehold::v1::SubmitTaskRequest;
using leasehold::v1::SubmitTasksRequest;
using leasehold::v1::SubmitTasksResponse;
using leasehold::v1::Task;
using leasehold::v1::TaskService;
using leasehold::v1::TaskState;

namespace {

void ThrowUnlessOk(const grpc::Status& status, const std::string& call) {
  if (status.ok()) return;
  throw std::runtime_error(call + ": " + std::to_string(status.error_code()) +
                           " " + status.error_message());
}

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  // Tests restart servers; a channel that waits for long slows them down. A
  // channel of its own makes sure that clients do not share one.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

std::unique_ptr<grpc::ClientContext> ContextWithTimeout(
    absl::Duration timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  return context;
}

Task NewTask(const std::string& queue, const std::string& type,
             const std::string& data) {
  Task task;
  task.set_queue(queue);
  task.set_type(type);
  task.mutable_payload()->set_data(data);
  return task;
}

Task NewJsonTask(const std::string& queue, const std::string& type,
                 const std::string& json) {
  Task task;
  task.set_queue(queue);
  task.set_type(type);
  task.mutable_payload()->set_json(json);
  return task;
}

TaskClient::TaskClient(const std::string& address)
    : channel_(NewChannel(address)), stub_(TaskService::NewStub(channel_)) {}

grpc::Status TaskClient::Submit(const Task& task, Task* stored) {
  SubmitTaskRequest request;
  *request.mutable_task() = task;
  return stub_->SubmitTask(ContextWithTimeout().get(), request, stored);
}

std::string TaskClient::Submit(const Task& task) {
  Task stored;
  ThrowUnlessOk(Submit(task, &stored), "SubmitTask");
  return stored.id();
}

std::vector<std::string> TaskClient::SubmitAll(const std::vector<Task>& tasks) {
  std::vector<std::string> ids;
  for (size_t from = 0; from < tasks.size(); from += 100) {
    SubmitTasksRequest request;
    for (size_t i = from; i < tasks.size() && i < from + 100; ++i)
      *request.add_tasks() = tasks[i];
    SubmitTasksResponse response;
    ThrowUnlessOk(
        stub_->SubmitTasks(ContextWithTimeout().get(), request, &response),
        "SubmitTasks");
    for (const Task& task : response.tasks()) ids.push_back(task.id());
  }
  return ids;
}

Task TaskClient::Get(const std::string& task_id) {
  leasehold::v1::GetTaskRequest request;
  request.set_task_id(task_id);
  Task task;
  ThrowUnlessOk(stub_->GetTask(ContextWithTimeout().get(), request, &task),
                "GetTask " + task_id);
  return task;
}

std::vector<Task> TaskClient::List(ListTasksRequest request) {
  std::vector<Task> tasks;
  do {
    ListTasksResponse page;
    ThrowUnlessOk(stub_->ListTasks(ContextWithTimeout().get(), request, &page),
                  "ListTasks");
    tasks.insert(tasks.end(), page.tasks().begin(), page.tasks().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return tasks;
}

Task TaskClient::Wait(const std::string& task_id, absl::Duration timeout) {
  leasehold::v1::WaitTaskRequest request;
  request.set_task_id(task_id);
  request.mutable_timeout()->set_seconds(absl::ToInt64Seconds(timeout));
  Task task;
  ThrowUnlessOk(
      stub_->WaitTask(ContextWithTimeout(timeout + absl::Seconds(10)).get(),
                      request, &task),
      "WaitTask " + task_id);
  if (!task.has_finish_time()) {
    throw std::runtime_error("task " + task_id + " did not end, it is " +
                             leasehold::v1::TaskState_Name(task.state()));
  }
  return task;
}

Task TaskClient::WaitForState(const std::string& task_id, TaskState state,
                              absl::Duration timeout) {
  Task task;
  if (Eventually([&] { return (task = Get(task_id)).state() == state; },
                 timeout))
    return task;
  throw std::runtime_error("task " + task_id + " is " +
                           leasehold::v1::TaskState_Name(task.state()) +
                           ", want " + leasehold::v1::TaskState_Name(state));
}

bool TaskClient::WaitForCount(const std::string& queue, TaskState state,
                              size_t count, absl::Duration timeout) {
  ListTasksRequest request;
  request.set_queue(queue);
  request.add_states(state);
  request.set_page_size(1000);
  return Eventually([&] { return List(request).size() >= count; }, timeout);
}

}  // namespace leasehold::e2e
