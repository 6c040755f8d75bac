// TaskService: what clients call. Checks and converts here; the work is the
// engine's. No method blocks: gRPC has only a few threads.
#ifndef SCHEDULER_RPC_TASK_SERVICE_H_
#define SCHEDULER_RPC_TASK_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "leasehold/v1/task_service.grpc.pb.h"
#include "scheduler/engine/task_control.h"
#include "scheduler/engine/task_reader.h"
#include "scheduler/engine/task_submitter.h"
#include "scheduler/engine/task_watch_hub.h"
#include "scheduler/rpc/long_calls.h"

namespace leasehold::scheduler {

// All outlive the service and every call of it.
struct TaskServiceParts {
  TaskSubmitter* submitter = nullptr;
  TaskReader* reader = nullptr;
  TaskControl* control = nullptr;
  TaskWatchHub* watch_hub = nullptr;
  LongCallRegistry* long_calls = nullptr;
  // What the database's clock says, near enough to tell the past.
  std::function<int64_t()> now_us;
};

class TaskService final : public v1::TaskService::CallbackService {
 public:
  explicit TaskService(TaskServiceParts parts) : parts_(std::move(parts)) {}

  grpc::ServerUnaryReactor* SubmitTask(grpc::CallbackServerContext* context,
                                       const v1::SubmitTaskRequest* request,
                                       v1::Task* response) override;
  grpc::ServerUnaryReactor* SubmitTasks(
      grpc::CallbackServerContext* context,
      const v1::SubmitTasksRequest* request,
      v1::SubmitTasksResponse* response) override;
  grpc::ServerUnaryReactor* GetTask(grpc::CallbackServerContext* context,
                                    const v1::GetTaskRequest* request,
                                    v1::Task* response) override;
  grpc::ServerUnaryReactor* ListTasks(grpc::CallbackServerContext* context,
                                      const v1::ListTasksRequest* request,
                                      v1::ListTasksResponse* response) override;
  grpc::ServerWriteReactor<v1::Task>* WatchTask(
      grpc::CallbackServerContext* context,
      const v1::WatchTaskRequest* request) override;
  grpc::ServerUnaryReactor* WaitTask(grpc::CallbackServerContext* context,
                                     const v1::WaitTaskRequest* request,
                                     v1::Task* response) override;

  grpc::ServerUnaryReactor* CancelTask(grpc::CallbackServerContext* context,
                                       const v1::CancelTaskRequest* request,
                                       v1::Task* response) override;
  grpc::ServerUnaryReactor* PauseTask(grpc::CallbackServerContext* context,
                                      const v1::PauseTaskRequest* request,
                                      v1::Task* response) override;
  grpc::ServerUnaryReactor* ResumeTask(grpc::CallbackServerContext* context,
                                       const v1::ResumeTaskRequest* request,
                                       v1::Task* response) override;
  grpc::ServerUnaryReactor* RetryTask(grpc::CallbackServerContext* context,
                                      const v1::RetryTaskRequest* request,
                                      v1::Task* response) override;
  grpc::ServerUnaryReactor* ExplainTask(
      grpc::CallbackServerContext* context,
      const v1::ExplainTaskRequest* request,
      v1::ExplainTaskResponse* response) override;

 private:
  grpc::ServerUnaryReactor* Control(grpc::CallbackServerContext* context,
                                    v1::Task* response, ControlAction action,
                                    const std::string& task_id,
                                    std::string reason = "");

  const TaskServiceParts parts_;
};

// The page as the response shows it, cut at 3 MiB.
v1::ListTasksResponse ToListTasksResponse(const ListPage& page,
                                          const ListFilter& filter);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_TASK_SERVICE_H_
