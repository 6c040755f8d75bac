// Early return on errors, for functions that return absl::Status or
// absl::StatusOr<T>.
//
//   LEASEHOLD_RETURN_IF_ERROR(store.Ping());
//   LEASEHOLD_ASSIGN_OR_RETURN(const int64_t now_us, store.NowUs());
#ifndef COMMON_STATUS_STATUS_MACROS_H_
#define COMMON_STATUS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LEASEHOLD_RETURN_IF_ERROR(expr)                               \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define LEASEHOLD_CONCAT_INNER_(a, b) a##b
#define LEASEHOLD_CONCAT_(a, b) LEASEHOLD_CONCAT_INNER_(a, b)
#define LEASEHOLD_ASSIGN_OR_RETURN(lhs, expr)                               \
  LEASEHOLD_ASSIGN_OR_RETURN_IMPL_(LEASEHOLD_CONCAT_(status_or_, __LINE__), \
                                   lhs, expr)
#define LEASEHOLD_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                     \
  if (!tmp.ok()) return std::move(tmp).status();         \
  lhs = *std::move(tmp)

#endif  // COMMON_STATUS_STATUS_MACROS_H_
