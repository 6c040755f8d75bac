#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "executor/config/command_line.h"

namespace leasehold::executor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;

class CommandLineTest : public testing::Test {
 protected:
  absl::StatusOr<CommandLine> Read(const std::vector<std::string>& args) {
    return ReadCommandLine(args, [this](const std::string& name) {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt
                                        : std::optional(found->second);
    });
  }
  std::vector<std::string> Mistakes(const std::vector<std::string>& args) {
    const auto line = Read(args);
    EXPECT_TRUE(absl::IsInvalidArgument(line.status()));
    return absl::StrSplit(std::string(line.status().message()), '\n');
  }
  std::string WriteConfig(const std::string& text) {
    const std::string path =
        testing::TempDir() + "/command_line_test.textproto";
    std::ofstream(path) << text;
    return path;
  }

  absl::FlagSaver saver;
  std::map<std::string, std::string> environment;
};

constexpr char kQueue[] =
    "queue { name: \"q\" handler { type: \"a\" echo {} } }\n";

TEST_F(CommandLineTest, FlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const std::string config = WriteConfig(
      std::string("scheduler: \"a:1\" executor_id: \"file\" ") + kQueue);
  environment["LEASEHOLD_CONFIG"] = config;
  environment["LEASEHOLD_EXECUTOR_ID"] = "environment";
  environment["LEASEHOLD_SCHEDULER"] = "b:2";

  const auto line = Read({"--scheduler=c:3,d:4", "--drain_timeout", "3s"});

  ASSERT_TRUE(line.ok()) << line.status();
  const ExecutorOptions& options = line->config.options;
  EXPECT_THAT(options.schedulers, ElementsAre("c:3", "d:4"));
  EXPECT_EQ(options.executor_id, "environment");
  EXPECT_EQ(options.drain_timeout, absl::Seconds(3));
}

TEST_F(CommandLineTest, ReportsMistakesOfFlagsAndFileAtOnce) {
  const std::string config = WriteConfig("slots: -1\n");

  EXPECT_THAT(
      Mistakes({"--nope", "--drain_timeout=x", "stray", "--log_level=loud",
                "--scheduler=http://a:1", "--config=" + config}),
      ElementsAre(
          "\"--nope\": no such flag, see --help",
          "--drain_timeout=\"x\": want a duration such as 500ms, 15s or 2m",
          "\"stray\": want only flags, see --help", HasSubstr("--log_level: "),
          "--scheduler: \"http://a:1\", want host:port, such as 127.0.0.1:7070",
          config + ":1:1: slots: -1, want 1-1024",
          config + ": queue: none, want at least one"));
}

TEST_F(CommandLineTest, WantsAConfigurationAndAScheduler) {
  EXPECT_THAT(Mistakes({}), ElementsAre("--config: none, want a file"));
  EXPECT_THAT(Mistakes({"--config=" + WriteConfig(kQueue)}),
              ElementsAre(HasSubstr("scheduler: none, want host:port")));
  EXPECT_THAT(Mistakes({"--scheduler=,", "--config=" + WriteConfig(kQueue)}),
              ElementsAre("--scheduler: none, want host:port"));
}

TEST_F(CommandLineTest, HelpAndVersionWantNothingElse) {
  EXPECT_EQ(Read({"--bad", "--help"})->action, CommandLineAction::kShowHelp);
  EXPECT_EQ(Read({"--version"})->action, CommandLineAction::kShowVersion);
  EXPECT_TRUE(absl::StartsWith(VersionText(), "leasehold-executor "));
}

TEST_F(CommandLineTest, HelpShowsOurFlagsOnlyAndFitsATerminal) {
  const std::string help = HelpText();

  EXPECT_THAT(help, HasSubstr("--drain_timeout=25s"));
  EXPECT_THAT(help, HasSubstr("second SIGTERM"));
  EXPECT_THAT(help, Not(HasSubstr("flagfile")));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, SizeIs(Le(80u)));
  }
}

}  // namespace
}  // namespace leasehold::executor
