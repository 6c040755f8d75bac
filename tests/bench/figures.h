// What a benchmark measures and how it says so.
#ifndef TESTS_BENCH_FIGURES_H_
#define TESTS_BENCH_FIGURES_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {

double Median(std::vector<double> values);
// `share` from 0 to 1.
double Percentile(std::vector<double> values, double share);

// CPU time that processes spend between Start and Print.
class CpuMeter {
 public:
  void Add(const std::string& name, pid_t pid);
  void Start();
  // One line a process: seconds, and microseconds for each of `tasks`.
  void Print(size_t tasks) const;

 private:
  struct Process {
    std::string name;
    pid_t pid;
    double before;
  };
  std::vector<Process> processes_;
};

// VmHWM: the most memory that a process ever had, in MiB.
double PeakResidentMiB(pid_t pid);

}  // namespace leasehold::bench

#endif  // TESTS_BENCH_FIGURES_H_
