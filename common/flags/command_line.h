// Reads a program's command line and environment into Abseil's flags, and
// writes its --help: only the program's own flags, in groups.
//
//   const ProgramFlags& program = ..;
//   std::vector<std::string> mistakes;
//   switch (ReadFlags(program, args, ProcessEnvironment(), &mistakes)) { .. }
//
// A flag on the command line wins over its environment variable (--http_listen:
// LEASEHOLD_HTTP_LISTEN), and that over the default. All mistakes are reported
// at once.
#ifndef COMMON_FLAGS_COMMAND_LINE_H_
#define COMMON_FLAGS_COMMAND_LINE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leasehold {

// As --help shows them.
struct FlagGroup {
  const char* title;
  std::vector<const char*> names;
};

struct ProgramFlags {
  std::string name;  // "leasehold-scheduler"
  std::string head;  // The start of --help, with a line end.
  std::vector<FlagGroup> groups;
  // What a value of a type of the program's own looks like, after "want ".
  std::string own_type_want = {};
  // Never repeated in a message.
  std::vector<std::string> secrets = {};
  // What speaks against `value` on the command line, as a whole message; empty
  // if nothing does.
  std::function<std::string(absl::string_view flag, const std::string& value)>
      objection = nullptr;
  // False: only the command line counts.
  bool has_environment = true;
};

enum class CommandLineAction { kRun, kShowHelp, kShowVersion };

// The value of an environment variable, if it is set.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// `args` without the program's name. Adds a line for each mistake. What is no
// flag goes to `arguments`, everything after "--" too; null: each is a mistake.
// With --help or --version nothing else is looked at. Sets Abseil's flags
// (tests: absl::FlagSaver).
CommandLineAction ReadFlags(const ProgramFlags& program,
                            const std::vector<std::string>& args,
                            const Environment& environment,
                            std::vector<std::string>* mistakes,
                            std::vector<std::string>* arguments = nullptr);

// Wrapped to 80 columns.
std::string HelpText(const ProgramFlags& program);
std::string VersionText(
    const ProgramFlags& program);  // "NAME 0.1.0": the project's

// For a small program's main: answers --help and --version on stdout, says what
// is wrong on stderr, and returns the exit status, 0 or 2; nullopt: go on.
std::optional<int> ReadFlagsOrExit(
    const ProgramFlags& program, int argc, char** argv,
    std::vector<std::string>* arguments = nullptr);

}  // namespace leasehold

#endif  // COMMON_FLAGS_COMMAND_LINE_H_
