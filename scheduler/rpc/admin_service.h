// AdminService: what operators use. Of its methods this version serves
// PauseQueue and ResumeQueue; the others say that they are not served.
#ifndef SCHEDULER_RPC_ADMIN_SERVICE_H_
#define SCHEDULER_RPC_ADMIN_SERVICE_H_

#include <string>

#include "leasehold/v1/admin_service.grpc.pb.h"
#include "scheduler/engine/queue_control.h"

namespace leasehold::scheduler {

class AdminService final : public v1::AdminService::CallbackService {
 public:
  // `queues` outlives the service and every call of it.
  explicit AdminService(QueueControl* queues) : queues_(queues) {}

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
                                       const v1::PauseQueueRequest* request,
                                       v1::Queue* response) override;
  grpc::ServerUnaryReactor* ResumeQueue(grpc::CallbackServerContext* context,
                                        const v1::ResumeQueueRequest* request,
                                        v1::Queue* response) override;
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

 private:
  grpc::ServerUnaryReactor* SetPaused(grpc::CallbackServerContext* context,
                                      v1::Queue* response,
                                      const std::string& name, bool paused);

  QueueControl* const queues_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_ADMIN_SERVICE_H_
