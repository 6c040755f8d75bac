#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "common/flags/command_line.h"

ABSL_FLAG(int, test_count, 1, "A number");
ABSL_FLAG(bool, test_switch, false, "A switch");
ABSL_FLAG(std::string, test_secret, "", "A secret");

namespace leasehold {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FlagsTest : public testing::Test {
 protected:
  CommandLineAction Read(const std::vector<std::string>& args,
                         std::vector<std::string>* arguments = nullptr) {
    mistakes.clear();
    return ReadFlags(program, args, environment, &mistakes, arguments);
  }

  absl::FlagSaver saver;
  ProgramFlags program = {
      .name = "program",
      .head = "Does things.\n",
      .groups = {{"Flags", {"test_count", "test_switch", "test_secret"}}},
      .secrets = {"test_count"}};
  Environment environment = [](const std::string& name) {
    return name == "LEASEHOLD_TEST_COUNT" ? std::optional<std::string>("3")
                                          : std::nullopt;
  };
  std::vector<std::string> mistakes;
};

TEST_F(FlagsTest, TheEnvironmentCanBeLeftAlone) {
  program.has_environment = false;
  Read({});
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 1);

  program.has_environment = true;
  Read({});
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 3);
}

TEST_F(FlagsTest, ArgumentsAreOnlyForProgramsThatWantThem) {
  std::vector<std::string> arguments;

  Read({"a", "--test_switch", "b", "--", "--c", "--help"}, &arguments);
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_THAT(arguments, ElementsAre("a", "b", "--c", "--help"));
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));

  Read({"a", "--"});
  EXPECT_THAT(mistakes, ElementsAre("\"a\": want only flags, see --help",
                                    "\"--\": no such flag, see --help"));
}

TEST_F(FlagsTest, OneDashIsNoFlag) {
  std::vector<std::string> arguments;

  Read({"-test_count=2"}, &arguments);

  EXPECT_THAT(mistakes,
              ElementsAre("\"-test_count=2\": no such flag, see --help"));
  EXPECT_THAT(arguments, IsEmpty());
}

TEST_F(FlagsTest, NeverRepeatsASecret) {
  Read({"--test_count=hunter2"});

  EXPECT_THAT(mistakes, ElementsAre("--test_count=...: want a whole number"));
}

TEST_F(FlagsTest, AnObjectionIsAMistake) {
  program.objection = [](absl::string_view flag, const std::string& value) {
    return value == "bad" ? "--" + std::string(flag) + ": objected" : "";
  };

  Read({"--test_secret=bad", "--test_count=2"});

  EXPECT_THAT(mistakes, ElementsAre("--test_secret: objected"));
}

TEST_F(FlagsTest, HelpAndVersionStandAlone) {
  EXPECT_EQ(Read({"--nope", "-h"}), CommandLineAction::kShowHelp);
  EXPECT_EQ(Read({"--version"}), CommandLineAction::kShowVersion);
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_THAT(VersionText(program), testing::MatchesRegex("program [0-9.]+"));
  EXPECT_EQ(HelpText(program),
            "Does things.\n\nFlags\n  --test_count=1\n      A number\n"
            "  --test_switch=false\n      A switch\n  --test_secret\n"
            "      A secret\n\nOther\n  --help, --version\n");
}

}  // namespace
}  // namespace leasehold
