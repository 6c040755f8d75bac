// AdminService: what operators use. This version registers it, so that
// reflection shows it and calls are told so, and serves none of its methods.
#ifndef SCHEDULER_RPC_ADMIN_SERVICE_H_
#define SCHEDULER_RPC_ADMIN_SERVICE_H_

#include "leasehold/v1/admin_service.grpc.pb.h"

namespace leasehold::scheduler {

class AdminService final : public v1::AdminService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListQueues(grpc::CallbackServerContext* context,
                                       const v1::ListQueuesRequest*,
                                       v1::ListQueuesResponse*) override;
  grpc::ServerUnaryReactor* GetQueue(grpc::CallbackServerContext* context,
                                     const v1::GetQueueRequest*,
                                     v1::Queue*) override;
  grpc::ServerUnaryReactor* UpdateQueue(grpc::CallbackServerContext* context,
                                        const v1::UpdateQueueRequest*,
                                        v1::Queue*) override;
  grpc::ServerUnaryReactor* PauseQueue(grpc::CallbackServerContext* context,
                                       const v1::PauseQueueRequest*,
                                       v1::Queue*) override;
  grpc::ServerUnaryReactor* ResumeQueue(grpc::CallbackServerContext* context,
                                        const v1::ResumeQueueRequest*,
                                        v1::Queue*) override;
  grpc::ServerUnaryReactor* ListExecutors(grpc::CallbackServerContext* context,
                                          const v1::ListExecutorsRequest*,
                                          v1::ListExecutorsResponse*) override;
  grpc::ServerUnaryReactor* DrainExecutor(grpc::CallbackServerContext* context,
                                          const v1::DrainExecutorRequest*,
                                          v1::Executor*) override;
  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* context,
                                     const v1::GetStatsRequest*,
                                     v1::GetStatsResponse*) override;
  grpc::ServerUnaryReactor* RetryTasks(grpc::CallbackServerContext* context,
                                       const v1::BulkTasksRequest*,
                                       v1::BulkTasksResponse*) override;
  grpc::ServerUnaryReactor* CancelTasks(grpc::CallbackServerContext* context,
                                        const v1::BulkTasksRequest*,
                                        v1::BulkTasksResponse*) override;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_ADMIN_SERVICE_H_
