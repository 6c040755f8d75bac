#include "scheduler/config/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "scheduler/config/byte_size.h"

namespace leasehold::scheduler {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const char kMySql[] = "host=db.internal user=u db=d password=hunter2";

class CommandLineTest : public testing::Test {
 protected:
  absl::StatusOr<CommandLine> Read(const std::vector<std::string>& args) {
    return ReadCommandLine(args, [this](const std::string& name) {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt
                                        : std::optional(found->second);
    });
  }
  // The lines of the error.
  std::vector<std::string> Mistakes(const std::vector<std::string>& args) {
    const auto line = Read(args);
    EXPECT_TRUE(absl::IsInvalidArgument(line.status()));
    return absl::StrSplit(std::string(line.status().message()), '\n');
  }

  absl::FlagSaver saver;
  std::map<std::string, std::string> environment = {
      {"LEASEHOLD_MYSQL", kMySql}};
};

TEST_F(CommandLineTest, DefaultsServeThisMachineOnly) {
  const auto line = Read({});

  ASSERT_TRUE(line.ok()) << line.status();
  const SchedulerConfig& config = line->config;
  EXPECT_EQ(line->action, CommandLineAction::kRun);
  EXPECT_EQ(config.listen, "127.0.0.1:7070");
  EXPECT_EQ(config.http_listen, "127.0.0.1:7071");
  EXPECT_EQ(config.mysql.host, "db.internal");
  EXPECT_EQ(config.mysql.password, "hunter2");
  EXPECT_EQ(config.engine.leases.lease_duration, absl::Seconds(15));
  EXPECT_EQ(config.engine.bounds.submit_queue_tasks,
            EngineBounds{}.submit_queue_tasks);
  EXPECT_EQ(config.engine.bounds.session_outbox_bytes,
            EngineBounds{}.session_outbox_bytes);
  EXPECT_FALSE(config.engine.scheduler_id.empty());
  EXPECT_EQ(config.engine.address, config.listen);
}

TEST_F(CommandLineTest, FlagsWinOverTheEnvironmentAndThatOverDefaults) {
  environment["LEASEHOLD_LEASE_DURATION"] = "30s";
  environment["LEASEHOLD_SUBMIT_QUEUE_BYTES"] = "128MiB";
  environment["LEASEHOLD_HTTP_LISTEN"] = "";
  environment["LEASEHOLD_MIGRATE_ONLY"] = "true";

  const auto line = Read({"--lease_duration=40s", "--read_threads", "8"});

  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config.engine.leases.lease_duration, absl::Seconds(40));
  EXPECT_EQ(line->config.engine.bounds.submit_queue_bytes, 128u << 20);
  EXPECT_EQ(line->config.http_listen, "");
  EXPECT_TRUE(line->config.migrate_only);
  EXPECT_EQ(line->config.engine.bounds.read_threads, 8);
  EXPECT_EQ(line->config.mysql.read_connections, 8);
}

TEST_F(CommandLineTest, ReportsAllMistakesAtOnce) {
  const std::vector<std::string> mistakes = Mistakes(
      {"--lease_duration=4s", "--foo=1", "stray", "--read_threads=0",
       "--submit_queue_bytes=1x", "--listen=nowhere", "--http_listen=::1:80",
       "--drain_timeout=11s", "--sessions=many", "--accept_timeout=soon",
       "--log_level=loud", "--claim_batch_tasks=401"});

  EXPECT_THAT(
      mistakes,
      testing::UnorderedElementsAre(
          "--lease_duration=4s must be at least 3x --heartbeat_interval=5s",
          "\"--foo=1\": no such flag, see --help",
          "\"stray\": want only flags, see --help",
          "--read_threads=0: want 1-64",
          "--submit_queue_bytes=\"1x\": want a number of bytes such as 65536, "
          "64KiB or 16MiB",
          HasSubstr("--listen=\"nowhere\": want host:port"),
          HasSubstr("--http_listen=\"::1:80\": want host:port"),
          "--drain_timeout=11s: want 1s-10s",
          "--sessions=\"many\": want a whole number",
          HasSubstr("--accept_timeout=\"soon\": want a duration"),
          HasSubstr("--log_level: "), "--claim_batch_tasks=401: want 1-400"));
}

struct Limit {
  const char* flag;
  const char* good;
  const char* bad;
};

TEST_F(CommandLineTest, HoldsEveryLimitExactly) {
  for (const Limit& limit : {
           Limit{"lease_duration", "15s", "2999ms"},
           Limit{"lease_duration", "10m", "600001ms"},
           Limit{"heartbeat_interval", "100ms", "99ms"},
           Limit{"heartbeat_interval", "5s", "5001ms"},
           Limit{"accept_timeout", "1s", "999ms"},
           Limit{"accept_timeout", "10m", "601s"},
           Limit{"drain_timeout", "1s", "999ms"},
           Limit{"read_threads", "64", "65"},
           Limit{"submit_queue_tasks", "1000", "999"},
           Limit{"submit_queue_bytes", "4MiB", "4194303"},
           Limit{"ready_index_payload_bytes", "0", "-1"},
           Limit{"watches", "1", "0"},
       }) {
    absl::FlagSaver restore;
    EXPECT_TRUE(Read({absl::StrCat("--", limit.flag, "=", limit.good)}).ok())
        << limit.flag << " " << limit.good;
    EXPECT_FALSE(Read({absl::StrCat("--", limit.flag, "=", limit.bad)}).ok())
        << limit.flag << " " << limit.bad;
  }
}

TEST_F(CommandLineTest, WantsADatabase) {
  environment.clear();
  EXPECT_THAT(Mistakes({}), ElementsAre(HasSubstr("--mysql: not set, want ")));
}

TEST_F(CommandLineTest, NeverRepeatsAPassword) {
  environment.clear();
  for (const char* mysql :
       {"--mysql=host=h user=u db=d password=hunter2",
        "--mysql=password=hunter2 nonsense", "--mysql=host=h port=hunter2"}) {
    const auto mistakes = Mistakes({mysql, "--read_threads=0"});
    if (absl::string_view(mysql).find("password") != absl::string_view::npos) {
      EXPECT_THAT(mistakes, Each(Not(HasSubstr("hunter2"))));
      EXPECT_THAT(mistakes[0], HasSubstr("--mysql: has password="));
    }
  }
}

TEST_F(CommandLineTest, ValueFlagsWantAValue) {
  EXPECT_THAT(Mistakes({"--listen"}), ElementsAre("--listen: want a value"));
  EXPECT_THAT(Mistakes({"--listen", "--migrate_only"}),
              ElementsAre("--listen: want a value"));
}

TEST_F(CommandLineTest, HelpAndVersionWantNothingElse) {
  environment.clear();
  EXPECT_EQ(Read({"--bad", "--help"})->action, CommandLineAction::kShowHelp);
  EXPECT_EQ(Read({"--version"})->action, CommandLineAction::kShowVersion);
}

TEST_F(CommandLineTest, HelpShowsOurFlagsOnlyAndFitsATerminal) {
  const std::string help = HelpText();
  EXPECT_THAT(help, HasSubstr("--lease_duration=15s"));
  EXPECT_THAT(help, HasSubstr("--session_outbox_bytes=16MiB"));
  EXPECT_THAT(help, Not(HasSubstr("flagfile")));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, SizeIs(testing::Le(80u)));
  }
}

TEST(ByteSizeTest, ReadsAndShowsUnits) {
  for (const auto& [text, bytes] : std::map<std::string, int64_t>{
           {"0", 0}, {"65537", 65537}, {"64KiB", 65536}, {"3GiB", 3ll << 30}}) {
    ByteSize size;
    std::string error;
    EXPECT_TRUE(AbslParseFlag(text, &size, &error));
    EXPECT_EQ(size.bytes, bytes);
    EXPECT_EQ(AbslUnparseFlag(size), text);
  }
  for (const char* bad : {"", "x", "-1", "1MB", "9223372036854775807KiB"}) {
    ByteSize size;
    std::string error;
    EXPECT_FALSE(AbslParseFlag(bad, &size, &error)) << bad;
  }
}

}  // namespace
}  // namespace leasehold::scheduler
