#include "executor/config/config_checker.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_join.h"

namespace leasehold::executor {

void ConfigChecker::Add(const Tree* node,
                        const google::protobuf::Message& message,
                        const char* field, absl::string_view path,
                        absl::string_view what) {
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
  google::protobuf::TextFormat::ParseLocation location;
  if (node != nullptr && descriptor != nullptr) {
    location =
        node->GetLocation(descriptor, descriptor->is_repeated() ? 0 : -1);
  }
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
