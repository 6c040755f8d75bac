// The sample job: one file-stats task per file, submitted in groups, waited
// for, collected.
#ifndef DEPLOY_SAMPLE_SAMPLE_JOB_H_
#define DEPLOY_SAMPLE_SAMPLE_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/v1/task_service.grpc.pb.h"

namespace leasehold::sample {

struct FileStats {
  std::string path;
  bool succeeded = false;
  int64_t lines = 0;
  int64_t words = 0;
  int64_t bytes = 0;
  std::string error;     // Why not, when it did not succeed.
  std::string executor;  // Who ran it.
};

class SampleJob {
 public:
  // `queue` and `type` are what the executors serve.
  SampleJob(const std::string& scheduler, std::string queue, std::string type);

  // Submits a task per file. False, with `error` set, when the scheduler
  // refuses or cannot be reached.
  bool Submit(const std::vector<std::string>& paths, std::string* error);

  // Waits until every task has ended and returns what came of each file, in the
  // order of the paths. Calls `on_progress` with the number of ended tasks,
  // from several threads, one at a time.
  std::vector<FileStats> WaitForAll(
      const std::function<void(size_t)>& on_progress);

 private:
  FileStats WaitForOne(size_t index);

  const std::string queue_;
  const std::string type_;
  std::unique_ptr<leasehold::v1::TaskService::Stub> stub_;
  std::vector<std::string> paths_;
  std::vector<std::string> task_ids_;
};

}  // namespace leasehold::sample

#endif  // DEPLOY_SAMPLE_SAMPLE_JOB_H_
