// --help: our flags only, in groups, wrapped to 80 columns.
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "scheduler/config/command_line.h"
#include "scheduler/config/flags.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kColumns = 80;
constexpr char kIndent[] = "      ";

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

void AppendWrapped(const std::string& text, std::string* out) {
  size_t column = 0;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column == 0 || column + 1 + word.size() > kColumns) {
      absl::StrAppend(out, column == 0 ? "" : "\n", kIndent, word);
      column = sizeof(kIndent) - 1 + word.size();
    } else {
      absl::StrAppend(out, " ", word);
      column += 1 + word.size();
    }
  }
  absl::StrAppend(out, "\n");
}

}  // namespace

std::string HelpText() {
  std::string out = kHead;
  for (const FlagGroup& group : FlagGroups()) {
    absl::StrAppend(&out, "\n", group.title, "\n");
    for (const char* name : group.names) {
      const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
      const std::string value = flag->DefaultValue();
      absl::StrAppend(&out, "  --", name,
                      value.empty() ? "" : absl::StrCat("=", value), "\n");
      AppendWrapped(flag->Help(), &out);
    }
  }
  absl::StrAppend(&out, "\nOther\n  --help, --version\n");
  return out;
}

}  // namespace leasehold::scheduler
