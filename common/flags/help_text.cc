// --help: the program's own flags only, in groups, wrapped to 80 columns.
#include <string>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/flags/command_line.h"

namespace leasehold {
namespace {

constexpr size_t kColumns = 80;
constexpr char kIndent[] = "      ";

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

std::string HelpText(const ProgramFlags& program) {
  std::string out = program.head;
  for (const FlagGroup& group : program.groups) {
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

}  // namespace leasehold
