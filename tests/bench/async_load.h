// Keeps a number of calls in flight, without a thread for each.
#ifndef TESTS_BENCH_ASYNC_LOAD_H_
#define TESTS_BENCH_ASYNC_LOAD_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "leasehold/v1/task_service.grpc.pb.h"

namespace leasehold::bench {

// Runs `start(i, done)` for i from 0 to `calls` - 1, `in_flight` at a time, and
// returns when all are done. `start` must not block and leads to one call of
// `done`, from any thread.
void RunInFlight(
    size_t calls, size_t in_flight,
    const std::function<void(size_t, std::function<void()>)>& start);

// Submits `tasks` in groups of `group` with `in_flight` calls at a time. Calls
// that are refused for want of room are repeated; any other failure ends the
// program. Returns the ids in the order of the tasks.
std::vector<std::string> SubmitInGroups(
    leasehold::v1::TaskService::Stub& stub,
    const std::vector<leasehold::v1::Task>& tasks, size_t group,
    size_t in_flight);

}  // namespace leasehold::bench

#endif  // TESTS_BENCH_ASYNC_LOAD_H_
