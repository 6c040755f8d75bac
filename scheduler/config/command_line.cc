#include "scheduler/config/command_line.h"

#include <cstdlib>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/text/utf8.h"
#include "scheduler/config/flags.h"

namespace leasehold::scheduler {
namespace {

// Our own flags only: Abseil knows some of its own, which mean nothing here.
absl::CommandLineFlag* FindFlag(absl::string_view name) {
  for (const FlagGroup& group : FlagGroups()) {
    for (const char* known : group.names) {
      if (name == known) return absl::FindCommandLineFlag(known);
    }
  }
  return nullptr;
}

std::string EnvironmentName(absl::string_view flag) {
  return absl::StrCat("LEASEHOLD_", absl::AsciiStrToUpper(flag));
}

// The database's address may hold a secret and is never repeated.
std::string ShownValue(absl::string_view name, absl::string_view value) {
  return name == "mysql" ? "..." : QuoteForMessage(value);
}

void SetFlag(absl::CommandLineFlag* flag, absl::string_view source,
             const std::string& value, std::vector<std::string>* mistakes) {
  std::string error;
  if (flag->ParseFrom(value, &error)) return;
  std::string want = "want ";
  if (flag->IsOfType<absl::Duration>()) {
    want += "a duration such as 500ms, 15s or 2m";
  } else if (flag->IsOfType<bool>()) {
    want += "true or false";
  } else if (flag->IsOfType<ByteSize>()) {
    want += "a number of bytes such as 65536, 64KiB or 16MiB";
  } else {
    want += "a whole number";
  }
  mistakes->push_back(
      absl::StrCat(source, "=", ShownValue(flag->Name(), value), ": ", want));
}

bool HasPassword(absl::string_view mysql) {
  for (absl::string_view word :
       absl::StrSplit(mysql, absl::ByAnyChar(" \t\n"), absl::SkipEmpty())) {
    if (absl::StartsWith(word, "password=")) return true;
  }
  return false;
}

void ReadEnvironment(const Environment& environment,
                     std::vector<std::string>* mistakes) {
  for (const FlagGroup& group : FlagGroups()) {
    for (const char* name : group.names) {
      const std::string variable = EnvironmentName(name);
      if (const auto value = environment(variable)) {
        SetFlag(FindFlag(name), variable, *value, mistakes);
      }
    }
  }
}

// One argument at `*i`, and the next if it is its value.
void ReadArgument(const std::vector<std::string>& args, size_t* i,
                  std::vector<std::string>* mistakes) {
  const std::string& arg = args[*i];
  absl::string_view rest = arg;
  if (!absl::ConsumePrefix(&rest, "--")) {
    mistakes->push_back(
        absl::StrCat(QuoteForMessage(arg), ": want only flags, see --help"));
    return;
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('=', 1));
  const std::string name(parts.first);
  absl::CommandLineFlag* flag = FindFlag(name);
  if (flag == nullptr) {
    mistakes->push_back(
        absl::StrCat(QuoteForMessage(arg), ": no such flag, see --help"));
    return;
  }
  std::string value(parts.second);
  if (!absl::StrContains(rest, '=')) {
    if (flag->IsOfType<bool>()) {
      value = "true";
    } else if (*i + 1 < args.size() && !absl::StartsWith(args[*i + 1], "--")) {
      value = args[++*i];
    } else {
      mistakes->push_back(absl::StrCat("--", name, ": want a value"));
      return;
    }
  }
  if (name == "mysql" && HasPassword(value)) {
    mistakes->push_back(
        "--mysql: has password=, which every user of this machine can read "
        "here, want password_file= or the environment variable "
        "LEASEHOLD_MYSQL");
  }
  SetFlag(flag, absl::StrCat("--", name), value, mistakes);
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

absl::StatusOr<CommandLine> ReadCommandLine(
    const std::vector<std::string>& args, const Environment& environment) {
  CommandLine line;
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      line.action = CommandLineAction::kShowHelp;
      return line;
    }
    if (arg == "--version") {
      line.action = CommandLineAction::kShowVersion;
      return line;
    }
  }
  std::vector<std::string> mistakes;
  ReadEnvironment(environment, &mistakes);
  for (size_t i = 0; i < args.size(); ++i) ReadArgument(args, &i, &mistakes);
  line.config = ConfigFromFlags(&mistakes);
  if (!mistakes.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  }
  return line;
}

std::string VersionText() {
  return absl::StrCat("leasehold-scheduler ", LEASEHOLD_VERSION);
}

}  // namespace leasehold::scheduler
