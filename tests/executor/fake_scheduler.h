// A scheduler that does what a test says: the executor's end of OpenSession
// over real gRPC, on a free port.
#ifndef TESTS_EXECUTOR_FAKE_SCHEDULER_H_
#define TESTS_EXECUTOR_FAKE_SCHEDULER_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "leasehold/v1/executor_service.grpc.pb.h"

namespace leasehold::executor {

class FakeScheduler : private v1::ExecutorService::Service {
 public:
  FakeScheduler();
  ~FakeScheduler() override;

  std::string address() const;

  // What a hello is answered with. Default: heartbeats every 50 ms, leases of
  // 15 s.
  void SetWelcome(v1::Welcome welcome);
  // Hellos are refused with `status` until the next call.
  void RefuseWith(grpc::Status status);
  // Heartbeats are acknowledged, unless told otherwise.
  void SetAcknowledgesHeartbeats(bool acknowledges);

  // Waits for the `n`th session (from 1) to be welcomed. False after 10 s.
  bool WaitForSession(int n);
  // Sends on the current session.
  void Send(const v1::SchedulerMessage& message);
  void SendLease(const std::string& task_id, int64_t lease_number,
                 const std::string& type, const std::string& json);
  void Acknowledge(const v1::LeaseRef& lease,
                   v1::ReportDisposition disposition);
  // Ends the current session, with its next message.
  void End(grpc::Status status);

  // Waits until a received message, of any session, meets `condition`; nullopt
  // after 10 s.
  std::optional<v1::ExecutorMessage> WaitFor(
      const std::function<bool(const v1::ExecutorMessage&)>& condition);
  // The result or error reported for a task, `nth` time (from 1).
  std::optional<v1::TaskResult> WaitForResult(const std::string& task_id,
                                              int nth = 1);
  std::vector<v1::ExecutorMessage> received() const;

 private:
  using Stream =
      grpc::ServerReaderWriter<v1::SchedulerMessage, v1::ExecutorMessage>;

  grpc::Status OpenSession(grpc::ServerContext* context,
                           Stream* stream) override;
  bool Greet(Stream* stream, grpc::Status* refusal);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::ExecutorMessage> received_;
  v1::Welcome welcome_;
  std::optional<grpc::Status> refusal_;
  bool acknowledges_heartbeats_ = true;
  int sessions_ = 0;
  Stream* stream_ = nullptr;
  std::optional<grpc::Status> end_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace leasehold::executor

#endif  // TESTS_EXECUTOR_FAKE_SCHEDULER_H_
