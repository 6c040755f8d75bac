// Speaks the executor's stream by hand, so that a test can say anything at any
// moment, or nothing.
#ifndef TESTS_SUPPORT_RAW_EXECUTOR_H_
#define TESTS_SUPPORT_RAW_EXECUTOR_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "leasehold/v1/executor_service.grpc.pb.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {

// A hello for one queue and type.
leasehold::v1::Hello NewHello(const std::string& executor_id,
                              const std::string& queue, const std::string& type,
                              int slots = 1);

class RawExecutor {
 public:
  enum class Reading { kAlways, kNever };

  // Opens the stream and says nothing.
  explicit RawExecutor(const std::string& address,
                       Reading reading = Reading::kAlways);
  // Cancels the stream if it has not ended.
  ~RawExecutor();
  RawExecutor(const RawExecutor&) = delete;
  RawExecutor& operator=(const RawExecutor&) = delete;

  // False when the stream is broken.
  bool Send(const leasehold::v1::ExecutorMessage& message);
  bool SayHello(const leasehold::v1::Hello& hello);
  // Names the leases with the next sequence number.
  bool SendHeartbeat(const std::vector<leasehold::v1::LeaseRef>& leases,
                     bool started = true);
  bool SendResult(const leasehold::v1::LeaseRef& lease,
                  const std::string& data);
  bool SendError(const leasehold::v1::LeaseRef& lease,
                 const leasehold::v1::TaskError& error);

  // The next message for which `wanted` holds; others before it are forgotten.
  // Throws when none comes in time.
  leasehold::v1::SchedulerMessage Next(
      const std::function<bool(const leasehold::v1::SchedulerMessage&)>& wanted,
      absl::Duration timeout = kPatience);
  leasehold::v1::Welcome NextWelcome();
  leasehold::v1::Lease NextLease(absl::Duration timeout = kPatience);
  leasehold::v1::ReportAck NextAck();
  // Whether a lease comes within `timeout`.
  bool GetsLease(absl::Duration timeout);

  // Waits for the server to end the stream and returns how it did.
  grpc::Status WaitForEnd();

 private:
  using Stream = grpc::ClientReaderWriter<leasehold::v1::ExecutorMessage,
                                          leasehold::v1::SchedulerMessage>;

  void Read();

  std::unique_ptr<leasehold::v1::ExecutorService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  int64_t heartbeat_sequence_ = 0;
  bool finished_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<leasehold::v1::SchedulerMessage> received_;
  std::deque<leasehold::v1::Lease>
      leases_;  // Of a Leases message that had several.
  bool ended_ = false;
  std::thread reader_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_RAW_EXECUTOR_H_
