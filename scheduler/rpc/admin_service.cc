#include "scheduler/rpc/admin_service.h"

#include "scheduler/rpc/not_served.h"

namespace leasehold::scheduler {

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
    grpc::CallbackServerContext* context, const v1::PauseQueueRequest*,
    v1::Queue*) {
  return FinishNotServed(context, "AdminService.PauseQueue");
}
grpc::ServerUnaryReactor* AdminService::ResumeQueue(
    grpc::CallbackServerContext* context, const v1::ResumeQueueRequest*,
    v1::Queue*) {
  return FinishNotServed(context, "AdminService.ResumeQueue");
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
