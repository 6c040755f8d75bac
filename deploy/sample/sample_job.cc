#include "deploy/sample/sample_job.h"

#include <grpcpp/grpcpp.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leasehold::sample {
namespace {

using leasehold::v1::SubmitTasksRequest;
using leasehold::v1::SubmitTasksResponse;
using leasehold::v1::Task;
using leasehold::v1::WaitTaskRequest;

constexpr size_t kTasksPerCall = 100;
constexpr size_t kWaiters = 8;
constexpr int kWaitSeconds = 20;
constexpr int kMaxFailedCalls = 10;

void SetDeadline(grpc::ClientContext& context, int seconds) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(seconds));
}

bool ReadCount(const rapidjson::Document& document, const char* name,
               int64_t* count) {
  const auto member = document.FindMember(name);
  if (member == document.MemberEnd() || !member->value.IsInt64()) return false;
  *count = member->value.GetInt64();
  return true;
}

void ReadResult(const Task& task, FileStats* stats) {
  const auto& result = task.result();
  const std::string& text = result.has_json() ? result.json() : result.data();
  rapidjson::Document document;
  document.Parse(text.data(), text.size());
  stats->succeeded = document.IsObject() &&
                     ReadCount(document, "lines", &stats->lines) &&
                     ReadCount(document, "words", &stats->words) &&
                     ReadCount(document, "bytes", &stats->bytes);
  if (!stats->succeeded)
    stats->error = absl::StrCat("result without counts: ", text.substr(0, 80));
}

}  // namespace

SampleJob::SampleJob(const std::string& scheduler, std::string queue,
                     std::string type)
    : queue_(std::move(queue)),
      type_(std::move(type)),
      stub_(leasehold::v1::TaskService::NewStub(grpc::CreateChannel(
          scheduler, grpc::InsecureChannelCredentials()))) {}

bool SampleJob::Submit(const std::vector<std::string>& paths,
                       std::string* error) {
  paths_ = paths;
  for (size_t from = 0; from < paths.size(); from += kTasksPerCall) {
    SubmitTasksRequest request;
    for (size_t i = from; i < std::min(from + kTasksPerCall, paths.size());
         ++i) {
      Task* task = request.add_tasks();
      task->set_queue(queue_);
      task->set_type(type_);
      // The name's bytes as they are: a JSON text could not hold every name.
      task->mutable_payload()->set_data(paths[i]);
    }
    grpc::ClientContext context;
    SetDeadline(context, kWaitSeconds);
    SubmitTasksResponse response;
    const grpc::Status status =
        stub_->SubmitTasks(&context, request, &response);
    if (!status.ok()) {
      *error = absl::StrCat("SubmitTasks: ", status.error_message());
      return false;
    }
    for (const Task& task : response.tasks()) task_ids_.push_back(task.id());
  }
  return true;
}

FileStats SampleJob::WaitForOne(size_t index) {
  FileStats stats;
  stats.path = paths_[index];
  WaitTaskRequest request;
  request.set_task_id(task_ids_[index]);
  request.mutable_timeout()->set_seconds(kWaitSeconds);
  for (int failed_calls = 0; failed_calls < kMaxFailedCalls;) {
    grpc::ClientContext context;
    SetDeadline(context, 2 * kWaitSeconds);
    context.set_wait_for_ready(true);
    Task task;
    const grpc::Status status = stub_->WaitTask(&context, request, &task);
    if (!status.ok()) {
      stats.error = absl::StrCat("WaitTask: ", status.error_message());
      ++failed_calls;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } else if (task.state() == leasehold::v1::TASK_STATE_SUCCEEDED) {
      stats.executor = task.executor_id();
      ReadResult(task, &stats);
      return stats;
    } else if (task.has_finish_time()) {
      stats.error =
          absl::StrCat(leasehold::v1::TaskState_Name(task.state()), " ",
                       task.error().code(), ": ", task.error().message());
      return stats;
    }
  }
  return stats;
}

std::vector<FileStats> SampleJob::WaitForAll(
    const std::function<void(size_t)>& on_progress) {
  std::vector<FileStats> all(task_ids_.size());
  std::atomic<size_t> next = 0;
  size_t ended = 0;
  std::mutex mutex;
  const auto wait_for_some = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      all[i] = WaitForOne(i);
      const std::lock_guard<std::mutex> lock(mutex);
      on_progress(++ended);
    }
  };
  std::vector<std::thread> waiters;
  for (size_t i = 0; i < std::min(kWaiters, all.size()); ++i)
    waiters.emplace_back(wait_for_some);
  for (std::thread& waiter : waiters) waiter.join();
  return all;
}

}  // namespace leasehold::sample
