// Stands between two programs and breaks their connection in every way that a
// network can.
//
//   TcpProxy proxy(scheduler.port());
//   ... connect an executor to proxy.address() ...
//   proxy.SetMode(TcpProxy::Direction::kToServer, TcpProxy::Mode::kStall);
//
// Between a scheduler and its database it can also strike inside a COMMIT:
//
//   proxy.BreakCommits({.when = TcpProxy::CommitMoment::kAnswered, .times =
//   3});
#ifndef TESTS_SUPPORT_TCP_PROXY_H_
#define TESTS_SUPPORT_TCP_PROXY_H_

#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace leasehold::e2e {

// Thread-safe.
class TcpProxy {
 public:
  enum class Direction { kToServer = 0, kToClient = 1 };
  enum class Mode {
    kForward,
    kStall,  // Reads nothing, so the sender's window fills up; nothing is lost.
    kDrop,   // Reads and forgets: a half-dead peer.
  };
  enum class Ending {
    kClose,  // As a program ends a connection.
    kReset,  // As a machine that knows of no connection.
  };
  enum class CommitMoment {
    kUnsent,    // The database never sees the COMMIT, or sees it late.
    kAnswered,  // It has committed, and its answer is on the way.
  };
  struct CommitFault {
    CommitMoment when = CommitMoment::kAnswered;
    // Zero: the connection is reset at that moment. Else both directions stand
    // still for so long, and then go on.
    absl::Duration stall = absl::ZeroDuration();
    int times = 1;  // How many COMMITs, over all connections.
  };

  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const { return port_; }
  std::string address() const;

  // Holds for the present connections and for later ones.
  void SetMode(Direction direction, Mode mode);
  // What is read from now on arrives so much later.
  void SetDelay(Direction direction, absl::Duration delay);
  // Ends every connection; they are closed when it returns.
  void Cut(Ending ending = Ending::kClose);
  // Ends one direction of every connection: its receiver reads the end of the
  // stream, the other direction goes on.
  void CutDirection(Direction direction);
  // While refused, new connections are closed at once.
  void RefuseConnections(bool refuse);
  // Replaces the fault before; `times` 0 ends it.
  void BreakCommits(const CommitFault& fault);
  // Everything as at the start; connections stay.
  void Heal();

  int connections() const { return connection_count_; }
  int commits_seen() const { return commits_seen_; }
  int commits_broken() const { return commits_broken_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Connection;
  struct Plan;

  void Change(const std::function<void(Plan&)>& change);
  void Wake();
  void Run();
  Plan TakePlan();
  void Apply(const Plan& plan);
  void Accept(const Plan& plan);
  static void Await(const Connection& connection, const Plan& plan, Time now,
                    Time* next, std::vector<pollfd>* polled);
  void Serve(Connection& connection, const Plan& plan, Time now);
  void Read(Connection& connection, int direction, const Plan& plan, Time now);
  void TakeFromClient(Connection& connection, std::string bytes, Time due,
                      Time now);
  void Write(Connection& connection, int direction, const Plan& plan, Time now);
  void TakeFromServer(Connection& connection, std::string bytes, Time due,
                      Time now);
  bool ClaimCommit(CommitFault* fault);

  const int server_port_;
  const int listener_;
  const int port_;
  const int wake_;  // An eventfd.

  mutable std::mutex mutex_;
  std::unique_ptr<Plan> plan_;  // Guarded by mutex_.
  std::atomic<int> applied_{
      0};  // The latest plan that the thread has carried out.
  std::atomic<int> connection_count_{0};
  std::atomic<int> commits_seen_{0};
  std::atomic<int> commits_broken_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Connection>> connections_;  // The thread's own.
  std::thread thread_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_TCP_PROXY_H_
