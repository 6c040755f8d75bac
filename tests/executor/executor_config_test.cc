#include "executor/config/executor_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace leasehold::executor {
namespace {

std::vector<std::string> MistakesOf(const std::string& text) {
  const auto config = ParseConfig(text, "f");
  if (config.ok()) return {};
  return absl::StrSplit(std::string(config.status().message()), '\n');
}

TEST(ExecutorConfig, ReadsEverything) {
  const auto config = ParseConfig(R"(
    scheduler: "a:1" scheduler: "b:2"
    executor_id: "e" slots: 3 max_leases: 5
    labels { key: "zone" value: "x" }
    queue {
      name: "q"
      handler { type: "a" echo {} }
      handler { type: "b" sleep { default_duration { nanos: 1 } } }
      handler { type: "c" fail {} }
      handler { type: "d" exec { argv: "sh" argv: "-c" argv: "true" } }
      handler { type: "e" http { url: "http://127.0.0.1/" } }
    })",
                                  "f");

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->options.schedulers,
            (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(config->options.slots, 3);
  EXPECT_EQ(config->options.max_leases, 5);
  EXPECT_EQ(config->options.labels.at("zone"), "x");
  EXPECT_EQ(config->registry.subscriptions().at("q").size(), 5u);
}

TEST(ExecutorConfig, SaysWhereTheSyntaxIsWrong) {
  EXPECT_EQ(MistakesOf("slots: 8\nqueue { nme: \"x\" }"),
            std::vector<std::string>{
                "f:2:12: Message type \"leasehold.config.v1.QueueConfig\" has "
                "no field named \"nme\"."});
}

TEST(ExecutorConfig, NamesEveryMistakeAtOnceWithItsPlace) {
  const std::vector<std::string> mistakes = MistakesOf(
      "slots: 8 max_leases: 3\n"
      "queue { name: \"A b\" handler { type: \"x\" } }\n"
      "queue { name: \"q\"\n"
      "  handler { type: \"y y\" echo {} }\n"
      "  handler { type: \"e\" exec { kill_grace { seconds: -1 } } }\n"
      "  handler { type: \"f\" exec { argv: \"no-such-command\" "
      "max_output_bytes: 1048577 } }\n"
      "  handler { type: \"g\" http { url: \"ftp://x\" max_redirects: 99 "
      "method: \"A B\" } }\n"
      "  handler { type: \"h\" echo {} } handler { type: \"h\" echo {} } }\n"
      "queue { name: \"empty\" }\n");

  EXPECT_EQ(
      mistakes,
      (std::vector<std::string>{
          "f:1:10: max_leases: 3, want 8-4096, no less than slots",
          "f:2:9: queue[0].name: \"A b\", want 1-64 of [a-z0-9._-]",
          "f:2:31: queue[0].handler[0].type: \"x\" has no handler, want one of "
          "echo, sleep, fail, exec, http",
          "f:4:13: queue[1].handler[0].type: \"y y\", want 1-64 of "
          "[A-Za-z0-9._-]",
          "f:5:30: queue[1].handler[1].exec.kill_grace: -1s, want 0 or more",
          "f:5:23: queue[1].handler[1].exec.argv: empty, want a command",
          "f:6:54: queue[1].handler[2].exec.max_output_bytes: 1048577, want "
          "1-1048576",
          "f:6:30: queue[1].handler[2].exec.argv: \"no-such-command\", want a "
          "program that can be run",
          "f:7:30: queue[1].handler[3].http.url: \"ftp://x\", want an http or "
          "https URL",
          "f:7:63: queue[1].handler[3].http.method: \"A B\", want a word such "
          "as POST",
          "f:7:45: queue[1].handler[3].http.max_redirects: 99, want 0-20",
          "f:8:43: queue[1].handler[5].type: queue q, type h: has a handler "
          "already",
          "f:9:9: queue[2].name: \"empty\" has no handler, want at least "
          "one"}));
}

TEST(ExecutorConfig, BoundsDurations) {
  EXPECT_EQ(MistakesOf("queue { name: \"q\"\n"
                       "  handler { type: \"a\" exec { argv: \"true\"\n"
                       "    kill_grace { seconds: 315576000000 } } } }\n"),
            (std::vector<std::string>{
                "f:3:5: queue[0].handler[0].exec.kill_grace: 87660000h, want "
                "1h or less"}));
}

TEST(ExecutorConfig, NamesMistakesOfItsOwnNextToThoseOfHandlers) {
  EXPECT_EQ(MistakesOf("slots: 0 max_leases: -1\n"
                       "scheduler: \"a:1\" scheduler: \"127.0.0.1\"\n"
                       "scheduler: \"http://127.0.0.1:7070\"\n"
                       "executor_id: \"a\\n\"\n"
                       "queue { name: \"q\"\n"
                       "  handler { type: \"a\" exec {} }\n"
                       "  handler { type: \"a\" echo {} } }\n"
                       "queue { name: \"q\" handler { type: \"a\" echo {} } }")
                .size(),
            7u);
  EXPECT_EQ(MistakesOf("slots: 4 max_leases: -1 scheduler: \"a:1\"\n"
                       "  scheduler: \"http://127.0.0.1:7070\"\n"
                       "queue { name: \"q\"\n"
                       "  handler { type: \"a\" exec {} }\n"
                       "  handler { type: \"a\" echo {} } }\n"),
            (std::vector<std::string>{
                "f:2:3: scheduler: \"http://127.0.0.1:7070\", want host:port, "
                "such as 127.0.0.1:7070",
                "f:1:10: max_leases: -1, want 4-4096, no less than slots",
                "f:4:23: queue[0].handler[0].exec.argv: empty, want a command",
                "f:5:13: queue[0].handler[1].type: queue q, type a: has a "
                "handler already"}));
  EXPECT_EQ(MistakesOf("slots: -1 queue { name: \"q\"\n"
                       "  handler { type: \"a\" echo {} } }\n"),
            std::vector<std::string>{"f:1:1: slots: -1, want 1-1024"});
}

TEST(ExecutorConfig, WantsASchedulerUnlessAFlagNamesOne) {
  const std::string text =
      "queue { name: \"q\" handler { type: \"a\" echo {} } }";

  EXPECT_TRUE(ParseConfig(text, "f", SchedulerField::kOptional).ok());
  EXPECT_EQ(
      ParseConfig(text, "f", SchedulerField::kRequired).status().message(),
      "f: scheduler: none, want host:port, here or as --scheduler");
}

TEST(ExecutorConfig, RelativePathsStartAtTheFilesFolder) {
  const auto mistakes_of = [](const std::string& exec) {
    const auto config = ParseConfig(
        "queue { name: \"q\" handler { type: \"a\" exec { " + exec + " } } }",
        "/usr/share/f");
    return config.ok() ? "" : std::string(config.status().message());
  };

  EXPECT_EQ(mistakes_of("argv: \"../bin/env\""), "");
  EXPECT_EQ(mistakes_of("argv: \"./env\" working_folder: \"../bin\""), "");
  EXPECT_EQ(mistakes_of("argv: \"env\""), "");
  EXPECT_EQ(mistakes_of("argv: \"./env\""),
            "/usr/share/f:1:46: queue[0].handler[0].exec.argv: "
            "\"/usr/share/env\", want a program that can be run");
  EXPECT_EQ(mistakes_of("argv: \"../bin\""),
            "/usr/share/f:1:46: queue[0].handler[0].exec.argv: \"/usr/bin\", "
            "want a program that can be run");
}

TEST(ExecutorConfig, WantsAQueue) {
  EXPECT_EQ(MistakesOf(""),
            std::vector<std::string>{"f: queue: none, want at least one"});
}

TEST(ExecutorConfig, SaysThatAFileCannotBeRead) {
  EXPECT_EQ(LoadConfig("/does/not/exist").status().message(),
            "--config=/does/not/exist: cannot be read");
}

TEST(ExecutorConfig, SaysThatAFolderIsNoFile) {
  EXPECT_EQ(LoadConfig("/usr").status().message(),
            "--config=/usr: is a folder, want a file");
}

TEST(ExecutorOptions, AreCheckedAllAtOnce) {
  ExecutorOptions options;
  options.schedulers = {"http://a:7070", "a:99999"};
  options.slots = 2000;
  options.max_leases = 1;
  options.executor_id = std::string(129, 'x');
  options.drain_timeout = absl::Seconds(-1);

  const absl::Status status = CheckOptions(options);

  EXPECT_EQ(std::vector<std::string>(
                absl::StrSplit(std::string(status.message()), '\n'))
                .size(),
            6u)
      << status;
}

}  // namespace
}  // namespace leasehold::executor
