#include "scheduler/rpc/mistakes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leasehold::scheduler {

void Mistakes::Add(absl::string_view field, absl::string_view value,
                   absl::string_view want) {
  AddText(field, absl::StrCat(value, ", want ", want));
}

void Mistakes::AddText(absl::string_view field, absl::string_view what) {
  if (++count_ <= kMaxShown) {
    shown_.push_back(absl::StrCat(field, ": ", what));
  }
}

absl::Status Mistakes::ToStatus() const {
  if (count_ == 0) return absl::OkStatus();
  std::string text = absl::StrJoin(shown_, "; ");
  if (count_ > kMaxShown) {
    absl::StrAppend(&text, "; and ", count_ - kMaxShown, " more");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace leasehold::scheduler
