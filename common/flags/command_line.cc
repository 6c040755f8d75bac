#include "common/flags/command_line.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/text/utf8.h"

namespace leasehold {
namespace {

// The program's own flags only: Abseil knows some of its own, which mean
// nothing here.
absl::CommandLineFlag* FindFlag(const ProgramFlags& program,
                                absl::string_view name) {
  for (const FlagGroup& group : program.groups) {
    for (const char* known : group.names) {
      if (name == known) return absl::FindCommandLineFlag(known);
    }
  }
  return nullptr;
}

std::string EnvironmentName(absl::string_view flag) {
  return absl::StrCat("LEASEHOLD_", absl::AsciiStrToUpper(flag));
}

std::string ShownValue(const ProgramFlags& program, absl::string_view name,
                       absl::string_view value) {
  for (const std::string& secret : program.secrets) {
    if (name == secret) return "...";
  }
  return QuoteForMessage(value);
}

std::string WantOf(const ProgramFlags& program,
                   const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<absl::Duration>()) {
    return "a duration such as 500ms, 15s or 2m";
  }
  if (flag.IsOfType<bool>()) return "true or false";
  if (flag.IsOfType<int>() || flag.IsOfType<int64_t>()) return "a whole number";
  return program.own_type_want;
}

class Reader {
 public:
  Reader(const ProgramFlags& program, std::vector<std::string>* mistakes,
         std::vector<std::string>* arguments)
      : program_(program), mistakes_(*mistakes), arguments_(arguments) {}

  void ReadEnvironment(const Environment& environment) {
    for (const FlagGroup& group : program_.groups) {
      for (const char* name : group.names) {
        const std::string variable = EnvironmentName(name);
        if (const auto value = environment(variable)) {
          SetFlag(FindFlag(program_, name), variable, *value);
        }
      }
    }
  }

  void ReadArguments(const std::vector<std::string>& args) {
    for (size_t i = 0; i < args.size(); ++i) ReadArgument(args, &i);
  }

 private:
  void SetFlag(absl::CommandLineFlag* flag, absl::string_view source,
               const std::string& value) {
    std::string error;
    if (flag->ParseFrom(value, &error)) return;
    mistakes_.push_back(absl::StrCat(source, "=",
                                     ShownValue(program_, flag->Name(), value),
                                     ": want ", WantOf(program_, *flag)));
  }

  // One argument at `*i`, and the next if it is its value.
  void ReadArgument(const std::vector<std::string>& args, size_t* i) {
    const std::string& arg = args[*i];
    absl::string_view rest = arg;
    if (only_arguments_ || !absl::ConsumePrefix(&rest, "--")) {
      AddArgument(arg);
      return;
    }
    if (rest.empty() && arguments_ != nullptr) {
      only_arguments_ = true;
      return;
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(rest, absl::MaxSplits('=', 1));
    absl::CommandLineFlag* flag = FindFlag(program_, parts.first);
    if (flag == nullptr) {
      mistakes_.push_back(
          absl::StrCat(QuoteForMessage(arg), ": no such flag, see --help"));
      return;
    }
    std::string value(parts.second);
    if (!absl::StrContains(rest, '=')) {
      if (flag->IsOfType<bool>()) {
        value = "true";
      } else if (*i + 1 < args.size() &&
                 !absl::StartsWith(args[*i + 1], "--")) {
        value = args[++*i];
      } else {
        mistakes_.push_back(absl::StrCat("--", flag->Name(), ": want a value"));
        return;
      }
    }
    if (program_.objection != nullptr) {
      std::string objection = program_.objection(flag->Name(), value);
      if (!objection.empty()) mistakes_.push_back(std::move(objection));
    }
    SetFlag(flag, absl::StrCat("--", flag->Name()), value);
  }

  void AddArgument(const std::string& arg) {
    // What starts with one "-" is a flag that was meant otherwise.
    const bool is_flag = !only_arguments_ && absl::StartsWith(arg, "-");
    if (arguments_ != nullptr && !is_flag) {
      arguments_->push_back(arg);
    } else {
      mistakes_.push_back(absl::StrCat(
          QuoteForMessage(arg),
          is_flag ? ": no such flag" : ": want only flags", ", see --help"));
    }
  }

  const ProgramFlags& program_;
  std::vector<std::string>& mistakes_;
  std::vector<std::string>* const arguments_;
  bool only_arguments_ = false;
};

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

CommandLineAction ReadFlags(const ProgramFlags& program,
                            const std::vector<std::string>& args,
                            const Environment& environment,
                            std::vector<std::string>* mistakes,
                            std::vector<std::string>* arguments) {
  for (const std::string& arg : args) {
    if (arg == "--" && arguments != nullptr) break;
    if (arg == "--help" || arg == "-h") return CommandLineAction::kShowHelp;
    if (arg == "--version") return CommandLineAction::kShowVersion;
  }
  Reader reader(program, mistakes, arguments);
  if (program.has_environment) reader.ReadEnvironment(environment);
  reader.ReadArguments(args);
  return CommandLineAction::kRun;
}

std::optional<int> ReadFlagsOrExit(const ProgramFlags& program, int argc,
                                   char** argv,
                                   std::vector<std::string>* arguments) {
  std::vector<std::string> mistakes;
  switch (ReadFlags(program, {argv + 1, argv + argc}, ProcessEnvironment(),
                    &mistakes, arguments)) {
    case CommandLineAction::kShowHelp:
      std::fputs(HelpText(program).c_str(), stdout);
      return 0;
    case CommandLineAction::kShowVersion:
      std::printf("%s\n", VersionText(program).c_str());
      return 0;
    case CommandLineAction::kRun:
      break;
  }
  for (const std::string& mistake : mistakes) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), mistake.c_str());
  }
  if (!mistakes.empty()) return 2;
  return std::nullopt;
}

std::string VersionText(const ProgramFlags& program) {
  return absl::StrCat(program.name, " ", LEASEHOLD_VERSION);
}

}  // namespace leasehold
