// What the storm reads in the database, past the schedulers.
#ifndef TESTS_E2E_STORM_DATABASE_VIEW_H_
#define TESTS_E2E_STORM_DATABASE_VIEW_H_

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/storm/observations.h"
#include "tests/support/database.h"
#include "tests/support/history.h"

namespace leasehold::e2e {

// Reads the leased rows a few times a second, whenever the database is there.
class LeaseWatch {
 public:
  LeaseWatch(std::string socket_path, std::string database,
             Observations& observations);
  ~LeaseWatch() { Stop(); }
  void Stop();

 private:
  void Run();
  void LookOnce(SqlConnection& sql);

  const std::string socket_path_;
  const std::string database_;
  Observations& observations_;
  // Of the leases that were there at the last look.
  std::map<std::string, LeaseSighting> present_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Every task's row. Adds a line for what no two rows may say.
std::map<std::string, FinalTask> ReadFinalTasks(
    SqlConnection& sql, std::vector<std::string>* mistakes);

// How many attempts ended in an error of each class.
std::map<std::string, long long> CountAttempts(SqlConnection& sql);

}  // namespace leasehold::e2e

#endif  // TESTS_E2E_STORM_DATABASE_VIEW_H_
