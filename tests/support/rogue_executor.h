// An executor that breaks the protocol in every way that the stream allows,
// step by step:
//
//   RogueExecutor("rogue", address).SaysHello().TakesALease()
//       .OutlivesItsLease().Reports("late").Answer()
#ifndef TESTS_SUPPORT_ROGUE_EXECUTOR_H_
#define TESTS_SUPPORT_ROGUE_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "leasehold/v1/executor_service.pb.h"
#include "tests/support/raw_executor.h"

namespace leasehold::e2e {

// Steps throw when the scheduler does not do what they wait for. What is said
// goes over the latest session.
class RogueExecutor {
 public:
  RogueExecutor(std::string executor_id, std::string address);

  RogueExecutor& ServesQueue(const std::string& queue, const std::string& type);
  RogueExecutor& HasSlots(int slots);
  // From the next session on.
  RogueExecutor& NeverReads();
  // Sessions that follow belong to another process of the same name.
  RogueExecutor& Restarts(const std::string& incarnation);

  // Opens a session and says nothing: the first word is then another step's.
  RogueExecutor& OpensASession();
  // Opens one and says hello; sessions before stay open and are of the same
  // incarnation. Waits for the welcome, unless it never reads.
  RogueExecutor& SaysHello();
  // Once more on the same session.
  RogueExecutor& RepeatsHello();
  RogueExecutor& BreaksOff();

  // Waits for a lease, and accepts nothing.
  RogueExecutor& TakesALease();
  // Speaks of this lease from now on, whoever holds it.
  RogueExecutor& Claims(const v1::LeaseRef& lease);
  // Speaks of the lease before or after.
  RogueExecutor& ShiftsLeaseNumber(int64_t by);
  RogueExecutor& OutlivesItsLease();

  RogueExecutor& Heartbeats();
  RogueExecutor& HeartbeatsWithSequence(int64_t sequence);
  RogueExecutor& Reports(const std::string& data);
  RogueExecutor& Fails(const v1::TaskError& error);
  RogueExecutor& Releases(v1::ReleaseReason reason);

  const v1::LeaseRef& lease() const { return lease_; }
  // What the next report or release was answered.
  v1::ReportDisposition Answer();
  v1::HeartbeatAck HeartbeatAnswer();
  // How the latest session, or the one before it, ended.
  grpc::Status End();
  grpc::Status EndOfSessionBefore();

 private:
  RawExecutor& session();

  const std::string address_;
  v1::Hello hello_;
  RawExecutor::Reading reading_ = RawExecutor::Reading::kAlways;
  std::vector<std::unique_ptr<RawExecutor>> sessions_;
  v1::LeaseRef lease_;
  int64_t sequence_ = 0;
  absl::Duration lease_duration_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_ROGUE_EXECUTOR_H_
