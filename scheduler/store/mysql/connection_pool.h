// Connections to lease for a scope, at most `size` at once, made when they are
// first needed and replaced when they have broken.
#ifndef SCHEDULER_STORE_MYSQL_CONNECTION_POOL_H_
#define SCHEDULER_STORE_MYSQL_CONNECTION_POOL_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/store/mysql/connection.h"

namespace leasehold::scheduler {

class ConnectionPool;

// A connection that goes back to its pool, or away if it has broken.
class ConnectionLease {
 public:
  ConnectionLease(ConnectionPool* pool, std::unique_ptr<Connection> connection,
                  bool reused)
      : pool_(pool), connection_(std::move(connection)), reused_(reused) {}
  ConnectionLease(ConnectionLease&& other) noexcept = default;
  ConnectionLease& operator=(ConnectionLease&&) = delete;
  ~ConnectionLease();

  Connection& operator*() { return *connection_; }
  Connection* operator->() { return connection_.get(); }
  // Somebody has used it before, so it may have died in the meantime.
  bool reused() const { return reused_; }

 private:
  ConnectionPool* pool_;
  std::unique_ptr<Connection> connection_;
  bool reused_;
};

// Thread-safe.
class ConnectionPool {
 public:
  // `role` is for messages.
  ConnectionPool(MySqlConfig config, ConnectionKind kind, std::string role,
                 int size)
      : config_(std::move(config)),
        kind_(kind),
        role_(std::move(role)),
        free_slots_(size) {}

  // UNAVAILABLE when none becomes free within `timeout`, or the database cannot
  // be reached.
  absl::StatusOr<ConnectionLease> Acquire(
      absl::Duration timeout = absl::Seconds(15));

  bool read_only() const { return kind_ == ConnectionKind::kRead; }

 private:
  friend class ConnectionLease;
  void Return(std::unique_ptr<Connection> connection);

  const MySqlConfig config_;
  const ConnectionKind kind_;
  const std::string role_;

  std::mutex mutex_;
  std::condition_variable returned_;
  int free_slots_;                                 // Guarded by mutex_.
  std::vector<std::unique_ptr<Connection>> idle_;  // Guarded by mutex_.
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_CONNECTION_POOL_H_
