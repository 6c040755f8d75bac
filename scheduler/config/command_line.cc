#include "scheduler/config/command_line.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "scheduler/config/flags.h"

namespace leasehold::scheduler {
namespace {

constexpr char kHead[] =
    R"(Leasehold's scheduler: keeps tasks in MySQL and leases them to executors.

  LEASEHOLD_MYSQL="host=127.0.0.1 user=leasehold db=leasehold password=..." \
    leasehold-scheduler
  leasehold-scheduler --listen=10.0.0.5:7070 --mysql="host=10.0.0.9 \
    user=leasehold db=leasehold password_file=/run/secrets/db"
  leasehold-scheduler --migrate_only

Each flag can also come from the environment: --http_listen from
LEASEHOLD_HTTP_LISTEN. SIGTERM drains and exits; a second one exits at once.
Exit status: 0 done, 2 cannot start as configured, 1 anything else.
)";

bool HasPassword(absl::string_view mysql) {
  for (absl::string_view word :
       absl::StrSplit(mysql, absl::ByAnyChar(" \t\n"), absl::SkipEmpty())) {
    if (absl::StartsWith(word, "password=")) return true;
  }
  return false;
}

const ProgramFlags& Program() {
  static const auto& program = *new ProgramFlags{
      .name = "leasehold-scheduler",
      .head = kHead,
      .groups = FlagGroups(),
      .own_type_want = "a number of bytes such as 65536, 64KiB or 16MiB",
      // The database's address may hold a password.
      .secrets = {"mysql"},
      .objection = [](absl::string_view flag,
                      const std::string& value) -> std::string {
        if (flag != "mysql" || !HasPassword(value)) return "";
        return "--mysql: has password=, which every user of this machine can "
               "read here, want password_file= or the environment variable "
               "LEASEHOLD_MYSQL";
      }};
  return program;
}

}  // namespace

absl::StatusOr<CommandLine> ReadCommandLine(
    const std::vector<std::string>& args, const Environment& environment) {
  CommandLine line;
  std::vector<std::string> mistakes;
  line.action = ReadFlags(Program(), args, environment, &mistakes);
  if (line.action != CommandLineAction::kRun) return line;
  line.config = ConfigFromFlags(&mistakes);
  if (!mistakes.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  }
  return line;
}

std::string HelpText() { return leasehold::HelpText(Program()); }
std::string VersionText() { return leasehold::VersionText(Program()); }

}  // namespace leasehold::scheduler
