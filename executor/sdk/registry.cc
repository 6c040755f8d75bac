#include "executor/sdk/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/text/utf8.h"

namespace leasehold::executor {
namespace {

constexpr size_t kMaxNameBytes = 64;

class FunctionHandler : public Handler {
 public:
  explicit FunctionHandler(HandlerFunction run) : run_(std::move(run)) {}
  HandlerResult Run(HandlerContext& ctx) override { return run_(ctx); }

 private:
  const HandlerFunction run_;
};

bool IsNameCharacter(char c, bool upper_too) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' ||
         c == '_' || c == '-' || (upper_too && absl::ascii_isupper(c));
}

absl::Status CheckName(absl::string_view name, bool upper_too) {
  const bool ok = !name.empty() && name.size() <= kMaxNameBytes &&
                  std::all_of(name.begin(), name.end(), [&](char c) {
                    return IsNameCharacter(c, upper_too);
                  });
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(QuoteForMessage(name), ", want 1-", kMaxNameBytes, " of [",
                   upper_too ? "A-Z" : "", "a-z0-9._-]"));
}

}  // namespace

absl::Status CheckQueueName(absl::string_view name) {
  return CheckName(name, false);
}

absl::Status CheckTypeName(absl::string_view name) {
  return CheckName(name, true);
}

absl::Status Registry::Register(absl::string_view queue, absl::string_view type,
                                std::unique_ptr<Handler> handler) {
  const auto named = [](const char* what, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", status.message()));
  };
  LEASEHOLD_RETURN_IF_ERROR(named("queue", CheckQueueName(queue)));
  LEASEHOLD_RETURN_IF_ERROR(named("type", CheckTypeName(type)));
  const bool is_new = queues_[std::string(queue)]
                          .emplace(std::string(type), std::move(handler))
                          .second;
  if (is_new) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("queue ", queue, ", type ", type,
                                               ": has a handler already"));
}

absl::Status Registry::Register(absl::string_view queue, absl::string_view type,
                                HandlerFunction run) {
  return Register(queue, type,
                  std::make_unique<FunctionHandler>(std::move(run)));
}

Handler* Registry::Find(const std::string& queue,
                        const std::string& type) const {
  const auto types = queues_.find(queue);
  if (types == queues_.end()) return nullptr;
  const auto handler = types->second.find(type);
  return handler == types->second.end() ? nullptr : handler->second.get();
}

Registry::Subscriptions Registry::subscriptions() const {
  Subscriptions subscriptions;
  for (const auto& [queue, types] : queues_) {
    for (const auto& [type, handler] : types) {
      subscriptions[queue].push_back(type);
    }
  }
  return subscriptions;
}

}  // namespace leasehold::executor
