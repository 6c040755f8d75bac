// Reads leasehold-executor's configuration file: Protobuf text format of
// proto/leasehold/config/v1/executor_config.proto.
#ifndef EXECUTOR_CONFIG_EXECUTOR_CONFIG_H_
#define EXECUTOR_CONFIG_EXECUTOR_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/sdk/executor.h"
#include "executor/sdk/registry.h"

namespace leasehold::executor {

struct LoadedConfig {
  ExecutorOptions options;
  Registry registry;
};

// Whether the file has to name a scheduler: not when a flag does.
enum class SchedulerField { kOptional, kRequired };

// INVALID_ARGUMENT with a line `file:line:column: ...` for every mistake that
// `text` has. `file` names it, and its folder is where relative paths start.
absl::StatusOr<LoadedConfig> ParseConfig(
    absl::string_view text, const std::string& file,
    SchedulerField scheduler = SchedulerField::kOptional);

// NOT_FOUND or INTERNAL when the file cannot be read.
absl::StatusOr<LoadedConfig> LoadConfig(
    const std::string& file,
    SchedulerField scheduler = SchedulerField::kOptional);

}  // namespace leasehold::executor

#endif  // EXECUTOR_CONFIG_EXECUTOR_CONFIG_H_
