#include "scheduler/rpc/batch_service.h"

#include "scheduler/rpc/not_served.h"

namespace leasehold::scheduler {

grpc::ServerReadReactor<v1::CreateBatchRequest>* BatchService::CreateBatch(
    grpc::CallbackServerContext*, v1::Batch*) {
  return new NotServedRead<v1::CreateBatchRequest>("BatchService.CreateBatch");
}
grpc::ServerUnaryReactor* BatchService::GetBatch(
    grpc::CallbackServerContext* context, const v1::GetBatchRequest*,
    v1::Batch*) {
  return FinishNotServed(context, "BatchService.GetBatch");
}
grpc::ServerUnaryReactor* BatchService::ListBatches(
    grpc::CallbackServerContext* context, const v1::ListBatchesRequest*,
    v1::ListBatchesResponse*) {
  return FinishNotServed(context, "BatchService.ListBatches");
}
grpc::ServerWriteReactor<v1::Batch>* BatchService::WatchBatch(
    grpc::CallbackServerContext*, const v1::WatchBatchRequest*) {
  return new NotServedWrite<v1::Batch>("BatchService.WatchBatch");
}
grpc::ServerWriteReactor<v1::BatchRow>* BatchService::StreamBatchRows(
    grpc::CallbackServerContext*, const v1::StreamBatchRowsRequest*) {
  return new NotServedWrite<v1::BatchRow>("BatchService.StreamBatchRows");
}
grpc::ServerUnaryReactor* BatchService::RetryBatch(
    grpc::CallbackServerContext* context, const v1::RetryBatchRequest*,
    v1::Batch*) {
  return FinishNotServed(context, "BatchService.RetryBatch");
}
grpc::ServerUnaryReactor* BatchService::CancelBatch(
    grpc::CallbackServerContext* context, const v1::CancelBatchRequest*,
    v1::Batch*) {
  return FinishNotServed(context, "BatchService.CancelBatch");
}

}  // namespace leasehold::scheduler
