// The engine and the sessions as the services see them, steered by tests.
#ifndef TESTS_SCHEDULER_RPC_FAKES_H_
#define TESTS_SCHEDULER_RPC_FAKES_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "scheduler/engine/queue_control.h"
#include "scheduler/engine/task_control.h"
#include "scheduler/engine/task_reader.h"
#include "scheduler/engine/task_submitter.h"
#include "scheduler/engine/task_watch_hub.h"
#include "scheduler/rpc/grpc_server.h"
#include "scheduler/session/session.h"

namespace leasehold::scheduler {

inline constexpr absl::Duration kPatience = absl::Seconds(20);

// Guards what a test and a server's threads share; waits with a deadline.
class Monitor {
 public:
  template <class F>
  auto With(F f) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto result = f();
    changed_.notify_all();
    return result;
  }
  template <class F>
  bool WaitUntil(F condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoMilliseconds(kPatience),
                             condition);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class FakeSubmitter : public TaskSubmitter {
 public:
  void Submit(std::vector<TaskSpec> specs, SubmitDone done) override {
    const bool held = monitor.With([&] {
      submitted.insert(submitted.end(), specs.begin(), specs.end());
      if (hold) waiting.push_back(done);
      return hold;
    });
    if (!held) done(answer(specs));
  }

  Monitor monitor;
  bool hold = false;
  std::vector<SubmitDone> waiting;
  std::vector<TaskSpec> submitted;
  std::function<absl::StatusOr<std::vector<SubmittedTask>>(
      const std::vector<TaskSpec>&)>
      answer = [](const std::vector<TaskSpec>& specs) {
        std::vector<SubmittedTask> stored;
        for (size_t i = 0; i < specs.size(); ++i) {
          stored.push_back({static_cast<TaskId>(i + 1), false, 7'000'000, 1});
        }
        return stored;
      };
};

class FakeReader : public TaskReader {
 public:
  void GetTask(TaskId id, ReadOptions options, TaskDone done) override {
    last_options = options;
    const auto found = tasks.find(id);
    if (found == tasks.end()) {
      done(absl::NotFoundError(absl::StrCat("task ", id, ": not found")));
    } else {
      done(found->second);
    }
  }
  void GetTasks(std::vector<TaskId> ids, ReadOptions options,
                TasksDone done) override {
    last_options = options;
    std::vector<TaskRecord> found;
    for (const TaskId id : ids) {
      if (tasks.count(id) != 0) found.push_back(tasks[id]);
    }
    done(std::move(found));
  }
  void ListTasks(ListFilter filter, TaskId below, int page_size,
                 PageDone done) override {
    last_filter = std::move(filter);
    last_page_size = page_size;
    ListPage page;
    for (auto it = tasks.rbegin(); it != tasks.rend(); ++it) {
      if (it->first >= below) continue;
      if (page.tasks.size() == static_cast<size_t>(page_size)) {
        page.next_below = page.tasks.back().id;
        break;
      }
      page.tasks.push_back(it->second);
    }
    done(std::move(page));
  }

  std::map<TaskId, TaskRecord> tasks;
  ReadOptions last_options;
  ListFilter last_filter;
  int last_page_size = 0;
};

class FakeControl : public TaskControl {
 public:
  void Control(ControlRequest request, Done done) override {
    last = std::move(request);
    done(answer);
  }

  ControlRequest last;
  absl::StatusOr<TaskRecord> answer = absl::NotFoundError("task 1: not found");
};

class FakeQueues : public QueueControl {
 public:
  void Pause(std::string queue, Done done) override {
    last = std::move(queue);
    paused = true;
    done(answer);
  }
  void Resume(std::string queue, Done done) override {
    last = std::move(queue);
    paused = false;
    done(answer);
  }

  std::string last;
  bool paused = false;
  absl::StatusOr<QueueRow> answer = QueueRow{};
};

class FakeWatchHub : public TaskWatchHub {
 public:
  absl::StatusOr<WatchId> Watch(TaskId id, OnUpdate on_update) override {
    if (!refuse.ok()) return refuse;
    return monitor.With([&] {
      watches[++next_] = {id, std::move(on_update)};
      return next_;
    });
  }
  void Unwatch(WatchId watch) override {
    monitor.With([&] { return watches.erase(watch); });
  }
  // To everybody who watches.
  void Update(const absl::StatusOr<TaskRecord>& record) {
    std::vector<OnUpdate> targets;
    monitor.With([&] {
      for (const auto& [id, watch] : watches) targets.push_back(watch.second);
      return 0;
    });
    for (const OnUpdate& on_update : targets) on_update(record);
  }
  bool WaitForWatches(size_t n) {
    return monitor.WaitUntil([&] { return watches.size() == n; });
  }

  Monitor monitor;
  absl::Status refuse;
  std::map<WatchId, std::pair<TaskId, OnUpdate>> watches;

 private:
  WatchId next_ = 0;
};

// A session that welcomes a hello and otherwise only remembers.
class FakeSessions : public SessionHost {
 public:
  absl::StatusOr<std::shared_ptr<Session>> OpenSession(
      std::shared_ptr<SessionSink> sink) override {
    if (!refuse.ok()) return refuse;
    monitor.With([&] {
      sinks.push_back(sink);
      return ++opened;
    });
    return std::make_shared<FakeSession>(this, std::move(sink));
  }

  Monitor monitor;
  absl::Status refuse;
  std::vector<std::weak_ptr<SessionSink>> sinks;
  std::vector<ExecutorMessage> received;
  int opened = 0;
  int ended = 0;

 private:
  class FakeSession : public Session {
   public:
    FakeSession(FakeSessions* host, std::shared_ptr<SessionSink> sink)
        : host_(host), sink_(std::move(sink)) {}
    void OnMessage(ExecutorMessage message) override {
      const bool hello = std::holds_alternative<HelloMessage>(message);
      if (hello != !std::exchange(greeted_, true)) {
        sink_->Close(absl::InvalidArgumentError(
            hello ? "hello: sent twice" : "message: want hello first"));
        return;
      }
      const bool leaves = std::holds_alternative<GoodbyeMessage>(message);
      host_->monitor.With([&] {
        host_->received.push_back(std::move(message));
        return 0;
      });
      if (hello) sink_->Send(WelcomeMessage{"s1", 1, 2, 3, {}});
      if (leaves) sink_->Close(absl::OkStatus());
    }
    void OnStreamEnded() override {
      host_->monitor.With([&] { return ++host_->ended; });
    }

   private:
    FakeSessions* const host_;
    const std::shared_ptr<SessionSink> sink_;
    bool greeted_ = false;
  };
};

// The real gRPC server on a free port of the loopback, over the fakes.
class GrpcServerTest : public testing::Test {
 protected:
  static constexpr int64_t kNowUs = 1'700'000'000'000'000;

  void SetUp() override { StartServer(GrpcServerOptions{}); }

  void StartServer(GrpcServerOptions options) {
    server.reset();
    options.listen = "127.0.0.1:0";
    GrpcServerParts parts{
        &submitter,           &reader, &control, &hub, &sessions, &queues,
        [] { return kNowUs; }};
    auto started = GrpcServer::Start(options, parts);
    ASSERT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
    address = absl::StrCat("127.0.0.1:", server->port());
    channel = NewChannel();
    tasks = v1::TaskService::NewStub(channel);
  }

  grpc::Status Wait(const std::string& id, int64_t timeout_ms,
                    v1::Task* response, absl::Duration deadline = kPatience) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(deadline));
    v1::WaitTaskRequest request;
    request.set_task_id(id);
    request.mutable_timeout()->set_seconds(timeout_ms / 1000);
    request.mutable_timeout()->set_nanos(
        static_cast<int32_t>(timeout_ms % 1000 * 1'000'000));
    return tasks->WaitTask(&context, request, response);
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments);
  }

  FakeSubmitter submitter;
  FakeReader reader;
  FakeControl control;
  FakeQueues queues;
  FakeWatchHub hub;
  FakeSessions sessions;
  std::unique_ptr<GrpcServer> server;
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::TaskService::Stub> tasks;
};

// A waiting task.
inline TaskRecord NewRecord(TaskId id) {
  TaskRecord record;
  record.id = id;
  record.spec.queue = "q";
  record.spec.type = "echo";
  record.create_us = 5'000'000;
  record.live = LiveTask{};
  record.live->id = id;
  return record;
}
inline TaskRecord NewEndedRecord(TaskId id) {
  TaskRecord record = NewRecord(id);
  record.live.reset();
  record.ended = EndedTask{};
  record.ended->state = TaskState::kSucceeded;
  record.ended->result = {PayloadKind::kJson, "42"};
  record.ended->finish_us = 9'000'000;
  return record;
}

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_RPC_FAKES_H_
