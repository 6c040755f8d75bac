// Which handler runs which tasks.
//
//   Registry registry;
//   registry.Register("documents", "thumbnail", std::make_unique<Thumbnail>());
//   registry.Register("documents", "count", [](HandlerContext& ctx) { ... });
#ifndef EXECUTOR_SDK_REGISTRY_H_
#define EXECUTOR_SDK_REGISTRY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "executor/sdk/handler.h"

namespace leasehold::executor {

// Filled before the executor runs, and only read from then on.
class Registry {
 public:
  // Per queue, the types that are served.
  using Subscriptions = std::map<std::string, std::vector<std::string>>;

  // INVALID_ARGUMENT for a name that the contract does not allow;
  // ALREADY_EXISTS for a pair that has a handler.
  absl::Status Register(absl::string_view queue, absl::string_view type,
                        std::unique_ptr<Handler> handler);
  absl::Status Register(absl::string_view queue, absl::string_view type,
                        HandlerFunction run);

  // Null when nothing is registered for the pair.
  Handler* Find(const std::string& queue, const std::string& type) const;

  bool empty() const { return queues_.empty(); }
  Subscriptions subscriptions() const;

 private:
  std::map<std::string, std::map<std::string, std::unique_ptr<Handler>>>
      queues_;
};

// OK when `name` may name a queue: 1-64 of [a-z0-9._-]. Otherwise the message
// is `"Ä b", want 1-64 of [a-z0-9._-]`.
absl::Status CheckQueueName(absl::string_view name);
// OK when `name` may name a type: 1-64 of [A-Za-z0-9._-].
absl::Status CheckTypeName(absl::string_view name);

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_REGISTRY_H_
