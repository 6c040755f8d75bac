// What the sample job prints.
#ifndef DEPLOY_SAMPLE_REPORT_H_
#define DEPLOY_SAMPLE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/sample/sample_job.h"

namespace leasehold::sample {

struct Totals {
  size_t files = 0;
  size_t failed = 0;
  int64_t lines = 0;
  int64_t words = 0;
  int64_t bytes = 0;
};

Totals Sum(const std::vector<FileStats>& all);

// One line a file, the largest first, `max_rows` at most, then the totals, how
// many each executor ran, and every failure. Names are shown relative to
// `folder`; bytes that a terminal could take amiss are shown as escapes.
void PrintTable(const std::vector<FileStats>& all, const std::string& folder,
                size_t max_rows);

// Shows `done` of `total`: on a terminal in place, else once in a while.
class ProgressLine {
 public:
  explicit ProgressLine(size_t total);
  void Show(size_t done);
  void Finish();

 private:
  const size_t total_;
  const bool terminal_;
  size_t shown_ = 0;
};

}  // namespace leasehold::sample

#endif  // DEPLOY_SAMPLE_REPORT_H_
