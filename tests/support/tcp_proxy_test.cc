// Against a server that echoes, and against one that answers as a database
// does.
#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <set>

#include "tests/support/free_port.h"
#include "tests/support/mysql_commit_scanner.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {
namespace {

using Direction = TcpProxy::Direction;
using Mode = TcpProxy::Mode;
using CommitMoment = TcpProxy::CommitMoment;

constexpr absl::Duration kShort = absl::Milliseconds(100);

// Sends back what it receives, on every connection, and remembers it.
class EchoServer {
 public:
  EchoServer() : listener_(ListenOnLoopback(0)), port_(BoundPort(listener_)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~EchoServer() {
    stop_ = true;
    thread_.join();
    for (const int fd : clients_) close(fd);
    close(listener_);
  }
  int port() const { return port_; }
  std::string received() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return received_;
  }
  int closed() const { return closed_; }

 private:
  void Run() {
    while (!stop_) {
      std::vector<pollfd> polled = {{listener_, POLLIN, 0}};
      for (const int fd : clients_) polled.push_back({fd, POLLIN, 0});
      poll(polled.data(), polled.size(), 5);
      if (polled[0].revents != 0) {
        clients_.insert(accept(listener_, nullptr, nullptr));
      }
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents != 0) Echo(polled[i].fd);
      }
    }
  }
  void Echo(int fd) {
    char buffer[4096];
    const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) {
      close(fd);
      clients_.erase(fd);
      ++closed_;
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      received_.append(buffer, static_cast<size_t>(got));
    }
    send(fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL);
  }

  const int listener_;
  const int port_;
  std::atomic<bool> stop_{false};
  std::atomic<int> closed_{0};
  std::mutex mutex_;
  std::string received_;
  std::set<int> clients_;
  std::thread thread_;
};

class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
  }
  ~Client() { close(fd_); }
  void Send(const std::string& bytes) {
    send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // What comes within `timeout`; "" at the end of the stream, nullopt when
  // nothing comes, "RST" when the connection was reset.
  std::optional<std::string> Receive(absl::Duration timeout = kPatience) {
    pollfd polled = {fd_, POLLIN, 0};
    if (poll(&polled, 1,
             static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
      return std::nullopt;
    }
    char buffer[4096];
    const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
    if (got < 0) return "RST";
    return std::string(buffer, static_cast<size_t>(got));
  }

 private:
  const int fd_;
};

class TcpProxyTest : public testing::Test {
 protected:
  EchoServer server_;
  TcpProxy proxy_{server_.port()};
};

TEST_F(TcpProxyTest, Forwards) {
  Client client(proxy_.port());

  client.Send("hello");

  EXPECT_EQ(client.Receive(), "hello");
  EXPECT_EQ(proxy_.connections(), 1);
}

TEST_F(TcpProxyTest, AStallKeepsWhatWasSentAndGoesOnLater) {
  Client client(proxy_.port());
  proxy_.SetMode(Direction::kToServer, Mode::kStall);

  client.Send("hello");
  EXPECT_EQ(client.Receive(kShort), std::nullopt);
  EXPECT_EQ(server_.received(), "");
  proxy_.SetMode(Direction::kToServer, Mode::kForward);

  EXPECT_EQ(client.Receive(), "hello");
}

TEST_F(TcpProxyTest, OneDirectionStallsAlone) {
  Client client(proxy_.port());
  proxy_.SetMode(Direction::kToClient, Mode::kStall);

  client.Send("hello");

  EXPECT_TRUE(Eventually([&] { return server_.received() == "hello"; }));
  EXPECT_EQ(client.Receive(kShort), std::nullopt);
  proxy_.Heal();
  EXPECT_EQ(client.Receive(), "hello");
}

TEST_F(TcpProxyTest, DropForgetsWhatWasSent) {
  Client client(proxy_.port());
  client.Send("first");
  ASSERT_EQ(client.Receive(), "first");
  proxy_.SetMode(Direction::kToServer, Mode::kDrop);

  client.Send("lost");
  EXPECT_EQ(client.Receive(kShort), std::nullopt);
  proxy_.SetMode(Direction::kToServer, Mode::kForward);
  client.Send("second");

  EXPECT_EQ(client.Receive(), "second");
  EXPECT_EQ(server_.received(), "firstsecond");
}

TEST_F(TcpProxyTest, CutEndsPresentConnectionsOnly) {
  Client cut(proxy_.port());
  cut.Send("x");
  ASSERT_EQ(cut.Receive(), "x");

  proxy_.Cut();

  EXPECT_EQ(cut.Receive(), "");
  EXPECT_TRUE(Eventually([&] { return server_.closed() == 1; }));
  Client next(proxy_.port());
  next.Send("y");
  EXPECT_EQ(next.Receive(), "y");
}

TEST_F(TcpProxyTest, AResetReadsAsOne) {
  Client client(proxy_.port());
  client.Send("x");
  ASSERT_EQ(client.Receive(), "x");

  proxy_.Cut(TcpProxy::Ending::kReset);

  EXPECT_EQ(client.Receive(), "RST");
}

TEST_F(TcpProxyTest, CutsOneDirection) {
  Client client(proxy_.port());
  client.Send("x");
  ASSERT_EQ(client.Receive(), "x");

  proxy_.CutDirection(Direction::kToClient);

  EXPECT_EQ(client.Receive(), "");
  client.Send("still heard");
  EXPECT_TRUE(Eventually([&] { return server_.received() == "xstill heard"; }));
}

TEST_F(TcpProxyTest, DelaysWithoutMixingUp) {
  Client client(proxy_.port());
  client.Send("x");
  ASSERT_EQ(client.Receive(), "x");
  proxy_.SetDelay(Direction::kToServer, kShort);

  const absl::Time sent = absl::Now();
  client.Send("slow");

  EXPECT_EQ(client.Receive(), "slow");
  EXPECT_GE(absl::Now() - sent, kShort);
}

TEST_F(TcpProxyTest, RefusesNewConnections) {
  proxy_.RefuseConnections(true);
  Client refused(proxy_.port());
  const auto answer = refused.Receive();
  EXPECT_TRUE(answer == "" || answer == "RST");

  proxy_.RefuseConnections(false);
  Client next(proxy_.port());
  next.Send("y");
  EXPECT_EQ(next.Receive(), "y");
}

// --- Commits.

std::string Packet(const std::string& body) {
  std::string packet = {static_cast<char>(body.size()), 0, 0, 0};
  return packet + body;
}
std::string Statement(const std::string& text) { return Packet("\x03" + text); }

TEST(MySqlCommitScanner, FindsACommitHoweverTheStreamIsCut) {
  const std::string before =
      Packet("login") + Statement("SELECT 'COMMIT'") + Statement("COMMITTED");
  const std::string stream = before + Statement("commit") + Statement("BEGIN");
  for (size_t cut = 1; cut < stream.size(); ++cut) {
    MySqlCommitScanner scanner;
    const auto first = scanner.Scan(stream.substr(0, cut));
    const auto second = first ? std::nullopt : scanner.Scan(stream.substr(cut));
    ASSERT_TRUE(first || second) << cut;
    EXPECT_EQ(first ? first->end : cut + second->end, before.size() + 11);
  }
}

TEST(MySqlCommitScanner, FindsNothingElse) {
  MySqlCommitScanner scanner;
  EXPECT_FALSE(scanner.Scan(Packet("COMMIT") + Statement("COMMITS") +
                            Statement("ROLLBACK")));
}

TEST_F(TcpProxyTest, CutsBeforeACommitIsSent) {
  Client client(proxy_.port());
  proxy_.BreakCommits({.when = CommitMoment::kUnsent});
  client.Send(Statement("UPDATE"));
  ASSERT_EQ(client.Receive(), Statement("UPDATE"));

  client.Send(Statement("COMMIT"));

  EXPECT_EQ(client.Receive(), "RST");
  EXPECT_EQ(server_.received(), Statement("UPDATE"));
  EXPECT_EQ(proxy_.commits_broken(), 1);
}

TEST_F(TcpProxyTest, CutsOnceACommitIsDone) {
  Client client(proxy_.port());
  proxy_.BreakCommits({.when = CommitMoment::kAnswered});

  client.Send(Statement("COMMIT"));

  EXPECT_EQ(client.Receive(), "RST");
  EXPECT_EQ(server_.received(), Statement("COMMIT"));
}

TEST_F(TcpProxyTest, MakesACommitComeLate) {
  Client client(proxy_.port());
  proxy_.BreakCommits({.when = CommitMoment::kUnsent, .stall = kShort});

  const absl::Time sent = absl::Now();
  client.Send(Statement("COMMIT"));

  EXPECT_EQ(client.Receive(), Statement("COMMIT"));
  EXPECT_GE(absl::Now() - sent, kShort);
}

TEST_F(TcpProxyTest, HoldsBackTheAnswerToACommit) {
  Client client(proxy_.port());
  proxy_.BreakCommits({.when = CommitMoment::kAnswered, .stall = 3 * kShort});

  client.Send(Statement("COMMIT"));

  EXPECT_TRUE(
      Eventually([&] { return server_.received() == Statement("COMMIT"); }));
  EXPECT_EQ(client.Receive(kShort), std::nullopt);
  EXPECT_EQ(client.Receive(), Statement("COMMIT"));
}

TEST_F(TcpProxyTest, BreaksAsManyCommitsAsItWasTold) {
  proxy_.BreakCommits({.when = CommitMoment::kAnswered, .times = 2});
  for (int i = 0; i < 3; ++i) {
    Client client(proxy_.port());
    client.Send(Statement("COMMIT"));
    EXPECT_EQ(client.Receive(), i < 2 ? "RST" : Statement("COMMIT"));
  }
  EXPECT_EQ(proxy_.commits_seen(), 3);
  EXPECT_EQ(proxy_.commits_broken(), 2);
}

}  // namespace
}  // namespace leasehold::e2e
