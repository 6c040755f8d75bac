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

// INVALID_ARGUMENT with a line `file:line:column: ...` for every mistake that
// `text` has. `file` only names it.
absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view text,
                                         const std::string& file);

// NOT_FOUND or INTERNAL when the file cannot be read.
absl::StatusOr<LoadedConfig> LoadConfig(const std::string& file);

}  // namespace leasehold::executor

#endif  // EXECUTOR_CONFIG_EXECUTOR_CONFIG_H_
