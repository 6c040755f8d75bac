// What goes wrong, at random, and comes right again some time later.
#ifndef TESTS_E2E_STORM_FAULTS_H_
#define TESTS_E2E_STORM_FAULTS_H_

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/storm/observations.h"
#include "tests/e2e/storm/storm_cluster.h"

namespace leasehold::e2e {

class Faults {
 public:
  Faults(const StormOptions& options, StormCluster& cluster,
         Observations& observations);

  // One fault after the other until `end`.
  void RunUntil(absl::Time end);
  // Everything comes right now, and everything is started again.
  void Stop();
  // Restarts processes that ended though nobody killed them.
  void ReviveTheFallen();
  // What must not be: processes that crashed.
  const std::vector<std::string>& crashes() const { return crashes_; }

 private:
  // One way of going wrong. Returns false when its victim suffers already.
  using Strike = std::function<bool()>;
  struct Kind {
    std::string name;
    int weight;
    Strike strike;
  };

  void AddProcessFaults();
  void AddNetworkFaults();
  void AddCommitFaults();
  void AddDatabaseFaults();
  void StrikeOnce();
  void Undo(absl::Time until);

  // Whether nothing is wrong with this victim; marks it until `end`.
  bool Take(const std::string& victim, absl::Time end);
  void Later(absl::Time when, std::function<void()> undo);
  absl::Duration Pick(absl::Duration shortest, absl::Duration longest);
  size_t PickIndex(size_t size);

  void Signal(ChildProcess& process, int signal);

  StormCluster& cluster_;
  Observations& observations_;
  const StormOptions options_;
  std::mt19937_64 random_;
  std::vector<Kind> kinds_;
  std::multimap<absl::Time, std::function<void()>> undos_;
  std::map<std::string, absl::Time> busy_;
  std::vector<std::string> crashes_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_E2E_STORM_FAULTS_H_
