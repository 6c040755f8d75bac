// Gathers what is wrong with a request, so that one answer names all of it.
//
//   Mistakes mistakes;
//   mistakes.Add("task.priority", "12", "0-9");
//   return mistakes.ToStatus();   // task.priority: 12, want 0-9
#ifndef SCHEDULER_RPC_MISTAKES_H_
#define SCHEDULER_RPC_MISTAKES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leasehold::scheduler {

class Mistakes {
 public:
  // A request of 1000 tasks can hold thousands; people fix a few at a time.
  static constexpr size_t kMaxShown = 10;

  // `field: value, want want`. The caller quotes `value` if it came from
  // outside.
  void Add(absl::string_view field, absl::string_view value,
           absl::string_view want);
  // `field: what`, for mistakes that a limit does not describe.
  void AddText(absl::string_view field, absl::string_view what);

  bool empty() const { return count_ == 0; }

  // OK, or INVALID_ARGUMENT with the mistakes separated by "; ".
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> shown_;
  size_t count_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_MISTAKES_H_
