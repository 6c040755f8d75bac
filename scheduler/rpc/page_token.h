// The opaque page_token of ListTasks: where the next page starts, bound to the
// filters that it was made with. Every replica reads every other's tokens.
#ifndef SCHEDULER_RPC_PAGE_TOKEN_H_
#define SCHEDULER_RPC_PAGE_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/domain/task.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// `below` as in ListPage::next_below; 0, the end, is the empty token.
std::string MakePageToken(TaskId below, const ListFilter& filter);

// Above every id for an empty token: from the newest task on. INVALID_ARGUMENT,
// naming page_token, for one that no scheduler made for this filter.
absl::StatusOr<TaskId> ReadPageToken(absl::string_view token,
                                     const ListFilter& filter);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_PAGE_TOKEN_H_
