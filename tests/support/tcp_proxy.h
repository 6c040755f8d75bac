// Stands between two programs and breaks their connection in every way that a
// network can.
//
//   TcpProxy proxy(scheduler.port());
//   ... connect an executor to proxy.address() ...
//   proxy.SetMode(TcpProxy::Direction::kToServer, TcpProxy::Mode::kStall);
#ifndef TESTS_SUPPORT_TCP_PROXY_H_
#define TESTS_SUPPORT_TCP_PROXY_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::e2e {

// Thread-safe.
class TcpProxy {
 public:
  enum class Direction { kToServer = 0, kToClient = 1 };
  enum class Mode {
    kForward,
    kStall,  // Reads nothing, so the sender's window fills up.
    kDrop,   // Reads and forgets: a half-dead peer.
  };

  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const { return port_; }
  std::string address() const;

  // Holds for the present connections and for later ones.
  void SetMode(Direction direction, Mode mode);
  // Closes every connection now.
  void Cut();
  // While refused, new connections are closed at once.
  void RefuseConnections(bool refuse) { refuse_ = refuse; }

 private:
  struct Connection;

  void Run();
  void Accept();
  void Forward(Connection& connection, int direction);

  const int server_port_;
  int listener_;
  int port_;
  std::atomic<Mode> modes_[2] = {Mode::kForward, Mode::kForward};
  std::atomic<bool> refuse_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> stop_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;  // The thread's own.
  std::thread thread_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_TCP_PROXY_H_
