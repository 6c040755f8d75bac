#include "tests/e2e/storm/faults.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {
namespace {

using Direction = TcpProxy::Direction;
using Mode = TcpProxy::Mode;
using CommitMoment = TcpProxy::CommitMoment;

constexpr absl::Duration kBlink = absl::Milliseconds(100);
// More than two leases.
constexpr absl::Duration kLong = absl::Seconds(7);
constexpr int kExitCrashedAsTold = 9;

}  // namespace

Faults::Faults(const StormOptions& options, StormCluster& cluster,
               Observations& observations)
    : cluster_(cluster),
      observations_(observations),
      options_(options),
      random_(options.seed) {
  AddProcessFaults();
  AddNetworkFaults();
  AddCommitFaults();
  AddDatabaseFaults();
}

size_t Faults::PickIndex(size_t size) {
  return std::uniform_int_distribution<size_t>(0, size - 1)(random_);
}

// Short ones as often as long ones: evenly by order of magnitude.
absl::Duration Faults::Pick(absl::Duration shortest, absl::Duration longest) {
  const double ratio = absl::FDivDuration(longest, shortest);
  return shortest *
         std::pow(ratio, std::uniform_real_distribution<double>(0, 1)(random_));
}

bool Faults::Take(const std::string& victim, absl::Time end) {
  absl::Time& busy_until = busy_[victim];
  if (busy_until > absl::Now()) return false;
  busy_until = end;
  return true;
}

void Faults::Later(absl::Time when, std::function<void()> undo) {
  undos_.emplace(when, std::move(undo));
}

void Faults::Signal(ChildProcess& process, int signal) {
  if (signal == SIGKILL) observations_.Died(process.pid());
  process.Signal(signal);
}

void Faults::AddProcessFaults() {
  // A process gets the signal, and some time later the other one, or is started
  // again.
  const auto add = [this](const std::string& name, int weight, int signal,
                          bool scheduler) {
    kinds_.push_back(
        {name, weight, [this, signal, scheduler] {
           const size_t i = PickIndex(scheduler ? cluster_.schedulers()
                                                : cluster_.executors());
           const absl::Time end = absl::Now() + Pick(kBlink, kLong);
           if (!Take(absl::StrCat(scheduler ? "scheduler " : "executor ", i),
                     end))
             return false;
           ChildProcess& process = scheduler ? cluster_.scheduler(i).process()
                                             : cluster_.executor(i);
           Signal(process, signal);
           if (signal == SIGKILL) process.Kill();
           Later(end, [this, i, signal, scheduler] {
             ChildProcess& suffering = scheduler
                                           ? cluster_.scheduler(i).process()
                                           : cluster_.executor(i);
             if (signal == SIGSTOP) return suffering.Signal(SIGCONT);
             if (suffering.Running()) observations_.Died(suffering.pid());
             if (scheduler) {
               cluster_.RestartScheduler(i);
             } else {
               cluster_.RestartExecutor(i);
             }
           });
           return true;
         }});
  };
  add("scheduler killed", 3, SIGKILL, true);
  add("scheduler frozen", 3, SIGSTOP, true);
  add("scheduler terminated", 1, SIGTERM, true);
  add("executor killed", 6, SIGKILL, false);
  add("executor frozen", 6, SIGSTOP, false);
  add("executor terminated", 2, SIGTERM, false);
}

void Faults::AddNetworkFaults() {
  const auto add = [this](const std::string& name, int weight, bool database,
                          const std::function<void(TcpProxy&)>& hurt) {
    kinds_.push_back(
        {name, weight, [this, database, hurt] {
           const size_t scheduler = PickIndex(cluster_.schedulers());
           const size_t executor = PickIndex(cluster_.executors());
           TcpProxy& proxy = database ? cluster_.database_proxy(scheduler)
                                      : cluster_.proxy(executor, scheduler);
           const absl::Time end = absl::Now() + Pick(kBlink, kLong);
           if (!Take(absl::StrCat("link ", proxy.port()), end)) return false;
           hurt(proxy);
           Later(end, [&proxy] { proxy.Heal(); });
           return true;
         }});
  };
  for (const bool database : {false, true}) {
    const std::string link = database ? "database link " : "executor link ";
    const int weight = database ? 1 : 2;
    add(link + "cut", weight, database, [](TcpProxy& p) { p.Cut(); });
    add(link + "reset and refused", weight, database, [](TcpProxy& p) {
      p.RefuseConnections(true);
      p.Cut(TcpProxy::Ending::kReset);
    });
    add(link + "half closed", weight, database, [this](TcpProxy& p) {
      p.CutDirection(PickIndex(2) == 0 ? Direction::kToServer
                                       : Direction::kToClient);
    });
    add(link + "stalled", 2 * weight, database, [this](TcpProxy& p) {
      const size_t which = PickIndex(3);
      if (which != 0) p.SetMode(Direction::kToServer, Mode::kStall);
      if (which != 1) p.SetMode(Direction::kToClient, Mode::kStall);
    });
    add(link + "slow", weight, database, [this](TcpProxy& p) {
      const absl::Duration delay =
          Pick(absl::Milliseconds(5), absl::Seconds(1));
      p.SetDelay(Direction::kToServer, delay);
      p.SetDelay(Direction::kToClient, delay);
    });
  }
  // What is lost cannot be found again, so the connection ends with it.
  kinds_.push_back({"executor link half dead", 4, [this] {
                      TcpProxy& proxy =
                          cluster_.proxy(PickIndex(cluster_.executors()),
                                         PickIndex(cluster_.schedulers()));
                      const absl::Time end = absl::Now() + Pick(kBlink, kLong);
                      if (!Take(absl::StrCat("link ", proxy.port()), end))
                        return false;
                      proxy.SetMode(PickIndex(2) == 0 ? Direction::kToServer
                                                      : Direction::kToClient,
                                    Mode::kDrop);
                      Later(end, [&proxy] {
                        proxy.Cut();
                        proxy.Heal();
                      });
                      return true;
                    }});
}

void Faults::AddCommitFaults() {
  const auto add = [this](const std::string& name, CommitMoment when,
                          bool late) {
    kinds_.push_back(
        {name, 2, [this, when, late] {
           TcpProxy& proxy =
               cluster_.database_proxy(PickIndex(cluster_.schedulers()));
           const absl::Time end = absl::Now() + kLong;
           if (!Take(absl::StrCat("link ", proxy.port()), end)) return false;
           proxy.BreakCommits(
               {.when = when,
                .stall = late ? Pick(kBlink, kLong) : absl::ZeroDuration(),
                .times = static_cast<int>(1 + PickIndex(5))});
           Later(end, [&proxy] { proxy.Heal(); });
           return true;
         }});
  };
  add("commit cut before", CommitMoment::kUnsent, false);
  add("commit cut after", CommitMoment::kAnswered, false);
  add("commit late", CommitMoment::kUnsent, true);
  add("commit answered late", CommitMoment::kAnswered, true);
}

void Faults::AddDatabaseFaults() {
  for (const bool kill : {false, true}) {
    kinds_.push_back(
        {kill ? "database killed" : "database restarted", 1, [this, kill] {
           // The server needs time to come back; one at a time, and not all the
           // time.
           if (!Take("database", absl::Now() + absl::Seconds(15))) return false;
           if (kill) {
             cluster_.database().Kill();
           } else {
             cluster_.database().Stop();
           }
           absl::SleepFor(Pick(kBlink, absl::Seconds(3)));
           cluster_.database().Start();
           return true;
         }});
  }
}

void Faults::StrikeOnce() {
  int total = 0;
  for (const Kind& kind : kinds_) total += kind.weight;
  int drawn = static_cast<int>(PickIndex(static_cast<size_t>(total)));
  for (const Kind& kind : kinds_) {
    drawn -= kind.weight;
    if (drawn >= 0) continue;
    if (kind.strike()) {
      observations_.Fault(kind.name);
      std::printf(
          "%s  %s\n",
          absl::FormatTime("%H:%M:%E3S", absl::Now(), absl::UTCTimeZone())
              .c_str(),
          kind.name.c_str());
      std::fflush(stdout);
    }
    return;
  }
}

void Faults::Undo(absl::Time until) {
  while (!undos_.empty() && undos_.begin()->first <= until) {
    const auto undo = std::move(undos_.begin()->second);
    undos_.erase(undos_.begin());
    undo();
  }
}

void Faults::RunUntil(absl::Time end) {
  std::exponential_distribution<double> pause(1);
  absl::Time next = absl::Now();
  while (absl::Now() < end) {
    if (absl::Now() >= next) {
      StrikeOnce();
      next = absl::Now() + options_.fault_interval * pause(random_);
    }
    Undo(absl::Now());
    ReviveTheFallen();
    absl::SleepFor(absl::Milliseconds(10));
  }
}

void Faults::ReviveTheFallen() {
  // Those that a fault has ended are started by its undo, which may be due.
  const auto is_busy = [this](const std::string& victim) {
    const auto busy = busy_.find(victim);
    return busy != busy_.end() && busy->second + absl::Seconds(2) > absl::Now();
  };
  for (size_t i = 0; i < cluster_.schedulers(); ++i) {
    ChildProcess& process = cluster_.scheduler(i).process();
    if (is_busy(absl::StrCat("scheduler ", i)) || process.Running()) continue;
    const int status = process.WaitForExit(absl::ZeroDuration()).value_or(-1);
    crashes_.push_back(
        absl::StrCat("scheduler ", i + 1, " ended with status ", status));
    cluster_.RestartScheduler(i);
  }
  for (size_t i = 0; i < cluster_.executors(); ++i) {
    ChildProcess& process = cluster_.executor(i);
    if (is_busy(absl::StrCat("executor ", i)) || process.Running()) continue;
    const int status = process.WaitForExit(absl::ZeroDuration()).value_or(-1);
    observations_.Died(process.pid());
    if (status == kExitCrashedAsTold) {
      observations_.Fault("executor crashed by its task");
    } else {
      crashes_.push_back(
          absl::StrCat("executor ", i + 1, " ended with status ", status));
    }
    cluster_.RestartExecutor(i);
  }
}

void Faults::Stop() {
  Undo(absl::InfiniteFuture());
  busy_.clear();
  cluster_.HealNetwork();
  ReviveTheFallen();
  for (size_t i = 0; i < cluster_.schedulers(); ++i) {
    if (!Eventually([&] { return cluster_.scheduler(i).Serving(); }))
      crashes_.push_back(absl::StrCat("scheduler ", i + 1, " does not serve"));
  }
}

}  // namespace leasehold::e2e
