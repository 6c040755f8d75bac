#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <utility>

#include "tests/support/free_port.h"
#include "tests/support/mysql_commit_scanner.h"

namespace leasehold::e2e {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxBufferBytes = 64 << 10;
constexpr int kToServer = static_cast<int>(TcpProxy::Direction::kToServer);
constexpr int kToClient = static_cast<int>(TcpProxy::Direction::kToClient);

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

int NewEventFd() { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

}  // namespace

// What the owner wants. `number` grows with every change.
struct TcpProxy::Plan {
  int number = 0;
  Mode modes[2] = {Mode::kForward, Mode::kForward};
  Clock::duration delays[2] = {};
  bool refuse = false;
  bool cut = false;
  Ending ending = Ending::kClose;
  bool cut_direction[2] = {};
  CommitFault commit = {.times = 0};
};

// fds[0] is the client's end, fds[1] the server's. Direction d reads from
// fds[d] and writes to fds[1 - d].
struct TcpProxy::Connection {
  struct Chunk {
    Time due;
    std::string bytes;
  };
  int fds[2] = {-1, -1};
  std::deque<Chunk> pending[2];
  size_t pending_bytes[2] = {};
  bool ended[2] = {};       // The reader has seen the end of the stream.
  bool passed_end[2] = {};  // And the other side has been told.
  bool closed = false;
  Ending ending = Ending::kClose;
  MySqlCommitScanner scanner;
  // The answer to a COMMIT that is to be broken is awaited.
  bool awaits_answer = false;
  CommitFault fault;
  Time still_until = {};  // Neither direction moves before.

  ~Connection() {
    for (const int fd : fds) {
      if (ending == Ending::kReset) {
        const linger none = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
      }
      close(fd);
    }
  }
  void Append(int direction, std::string bytes, Time due) {
    if (bytes.empty()) return;
    pending_bytes[direction] += bytes.size();
    pending[direction].push_back({due, std::move(bytes)});
  }
};

TcpProxy::TcpProxy(int server_port)
    : server_port_(server_port),
      listener_(ListenOnLoopback(0)),
      port_(BoundPort(listener_)),
      wake_(NewEventFd()),
      plan_(std::make_unique<Plan>()) {
  fcntl(listener_, F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  stop_ = true;
  Wake();
  thread_.join();
  close(listener_);
  close(wake_);
}

std::string TcpProxy::address() const { return LoopbackAddress(port_); }

void TcpProxy::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

// Returns once the thread has carried the change out.
void TcpProxy::Change(const std::function<void(Plan&)>& change) {
  int number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(*plan_);
    number = ++plan_->number;
  }
  Wake();
  for (int seen = applied_; seen < number; seen = applied_) {
    applied_.wait(seen);
  }
}

void TcpProxy::SetMode(Direction direction, Mode mode) {
  Change([&](Plan& plan) { plan.modes[static_cast<int>(direction)] = mode; });
}

void TcpProxy::SetDelay(Direction direction, absl::Duration delay) {
  Change([&](Plan& plan) {
    plan.delays[static_cast<int>(direction)] = absl::ToChronoNanoseconds(delay);
  });
}

void TcpProxy::Cut(Ending ending) {
  Change([&](Plan& plan) {
    plan.cut = true;
    plan.ending = ending;
  });
}

void TcpProxy::CutDirection(Direction direction) {
  Change([&](Plan& plan) {
    plan.cut_direction[static_cast<int>(direction)] = true;
  });
}

void TcpProxy::RefuseConnections(bool refuse) {
  Change([&](Plan& plan) { plan.refuse = refuse; });
}

void TcpProxy::BreakCommits(const CommitFault& fault) {
  Change([&](Plan& plan) { plan.commit = fault; });
}

void TcpProxy::Heal() {
  Change([](Plan& plan) {
    const int number = plan.number;
    plan = Plan();
    plan.number = number;
  });
}

// Whether the COMMIT at hand is one of those to break.
bool TcpProxy::ClaimCommit(CommitFault* fault) {
  ++commits_seen_;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (plan_->commit.times <= 0) return false;
  --plan_->commit.times;
  ++commits_broken_;
  *fault = plan_->commit;
  return true;
}

void TcpProxy::Apply(const Plan& plan) {
  if (plan.cut) {
    for (const auto& connection : connections_) {
      connection->ending = plan.ending;
    }
    connections_.clear();
  }
  for (int d = 0; d < 2; ++d) {
    if (!plan.cut_direction[d]) continue;
    for (const auto& connection : connections_) {
      connection->pending[d].clear();
      connection->pending_bytes[d] = 0;
      connection->ended[d] = true;
    }
  }
}

// With the orders that are to be carried out once.
TcpProxy::Plan TcpProxy::TakePlan() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Plan plan = *plan_;
  plan_->cut = false;
  plan_->cut_direction[0] = plan_->cut_direction[1] = false;
  return plan;
}

void TcpProxy::Accept(const Plan& plan) {
  const int client =
      accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  const int server = plan.refuse ? -1 : ConnectTo(server_port_);
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

void TcpProxy::TakeFromClient(Connection& connection, std::string bytes,
                              Time due, Time now) {
  while (!bytes.empty()) {
    const auto found = connection.scanner.Scan(bytes);
    if (!found.has_value()) break;
    CommitFault fault;
    if (ClaimCommit(&fault)) {
      if (fault.when == CommitMoment::kAnswered) {
        connection.awaits_answer = true;
        connection.fault = fault;
      } else if (fault.stall > absl::ZeroDuration()) {
        // What came before the COMMIT waits, too; nobody awaits its answer.
        connection.still_until = now + absl::ToChronoNanoseconds(fault.stall);
      } else {
        connection.Append(kToServer, bytes.substr(0, found->begin), due);
        connection.ending = Ending::kReset;
        connection.closed = true;
        return;
      }
    }
    connection.Append(kToServer, bytes.substr(0, found->end), due);
    bytes.erase(0, found->end);
  }
  connection.Append(kToServer, std::move(bytes), due);
}

void TcpProxy::TakeFromServer(Connection& connection, std::string bytes,
                              Time due, Time now) {
  if (std::exchange(connection.awaits_answer, false)) {
    if (connection.fault.stall <= absl::ZeroDuration()) {
      connection.ending = Ending::kReset;
      connection.closed = true;
      return;
    }
    connection.still_until =
        now + absl::ToChronoNanoseconds(connection.fault.stall);
  }
  connection.Append(kToClient, std::move(bytes), due);
}

void TcpProxy::Read(Connection& connection, int direction, const Plan& plan,
                    Time now) {
  if (connection.ended[direction] || plan.modes[direction] == Mode::kStall ||
      connection.pending_bytes[direction] >= kMaxBufferBytes) {
    return;
  }
  char buffer[16 << 10];
  const ssize_t got =
      recv(connection.fds[direction], buffer, sizeof(buffer), 0);
  if (got == 0) connection.ended[direction] = true;
  if (got < 0 && errno != EAGAIN && errno != EINTR) {
    connection.ending = Ending::kReset;
    connection.closed = true;
  }
  if (got <= 0 || plan.modes[direction] == Mode::kDrop) return;
  std::string bytes(buffer, static_cast<size_t>(got));
  const Time due = now + plan.delays[direction];
  if (direction == kToServer) {
    TakeFromClient(connection, std::move(bytes), due, now);
  } else {
    TakeFromServer(connection, std::move(bytes), due, now);
  }
}

void TcpProxy::Write(Connection& connection, int direction, const Plan& plan,
                     Time now) {
  auto& pending = connection.pending[direction];
  while (plan.modes[direction] == Mode::kForward && !pending.empty() &&
         pending.front().due <= now) {
    std::string& bytes = pending.front().bytes;
    const ssize_t sent = send(connection.fds[1 - direction], bytes.data(),
                              bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) connection.closed = true;
      return;
    }
    connection.pending_bytes[direction] -= static_cast<size_t>(sent);
    if (static_cast<size_t>(sent) < bytes.size()) {
      bytes.erase(0, static_cast<size_t>(sent));
      return;
    }
    pending.pop_front();
  }
  if (connection.ended[direction] && pending.empty() &&
      !std::exchange(connection.passed_end[direction], true)) {
    shutdown(connection.fds[1 - direction], SHUT_WR);
  }
}

void TcpProxy::Serve(Connection& connection, const Plan& plan, Time now) {
  for (int d = 0; d < 2 && !connection.closed; ++d) {
    if (now < connection.still_until) return;
    Read(connection, d, plan, now);
    if (now < connection.still_until) return;
    if (!connection.closed) Write(connection, d, plan, now);
  }
  if (connection.passed_end[0] && connection.passed_end[1]) {
    connection.closed = true;
  }
}

// Adds what this connection waits for, and moves `next` to when it can go on by
// itself.
void TcpProxy::Await(const Connection& connection, const Plan& plan, Time now,
                     Time* next, std::vector<pollfd>* polled) {
  short events[2] = {};
  if (now < connection.still_until) {
    *next = std::min(*next, connection.still_until);
  } else {
    for (int d = 0; d < 2; ++d) {
      if (!connection.ended[d] && plan.modes[d] != Mode::kStall &&
          connection.pending_bytes[d] < kMaxBufferBytes) {
        events[d] |= POLLIN;
      }
      if (plan.modes[d] != Mode::kForward || connection.pending[d].empty())
        continue;
      const Time due = connection.pending[d].front().due;
      if (due <= now) events[1 - d] |= POLLOUT;
      if (due > now) *next = std::min(*next, due);
    }
  }
  // A negative descriptor is skipped, so that a hang-up of a stalled peer does
  // not make the loop spin.
  for (int side = 0; side < 2; ++side) {
    polled->push_back(
        {events[side] != 0 ? connection.fds[side] : -1, events[side], 0});
  }
}

void TcpProxy::Run() {
  while (!stop_) {
    const Plan plan = TakePlan();
    Apply(plan);
    const bool changed = applied_ != plan.number;
    applied_ = plan.number;
    applied_.notify_all();

    Time now = Clock::now();
    // After a change every connection is looked at once.
    Time next = changed ? now : now + std::chrono::seconds(10);
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    for (const auto& connection : connections_)
      Await(*connection, plan, now, &next, &polled);
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    poll(polled.data(), polled.size(), static_cast<int>(wait));

    now = Clock::now();
    if (polled[1].revents != 0) {
      uint64_t ignored;
      [[maybe_unused]] const ssize_t got =
          read(wake_, &ignored, sizeof(ignored));
    }
    for (const auto& connection : connections_) Serve(*connection, plan, now);
    std::erase_if(connections_,
                  [](const auto& connection) { return connection->closed; });
    if (polled[0].revents != 0) Accept(plan);
    connection_count_ = static_cast<int>(connections_.size());
  }
  connections_.clear();
}

}  // namespace leasehold::e2e
