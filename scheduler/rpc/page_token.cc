#include "scheduler/rpc/page_token.h"

#include <openssl/sha.h>

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ids/ids.h"
#include "common/text/utf8.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kDigestBytes = 12;

// Length-prefixed, so that no two filters read the same.
void AppendField(absl::string_view value, std::string* text) {
  absl::StrAppend(text, value.size(), ":", value, ",");
}

// Of the position and the filter. Says "made by a scheduler for these filters";
// it guards against mix-ups, not against somebody who forges tokens, who could
// ask for the same page by other means.
std::string Digest(TaskId below, const ListFilter& filter) {
  std::string text = absl::StrCat("v1,", below, ",");
  AppendField(filter.queue, &text);
  AppendField(filter.type, &text);
  AppendField(filter.partition_key, &text);
  absl::StrAppend(&text, filter.batch_id, ",", filter.create_from_us, ",",
                  filter.create_until_us, ",", filter.states.size());
  for (const TaskState state : filter.states) {
    absl::StrAppend(&text, ",", static_cast<int>(state));
  }
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         hash);
  return absl::WebSafeBase64Escape(
      absl::string_view(reinterpret_cast<const char*>(hash), kDigestBytes));
}

}  // namespace

std::string MakePageToken(TaskId below, const ListFilter& filter) {
  if (below == 0) return "";
  return absl::WebSafeBase64Escape(
      absl::StrCat(FormatTaskId(below), ".", Digest(below, filter)));
}

absl::StatusOr<TaskId> ReadPageToken(absl::string_view token,
                                     const ListFilter& filter) {
  if (token.empty()) return std::numeric_limits<TaskId>::max();
  std::string text;
  if (token.size() <= 128 && absl::WebSafeBase64Unescape(token, &text)) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('.', 1));
    const std::optional<int64_t> below = ParseTaskId(parts.first);
    if (below && parts.second == Digest(*below, filter)) return *below;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("page_token: ", QuoteForMessage(token),
                   ", want the next_page_token of a response to the same "
                   "filters"));
}

}  // namespace leasehold::scheduler
