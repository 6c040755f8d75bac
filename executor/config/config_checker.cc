#include "executor/config/config_checker.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_join.h"

namespace leasehold::executor {

ConfigChecker::Location ConfigChecker::LocationOf(
    const Tree* node, const google::protobuf::Message& message,
    const char* field, int index) {
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
  if (node == nullptr || descriptor == nullptr) return Location();
  return node->GetLocation(descriptor, descriptor->is_repeated() ? index : -1);
}

void ConfigChecker::Add(const Tree* node,
                        const google::protobuf::Message& message,
                        const char* field, absl::string_view path,
                        absl::string_view what, Location otherwise) {
  Location location = LocationOf(node, message, field);
  if (location.line < 0) location = otherwise;
  const std::string text = absl::StrCat(path, field, ": ", what);
  if (location.line >= 0) {
    AddAt(location.line, location.column, text);
  } else {
    mistakes_.push_back(absl::StrCat(file_, ": ", text));
  }
}

void ConfigChecker::AddAt(int line, int column, absl::string_view what) {
  mistakes_.push_back(
      absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", what));
}

absl::Status ConfigChecker::status() const {
  if (mistakes_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(mistakes_, "\n"));
}

}  // namespace leasehold::executor
