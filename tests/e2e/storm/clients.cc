#include "tests/e2e/storm/clients.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/storm/storm_cluster.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {
namespace {

using grpc::StatusCode;
using leasehold::v1::Task;

constexpr size_t kSubmitters = 6;
constexpr size_t kLookers = 4;
constexpr size_t kControllers = 2;
constexpr size_t kTasksInABatch = 10;
constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr absl::Duration kAfterFailure = absl::Milliseconds(50);

}  // namespace

StormClient::StormClient(uint64_t seed,
                         const std::vector<std::string>& addresses,
                         const StormOptions& options,
                         Observations& observations)
    : random_(seed), options_(options), observations_(observations) {
  for (const std::string& address : addresses)
    replicas_.push_back(std::make_unique<TaskClient>(address));
}

v1::TaskService::Stub& StormClient::AnyStub() {
  return replicas_[Pick(replicas_.size())]->stub();
}

std::string StormClient::AnyTask() {
  const size_t count = observations_.acknowledged();
  if (count == 0) return "";
  const size_t youngest = Pick(10) < 8 ? std::min<size_t>(count, 50) : count;
  return observations_.AcknowledgedTask(count - 1 - Pick(youngest));
}

bool StormClient::Succeeded(const std::string& call, const grpc::Status& status,
                            bool control) {
  if (status.ok()) return true;
  const StatusCode code = status.error_code();
  const bool allowed = code == StatusCode::UNAVAILABLE ||
                       code == StatusCode::DEADLINE_EXCEEDED ||
                       code == StatusCode::RESOURCE_EXHAUSTED ||
                       (control && (code == StatusCode::FAILED_PRECONDITION ||
                                    (code == StatusCode::UNIMPLEMENTED &&
                                     options_.tolerate_unimplemented)));
  observations_.Error(call, status, allowed);
  return false;
}

Task StormClient::NewStormTask(const std::string& key) {
  // Mostly short ones; a few that outlast a lease.
  const size_t size = Pick(100);
  const size_t milliseconds = size < 90   ? 1 + Pick(100)
                              : size < 99 ? 500 + Pick(1500)
                                          : 4000 + Pick(4000);
  const size_t drawn = Pick(1000);
  const char* ending = drawn < 20    ? "fatal"
                       : drawn < 50  ? "error"
                       : drawn < 70  ? "limited"
                       : drawn < 90  ? "snooze"
                       : drawn < 110 ? "stubborn"
                       : drawn < 111 ? "crash"
                                     : "ok";
  Task task =
      NewTask(kStormQueue, "work", absl::StrCat(milliseconds, " ", ending));
  task.set_idempotency_key(key);
  task.set_priority(static_cast<int>(Pick(10)));
  auto* policy = task.mutable_retry_policy();
  policy->set_max_attempts(10);
  policy->mutable_initial_backoff()->set_nanos(100'000'000);
  policy->mutable_max_backoff()->set_seconds(1);
  if (Pick(10) == 0) {
    const absl::Time due = absl::Now() + absl::Milliseconds(200 + Pick(3000));
    task.mutable_schedule_time()->set_seconds(absl::ToUnixSeconds(due));
  }
  return task;
}

void StormClient::Submit(const std::string& key, size_t count,
                         const std::atomic<bool>& stop) {
  v1::SubmitTasksRequest many;
  for (size_t i = 0; i < count; ++i) {
    *many.add_tasks() = NewStormTask(absl::StrCat(key, "/", i));
    observations_.Submitted();
  }
  v1::SubmitTaskRequest one;
  *one.mutable_task() = many.tasks(0);
  while (!stop) {
    const auto context = ContextWithTimeout(kCallTimeout);
    v1::SubmitTasksResponse stored;
    const int64_t asked_us = NowMicros();
    const grpc::Status status =
        count == 1
            ? AnyStub().SubmitTask(context.get(), one, stored.add_tasks())
            : AnyStub().SubmitTasks(context.get(), many, &stored);
    if (Succeeded("SubmitTask", status)) {
      for (const Task& task : stored.tasks()) {
        observations_.Acknowledged(task.id());
        observations_.Saw(task, asked_us);
      }
      return;
    }
    absl::SleepFor(kAfterFailure);
  }
}

void StormClient::Look() {
  const std::string id = AnyTask();
  if (id.empty()) return absl::SleepFor(kAfterFailure);
  const int64_t asked_us = NowMicros();
  const auto context = ContextWithTimeout(kCallTimeout);
  Task task;
  switch (Pick(4)) {
    case 0: {
      v1::GetTaskRequest request;
      request.set_task_id(id);
      if (Succeeded("GetTask",
                    AnyStub().GetTask(context.get(), request, &task)))
        observations_.Saw(task, asked_us);
      break;
    }
    case 1: {
      v1::WaitTaskRequest request;
      request.set_task_id(id);
      request.mutable_timeout()->set_seconds(static_cast<int64_t>(Pick(4)));
      request.mutable_timeout()->set_nanos(1'000'000);
      if (Succeeded("WaitTask",
                    AnyStub().WaitTask(context.get(), request, &task)))
        observations_.Saw(task, asked_us);
      break;
    }
    case 2: {
      v1::ListTasksRequest request;
      request.set_queue(kStormQueue);
      request.set_page_size(20);
      if (Pick(2) == 0) {
        request.add_states(v1::TASK_STATE_RUNNING);
        request.add_states(v1::TASK_STATE_FAILED);
      }
      v1::ListTasksResponse page;
      if (Succeeded("ListTasks",
                    AnyStub().ListTasks(context.get(), request, &page))) {
        for (const Task& listed : page.tasks())
          observations_.Saw(listed, asked_us);
      }
      break;
    }
    default:
      Watch(id);
  }
}

void StormClient::Watch(const std::string& task) {
  v1::WatchTaskRequest request;
  request.set_task_id(task);
  const auto context = ContextWithTimeout(kCallTimeout);
  int64_t asked_us = NowMicros();
  const auto stream = AnyStub().WatchTask(context.get(), request);
  for (Task seen; stream->Read(&seen);) {
    observations_.Saw(seen, asked_us);
    // Nothing may come after it.
    if (IsTerminal(seen.state())) asked_us = NowMicros();
  }
  Succeeded("WatchTask", stream->Finish());
}

void StormClient::Control() {
  const std::string task = AnyTask();
  if (task.empty()) return;
  const size_t drawn = Pick(4);
  if (drawn == 0) return Cancel(task);
  if (drawn == 1) return PauseAndResume(task);
  Retry(task);
}

void StormClient::Cancel(const std::string& task) {
  v1::CancelTaskRequest request;
  request.set_task_id(task);
  request.set_reason("storm");
  const int64_t asked_us = NowMicros();
  Task stored;
  const grpc::Status status = AnyStub().CancelTask(
      ContextWithTimeout(kCallTimeout).get(), request, &stored);
  if (status.error_code() == StatusCode::UNIMPLEMENTED) {
    Succeeded("CancelTask", status, true);
    return;
  }
  Request::Answer answer = Request::Answer::kUnknown;
  if (status.ok()) answer = Request::Answer::kAccepted;
  if (status.error_code() == StatusCode::FAILED_PRECONDITION)
    answer = Request::Answer::kRefused;
  observations_.Asked({task, Request::Kind::kCancel, answer, asked_us, 0});
  if (Succeeded("CancelTask", status, true))
    observations_.Saw(stored, asked_us);
}

void StormClient::Retry(const std::string& task) {
  v1::RetryTaskRequest request;
  request.set_task_id(task);
  const int64_t asked_us = NowMicros();
  Task stored;
  const grpc::Status status = AnyStub().RetryTask(
      ContextWithTimeout(kCallTimeout).get(), request, &stored);
  if (status.error_code() == StatusCode::UNIMPLEMENTED) {
    Succeeded("RetryTask", status, true);
    return;
  }
  Request::Answer answer = Request::Answer::kUnknown;
  if (status.ok()) answer = Request::Answer::kAccepted;
  if (status.error_code() == StatusCode::FAILED_PRECONDITION)
    answer = Request::Answer::kRefused;
  observations_.Asked({task, Request::Kind::kRetry, answer, asked_us, 0});
  if (Succeeded("RetryTask", status, true)) observations_.Saw(stored, asked_us);
}

void StormClient::PauseAndResume(const std::string& task) {
  v1::PauseTaskRequest pause;
  pause.set_task_id(task);
  int64_t asked_us = NowMicros();
  Task stored;
  if (Succeeded("PauseTask",
                AnyStub().PauseTask(ContextWithTimeout(kCallTimeout).get(),
                                    pause, &stored),
                true)) {
    observations_.Saw(stored, asked_us);
  }
  absl::SleepFor(absl::Milliseconds(Pick(500)));
  v1::ResumeTaskRequest resume;
  resume.set_task_id(task);
  asked_us = NowMicros();
  if (Succeeded("ResumeTask",
                AnyStub().ResumeTask(ContextWithTimeout(kCallTimeout).get(),
                                     resume, &stored),
                true)) {
    observations_.Saw(stored, asked_us);
  }
}

StormClients::StormClients(const StormOptions& options,
                           const std::vector<std::string>& addresses,
                           Observations& observations)
    : options_(options), addresses_(addresses), observations_(observations) {
  submitting_ = kSubmitters;
  for (size_t i = 0; i < kSubmitters; ++i)
    submitters_.emplace_back([this, i] { SubmitAll(i); });
  for (size_t i = 0; i < kLookers; ++i) {
    lookers_.emplace_back([this, i] {
      StormClient client(options_.seed + 100 + i, addresses_, options_,
                         observations_);
      while (!stop_looking_) {
        client.Look();
        absl::SleepFor(absl::Milliseconds(client.Pick(40)));
      }
    });
  }
  for (size_t i = 0; i < kControllers; ++i) {
    controllers_.emplace_back([this, i] {
      StormClient client(options_.seed + 200 + i, addresses_, options_,
                         observations_);
      while (!stop_controlling_) {
        client.Control();
        absl::SleepFor(absl::Milliseconds(20 + client.Pick(150)));
      }
    });
  }
}

StormClients::~StormClients() {
  StopSubmitting(absl::ZeroDuration());
  StopControlling();
  StopLooking();
}

// Evenly over the length; what could not be submitted in time comes as fast as
// it is taken.
void StormClients::SubmitAll(size_t thread) {
  StormClient client(options_.seed + 1 + thread, addresses_, options_,
                     observations_);
  const absl::Time began = absl::Now();
  const size_t share = static_cast<size_t>(options_.tasks) / kSubmitters;
  for (size_t done = 0; done < share && !give_up_;) {
    const absl::Time due = began + options_.length * (1.0 * done / share);
    while (absl::Now() < due && !give_up_)
      absl::SleepFor(std::min(due - absl::Now(), absl::Milliseconds(100)));
    const size_t count =
        client.Pick(20) == 0 ? std::min(kTasksInABatch, share - done) : 1;
    client.Submit(absl::StrCat("storm/", thread, "/", done), count, give_up_);
    done += count;
  }
  --submitting_;
}

void StormClients::StopSubmitting(absl::Duration bound) {
  Eventually([this] { return submitting_ == 0; }, bound);
  give_up_ = true;
  for (std::thread& thread : submitters_) {
    if (thread.joinable()) thread.join();
  }
}

void StormClients::StopControlling() {
  stop_controlling_ = true;
  for (std::thread& thread : controllers_) {
    if (thread.joinable()) thread.join();
  }
}

void StormClients::StopLooking() {
  stop_looking_ = true;
  for (std::thread& thread : lookers_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace leasehold::e2e
