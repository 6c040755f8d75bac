#include "scheduler/rpc/task_service.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/domain/limits.h"
#include "scheduler/rpc/not_served.h"
#include "scheduler/rpc/page_token.h"
#include "scheduler/rpc/proto_time.h"
#include "scheduler/rpc/task_conversion.h"
#include "scheduler/rpc/unary_call.h"
#include "scheduler/rpc/validation.h"
#include "scheduler/rpc/wait_call.h"
#include "scheduler/rpc/watch_call.h"

namespace leasehold::scheduler {
namespace {

constexpr int64_t kDefaultWaitUs = 30 * kMicrosPerSecond;

// The spec without its payload, to build the answer from.
TaskSpec WithoutPayload(TaskSpec& spec) {
  Payload payload = std::exchange(spec.payload, {});
  TaskSpec kept = spec;
  spec.payload = std::move(payload);
  return kept;
}

// What SubmitTasks answers: new tasks from their specs, known ones as they were
// read. NOT_FOUND in the rare case that a known one was purged in between.
absl::StatusOr<v1::SubmitTasksResponse> MergeAnswers(
    const std::vector<SubmittedTask>& stored,
    const std::vector<TaskSpec>& specs,
    const std::vector<TaskRecord>& existing) {
  std::unordered_map<TaskId, const TaskRecord*> by_id;
  for (const TaskRecord& record : existing) by_id[record.id] = &record;
  v1::SubmitTasksResponse response;
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!stored[i].existed) {
      *response.add_tasks() = ToProto(stored[i], specs[i]);
      continue;
    }
    const auto found = by_id.find(stored[i].id);
    if (found == by_id.end()) {
      return absl::UnavailableError(
          absl::StrCat("task ", stored[i].id,
                       ": was removed while the call ran, submit again"));
    }
    *response.add_tasks() = ToProto(*found->second, ReadOptions{});
  }
  return response;
}

std::vector<TaskId> ExistingIds(const std::vector<SubmittedTask>& stored) {
  std::vector<TaskId> ids;
  for (const SubmittedTask& task : stored) {
    if (task.existed) ids.push_back(task.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

grpc::ServerUnaryReactor* TaskService::SubmitTask(
    grpc::CallbackServerContext* context, const v1::SubmitTaskRequest* request,
    v1::Task* response) {
  auto call = UnaryCall<v1::Task>::Start(context, response);
  const absl::Status valid = ValidateSubmitTask(*request, parts_.now_us());
  if (!valid.ok()) {
    call->Fail(valid);
    return call.get();
  }
  std::vector<TaskSpec> specs;
  specs.push_back(ToTaskSpec(request->task()));
  auto kept = std::make_shared<TaskSpec>(WithoutPayload(specs[0]));
  parts_.submitter->Submit(
      std::move(specs), [call, kept, reader = parts_.reader](
                            absl::StatusOr<std::vector<SubmittedTask>> stored) {
        if (!stored.ok()) return call->Fail(stored.status());
        const SubmittedTask& task = stored->front();
        if (!task.existed) return call->Reply(ToProto(task, *kept));
        ReadOptions options;
        options.result = true;
        reader->GetTask(task.id, options,
                        [call, options](absl::StatusOr<TaskRecord> record) {
                          if (!record.ok()) return call->Fail(record.status());
                          call->Reply(ToProto(*record, options));
                        });
      });
  return call.get();
}

grpc::ServerUnaryReactor* TaskService::SubmitTasks(
    grpc::CallbackServerContext* context, const v1::SubmitTasksRequest* request,
    v1::SubmitTasksResponse* response) {
  auto call = UnaryCall<v1::SubmitTasksResponse>::Start(context, response);
  const absl::Status valid = ValidateSubmitTasks(*request, parts_.now_us());
  if (!valid.ok()) {
    call->Fail(valid);
    return call.get();
  }
  std::vector<TaskSpec> specs;
  specs.reserve(static_cast<size_t>(request->tasks_size()));
  auto kept = std::make_shared<std::vector<TaskSpec>>();
  kept->reserve(specs.capacity());
  for (const v1::Task& task : request->tasks()) {
    specs.push_back(ToTaskSpec(task));
    kept->push_back(WithoutPayload(specs.back()));
  }
  parts_.submitter->Submit(
      std::move(specs), [call, kept, reader = parts_.reader](
                            absl::StatusOr<std::vector<SubmittedTask>> stored) {
        if (!stored.ok()) return call->Fail(stored.status());
        const auto answer = [call, kept, stored = *stored](
                                absl::StatusOr<std::vector<TaskRecord>> known) {
          if (!known.ok()) return call->Fail(known.status());
          auto merged = MergeAnswers(stored, *kept, *known);
          if (!merged.ok()) return call->Fail(merged.status());
          call->Reply(*std::move(merged));
        };
        std::vector<TaskId> known_ids = ExistingIds(*stored);
        if (known_ids.empty()) return answer(std::vector<TaskRecord>());
        // Without results: a thousand of them would not fit into one message.
        reader->GetTasks(std::move(known_ids), ReadOptions{}, answer);
      });
  return call.get();
}

grpc::ServerUnaryReactor* TaskService::GetTask(
    grpc::CallbackServerContext* context, const v1::GetTaskRequest* request,
    v1::Task* response) {
  auto call = UnaryCall<v1::Task>::Start(context, response);
  const absl::StatusOr<TaskId> id = ReadTaskId(request->task_id());
  if (!id.ok()) {
    call->Fail(id.status());
    return call.get();
  }
  ReadOptions options;
  options.payload = options.result = options.attempts = true;
  parts_.reader->GetTask(*id, options,
                         [call, options](absl::StatusOr<TaskRecord> record) {
                           if (!record.ok()) return call->Fail(record.status());
                           call->Reply(ToProto(*record, options));
                         });
  return call.get();
}

grpc::ServerUnaryReactor* TaskService::ListTasks(
    grpc::CallbackServerContext* context, const v1::ListTasksRequest* request,
    v1::ListTasksResponse* response) {
  auto call = UnaryCall<v1::ListTasksResponse>::Start(context, response);
  const absl::Status valid = ValidateListTasks(*request);
  if (!valid.ok()) {
    call->Fail(valid);
    return call.get();
  }
  const ListFilter filter = ToListFilter(*request);
  const absl::StatusOr<TaskId> below =
      ReadPageToken(request->page_token(), filter);
  if (!below.ok()) {
    call->Fail(below.status());
    return call.get();
  }
  const int page_size = request->page_size() == 0
                            ? kDefaultPageSize
                            : std::min(request->page_size(), kMaxPageSize);
  parts_.reader->ListTasks(filter, *below, page_size,
                           [call, filter](absl::StatusOr<ListPage> page) {
                             if (!page.ok()) return call->Fail(page.status());
                             call->Reply(ToListTasksResponse(*page, filter));
                           });
  return call.get();
}

grpc::ServerWriteReactor<v1::Task>* TaskService::WatchTask(
    grpc::CallbackServerContext* context, const v1::WatchTaskRequest* request) {
  const absl::StatusOr<TaskId> id = ReadTaskId(request->task_id());
  if (!id.ok()) return WatchCall::Refuse(context, id.status());
  return WatchCall::Start(context, *id, parts_.watch_hub, parts_.long_calls);
}

grpc::ServerUnaryReactor* TaskService::WaitTask(
    grpc::CallbackServerContext* context, const v1::WaitTaskRequest* request,
    v1::Task* response) {
  absl::StatusOr<TaskId> id = ReadTaskId(request->task_id());
  const absl::Status valid = ValidateWaitTask(*request);
  if (!valid.ok()) id = valid;
  if (!id.ok()) {
    auto call = UnaryCall<v1::Task>::Start(context, response);
    call->Fail(id.status());
    return call.get();
  }
  const int64_t timeout_us = request->has_timeout()
                                 ? ToMicros(request->timeout()).value_or(0)
                                 : kDefaultWaitUs;
  return WaitCall::Start(context, response, *id, timeout_us, parts_.watch_hub,
                         parts_.long_calls);
}

grpc::ServerUnaryReactor* TaskService::Control(
    grpc::CallbackServerContext* context, v1::Task* response,
    ControlAction action, const std::string& task_id, std::string reason) {
  auto call = UnaryCall<v1::Task>::Start(context, response);
  const absl::StatusOr<TaskId> id = ReadTaskId(task_id);
  if (!id.ok()) {
    call->Fail(id.status());
    return call.get();
  }
  parts_.control->Control({action, *id, std::move(reason)},
                          [call](absl::StatusOr<TaskRecord> record) {
                            if (!record.ok())
                              return call->Fail(record.status());
                            call->Reply(ToProto(*record, ReadOptions{}));
                          });
  return call.get();
}

grpc::ServerUnaryReactor* TaskService::CancelTask(
    grpc::CallbackServerContext* context, const v1::CancelTaskRequest* request,
    v1::Task* response) {
  const absl::Status valid = ValidateCancelTask(*request);
  if (!valid.ok()) {
    auto call = UnaryCall<v1::Task>::Start(context, response);
    call->Fail(valid);
    return call.get();
  }
  return Control(context, response, ControlAction::kCancel, request->task_id(),
                 request->reason());
}
grpc::ServerUnaryReactor* TaskService::PauseTask(
    grpc::CallbackServerContext* context, const v1::PauseTaskRequest* request,
    v1::Task* response) {
  return Control(context, response, ControlAction::kPause, request->task_id());
}
grpc::ServerUnaryReactor* TaskService::ResumeTask(
    grpc::CallbackServerContext* context, const v1::ResumeTaskRequest* request,
    v1::Task* response) {
  return Control(context, response, ControlAction::kResume, request->task_id());
}
grpc::ServerUnaryReactor* TaskService::RetryTask(
    grpc::CallbackServerContext* context, const v1::RetryTaskRequest* request,
    v1::Task* response) {
  return Control(context, response, ControlAction::kRetry, request->task_id());
}
grpc::ServerUnaryReactor* TaskService::ExplainTask(
    grpc::CallbackServerContext* context, const v1::ExplainTaskRequest*,
    v1::ExplainTaskResponse*) {
  return FinishNotServed(context, "TaskService.ExplainTask");
}

v1::ListTasksResponse ToListTasksResponse(const ListPage& page,
                                          const ListFilter& filter) {
  v1::ListTasksResponse response;
  size_t bytes = 0;
  for (const TaskRecord& record : page.tasks) {
    v1::Task task = ToProto(record, ReadOptions{});
    bytes += task.ByteSizeLong();
    if (bytes > kMaxPageBytes && response.tasks_size() > 0) {
      // This one and the rest come next; ids descend.
      response.set_next_page_token(MakePageToken(record.id + 1, filter));
      return response;
    }
    *response.add_tasks() = std::move(task);
  }
  response.set_next_page_token(MakePageToken(page.next_below, filter));
  return response;
}

}  // namespace leasehold::scheduler
