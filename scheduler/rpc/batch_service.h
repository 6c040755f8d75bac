// BatchService: batches of rows. This version registers it, so that reflection
// shows it and calls are told so, and serves none of its methods.
#ifndef SCHEDULER_RPC_BATCH_SERVICE_H_
#define SCHEDULER_RPC_BATCH_SERVICE_H_

#include "leasehold/v1/batch_service.grpc.pb.h"

namespace leasehold::scheduler {

class BatchService final : public v1::BatchService::CallbackService {
 public:
  grpc::ServerReadReactor<v1::CreateBatchRequest>* CreateBatch(
      grpc::CallbackServerContext*, v1::Batch*) override;
  grpc::ServerUnaryReactor* GetBatch(grpc::CallbackServerContext* context,
                                     const v1::GetBatchRequest*,
                                     v1::Batch*) override;
  grpc::ServerUnaryReactor* ListBatches(grpc::CallbackServerContext* context,
                                        const v1::ListBatchesRequest*,
                                        v1::ListBatchesResponse*) override;
  grpc::ServerWriteReactor<v1::Batch>* WatchBatch(
      grpc::CallbackServerContext*, const v1::WatchBatchRequest*) override;
  grpc::ServerWriteReactor<v1::BatchRow>* StreamBatchRows(
      grpc::CallbackServerContext*, const v1::StreamBatchRowsRequest*) override;
  grpc::ServerUnaryReactor* RetryBatch(grpc::CallbackServerContext* context,
                                       const v1::RetryBatchRequest*,
                                       v1::Batch*) override;
  grpc::ServerUnaryReactor* CancelBatch(grpc::CallbackServerContext* context,
                                        const v1::CancelBatchRequest*,
                                        v1::Batch*) override;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_BATCH_SERVICE_H_
