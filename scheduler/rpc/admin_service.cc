#include "scheduler/rpc/admin_service.h"

#include <utility>

#include "scheduler/rpc/not_served.h"
#include "scheduler/rpc/unary_call.h"
#include "scheduler/rpc/validation.h"

namespace leasehold::scheduler {

grpc::ServerUnaryReactor* AdminService::SetPaused(
    grpc::CallbackServerContext* context, v1::Queue* response,
    const std::string& name, bool paused) {
  auto call = UnaryCall<v1::Queue>::Start(context, response);
  const absl::Status valid = ValidateQueueName(name);
  if (!valid.ok()) {
    call->Fail(valid);
    return call.get();
  }
  const auto done = [call](absl::StatusOr<QueueRow> row) {
    if (!row.ok()) return call->Fail(row.status());
    v1::Queue queue;
    queue.set_name(row->name);
    queue.set_paused(row->paused);
    call->Reply(std::move(queue));
  };
  if (paused) {
    queues_->Pause(name, done);
  } else {
    queues_->Resume(name, done);
  }
  return call.get();
}

grpc::ServerUnaryReactor* AdminService::ListQueues(
    grpc::CallbackServerContext* context, const v1::ListQueuesRequest*,
    v1::ListQueuesResponse*) {
  return FinishNotServed(context, "AdminService.ListQueues");
}
grpc::ServerUnaryReactor* AdminService::GetQueue(
    grpc::CallbackServerContext* context, const v1::GetQueueRequest*,
    v1::Queue*) {
  return FinishNotServed(context, "AdminService.GetQueue");
}
grpc::ServerUnaryReactor* AdminService::UpdateQueue(
    grpc::CallbackServerContext* context, const v1::UpdateQueueRequest*,
    v1::Queue*) {
  return FinishNotServed(context, "AdminService.UpdateQueue");
}
grpc::ServerUnaryReactor* AdminService::PauseQueue(
    grpc::CallbackServerContext* context, const v1::PauseQueueRequest* request,
    v1::Queue* response) {
  return SetPaused(context, response, request->name(), true);
}
grpc::ServerUnaryReactor* AdminService::ResumeQueue(
    grpc::CallbackServerContext* context, const v1::ResumeQueueRequest* request,
    v1::Queue* response) {
  return SetPaused(context, response, request->name(), false);
}
grpc::ServerUnaryReactor* AdminService::ListExecutors(
    grpc::CallbackServerContext* context, const v1::ListExecutorsRequest*,
    v1::ListExecutorsResponse*) {
  return FinishNotServed(context, "AdminService.ListExecutors");
}
grpc::ServerUnaryReactor* AdminService::DrainExecutor(
    grpc::CallbackServerContext* context, const v1::DrainExecutorRequest*,
    v1::Executor*) {
  return FinishNotServed(context, "AdminService.DrainExecutor");
}
grpc::ServerUnaryReactor* AdminService::GetStats(
    grpc::CallbackServerContext* context, const v1::GetStatsRequest*,
    v1::GetStatsResponse*) {
  return FinishNotServed(context, "AdminService.GetStats");
}
grpc::ServerUnaryReactor* AdminService::RetryTasks(
    grpc::CallbackServerContext* context, const v1::BulkTasksRequest*,
    v1::BulkTasksResponse*) {
  return FinishNotServed(context, "AdminService.RetryTasks");
}
grpc::ServerUnaryReactor* AdminService::CancelTasks(
    grpc::CallbackServerContext* context, const v1::BulkTasksRequest*,
    v1::BulkTasksResponse*) {
  return FinishNotServed(context, "AdminService.CancelTasks");
}

}  // namespace leasehold::scheduler
