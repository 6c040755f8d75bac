// What time it is at the database, without asking it each time.
//
// Every answer that carries the database's time moves the estimate; between
// answers it runs on the steady clock, so that a jump of this machine's wall
// clock moves nothing.
#ifndef SCHEDULER_ENGINE_DB_CLOCK_H_
#define SCHEDULER_ENGINE_DB_CLOCK_H_

#include <cstdint>
#include <mutex>

#include "common/time/clock.h"

namespace leasehold::scheduler {

// Thread-safe.
class DbClock {
 public:
  // `now_us` is the database's time at this moment.
  DbClock(const Clock& clock, int64_t now_us);

  // A statement that was sent at `sent` came back just now with `now_us`.
  // Answers that took long say little and are ignored when a better one is
  // recent.
  void Observe(SteadyTime sent, int64_t now_us);

  // May be off by the round trip of the latest good answer.
  int64_t NowUs() const;

  const Clock& steady() const { return clock_; }

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  SteadyTime base_;
  int64_t base_us_;
  int64_t error_us_ = 0;  // Of base_us_: the round trip of its answer.
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_DB_CLOCK_H_
