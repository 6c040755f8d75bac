#include "tests/bench/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "tests/support/child_process.h"
#include "tests/support/temp_folder.h"

namespace leasehold::bench {

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const size_t index = rank < 1 ? 0 : static_cast<size_t>(rank) - 1;
  return values[std::min(index, values.size() - 1)];
}

double Median(std::vector<double> values) {
  return Percentile(std::move(values), 0.5);
}

void CpuMeter::Add(const std::string& name, pid_t pid) {
  processes_.push_back({name, pid, 0});
}

void CpuMeter::Start() {
  for (Process& process : processes_)
    process.before = e2e::CpuSeconds(process.pid);
}

void CpuMeter::Print(size_t tasks) const {
  for (const Process& process : processes_) {
    const double seconds = e2e::CpuSeconds(process.pid) - process.before;
    std::printf("  %-14s %7.2f CPU s %8.1f us a task\n", process.name.c_str(),
                seconds, seconds * 1e6 / static_cast<double>(tasks));
  }
}

double PeakResidentMiB(pid_t pid) {
  std::istringstream lines(
      e2e::ReadFile("/proc/" + std::to_string(pid) + "/status"));
  double kib = 0;
  for (std::string word; lines >> word;) {
    if (word == "VmHWM:") lines >> kib;
  }
  return kib / 1024;
}

}  // namespace leasehold::bench
