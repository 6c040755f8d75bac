#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "tests/support/free_port.h"

namespace leasehold::e2e {
namespace {

constexpr size_t kMaxBufferBytes = 64 << 10;
constexpr int kTickMs = 10;

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
    return fd;
  close(fd);
  return -1;
}

}  // namespace

// fds[0] is the client's end, fds[1] the server's. Direction d reads from
// fds[d] and writes to fds[1 - d].
struct TcpProxy::Connection {
  int fds[2] = {-1, -1};
  std::string pending[2];
  bool closed = false;

  ~Connection() {
    close(fds[0]);
    close(fds[1]);
  }
};

TcpProxy::TcpProxy(int server_port)
    : server_port_(server_port),
      listener_(ListenOnLoopback(0)),
      port_(BoundPort(listener_)) {
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

std::string TcpProxy::address() const { return LoopbackAddress(port_); }

void TcpProxy::SetMode(Direction direction, Mode mode) {
  modes_[static_cast<int>(direction)] = mode;
}

void TcpProxy::Cut() {
  cut_ = true;
  while (cut_) std::this_thread::yield();
}

void TcpProxy::Accept() {
  const int client =
      accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  const int server = refuse_ ? -1 : ConnectTo(server_port_);
  if (server < 0) {
    close(client);
    return;
  }
  fcntl(server, F_SETFL, O_NONBLOCK);
  auto connection = std::make_unique<Connection>();
  connection->fds[0] = client;
  connection->fds[1] = server;
  connections_.push_back(std::move(connection));
}

void TcpProxy::Forward(Connection& connection, int direction) {
  const Mode mode = modes_[direction];
  std::string& pending = connection.pending[direction];
  if (mode != Mode::kStall && pending.size() < kMaxBufferBytes) {
    char buffer[16 << 10];
    const ssize_t got =
        recv(connection.fds[direction], buffer, sizeof(buffer), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      connection.closed = true;
    } else if (got > 0 && mode == Mode::kForward) {
      pending.append(buffer, static_cast<size_t>(got));
    }
  }
  if (mode != Mode::kForward || pending.empty()) return;
  const ssize_t sent = send(connection.fds[1 - direction], pending.data(),
                            pending.size(), MSG_NOSIGNAL);
  if (sent > 0) pending.erase(0, static_cast<size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EINTR) connection.closed = true;
}

void TcpProxy::Run() {
  while (!stop_) {
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}};
    for (const auto& connection : connections_) {
      for (int d = 0; d < 2; ++d) {
        short events = 0;
        if (modes_[d] != Mode::kStall &&
            connection->pending[d].size() < kMaxBufferBytes) {
          events |= POLLIN;
        }
        if (!connection->pending[1 - d].empty() &&
            modes_[1 - d] == Mode::kForward) {
          events |= POLLOUT;
        }
        // A negative descriptor is skipped, so that a hang-up of a stalled peer
        // does not make this loop spin.
        polled.push_back({events != 0 ? connection->fds[d] : -1, events, 0});
      }
    }
    poll(polled.data(), polled.size(), kTickMs);
    if (cut_) {
      connections_.clear();
      cut_ = false;
      continue;
    }
    if (polled[0].revents != 0) Accept();
    for (const auto& connection : connections_) {
      for (int d = 0; d < 2; ++d) Forward(*connection, d);
    }
    std::erase_if(connections_,
                  [](const auto& connection) { return connection->closed; });
  }
  connections_.clear();
}

}  // namespace leasehold::e2e
