#include "common/concurrency/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace leasehold {

void NameThisThread(const std::string& name) {
  // The kernel refuses names of more than 15 bytes.
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

ThreadPool::ThreadPool(const std::string& name, int threads, size_t max_queued)
    : queue_(max_queued, 0) {
  const int count = std::max(threads, 1);
  threads_.reserve(count);
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this, name] { Work(name); });
  }
}

ThreadPool::~ThreadPool() { Shutdown(); }

bool ThreadPool::TryRun(std::function<void()> run) {
  return queue_.TryPush(std::move(run));
}

void ThreadPool::Shutdown() {
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::Work(const std::string& name) {
  NameThisThread(name);
  std::vector<std::function<void()>> batch;
  while (queue_.PopBatch(1, 0, &batch)) {
    batch.front()();
    // What the function holds goes now, not when the next one comes.
    batch.clear();
  }
}

}  // namespace leasehold
