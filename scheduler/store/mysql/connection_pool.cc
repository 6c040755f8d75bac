#include "scheduler/store/mysql/connection_pool.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace leasehold::scheduler {
namespace {

// Well below wait_timeout: a connection that has been idle for longer may have
// been closed by the server, and is asked before it is used.
constexpr std::chrono::seconds kTrustIdle(3);

bool Answers(Connection& connection) {
  const auto idle = std::chrono::steady_clock::now() - connection.last_use();
  return idle < kTrustIdle || connection.Execute("ping", "DO 0").ok();
}

}  // namespace

ConnectionLease::~ConnectionLease() {
  if (connection_ != nullptr) pool_->Return(std::move(connection_));
}

absl::StatusOr<ConnectionLease> ConnectionPool::Acquire(
    absl::Duration timeout) {
  std::unique_ptr<Connection> connection;
  {
    std::unique_lock lock(mutex_);
    if (!returned_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                            [this] { return free_slots_ > 0; })) {
      return absl::UnavailableError(
          absl::StrCat(role_, ": every database connection is busy"));
    }
    --free_slots_;
    if (!idle_.empty()) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (connection != nullptr && Answers(*connection)) {
    return ConnectionLease(this, std::move(connection), true);
  }
  connection.reset();
  auto opened = Connection::Open(config_, kind_);
  if (!opened.ok()) {
    Return(nullptr);
    return absl::UnavailableError(opened.status().message());
  }
  return ConnectionLease(this, *std::move(opened), false);
}

void ConnectionPool::Return(std::unique_ptr<Connection> connection) {
  // What ended one connection has mostly ended the others as well.
  std::vector<std::unique_ptr<Connection>> dropped;
  const bool broken = connection != nullptr && connection->broken();
  if (broken) dropped.push_back(std::move(connection));
  {
    std::lock_guard lock(mutex_);
    ++free_slots_;
    if (broken) {
      std::move(idle_.begin(), idle_.end(), std::back_inserter(dropped));
      idle_.clear();
    }
    if (connection != nullptr) idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

}  // namespace leasehold::scheduler
