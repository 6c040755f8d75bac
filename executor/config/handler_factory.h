// Makes handlers from their configuration, and says what is wrong with it.
#ifndef EXECUTOR_CONFIG_HANDLER_FACTORY_H_
#define EXECUTOR_CONFIG_HANDLER_FACTORY_H_

#include <memory>
#include <string>

#include "executor/config/config_checker.h"
#include "executor/sdk/handler.h"
#include "leasehold/config/v1/executor_config.pb.h"

namespace leasehold::executor {

// Null, with at least one mistake added to `checker`, when `config` makes no
// handler. `node` and `path` say where `config` stands; relative paths in it
// start at `folder`.
std::unique_ptr<Handler> MakeHandler(const config::v1::HandlerConfig& config,
                                     ConfigChecker::Tree* node,
                                     const std::string& path,
                                     const std::string& folder,
                                     ConfigChecker* checker);

}  // namespace leasehold::executor

#endif  // EXECUTOR_CONFIG_HANDLER_FACTORY_H_
