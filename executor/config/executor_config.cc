#include "executor/config/executor_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "executor/config/config_checker.h"
#include "executor/config/handler_factory.h"
#include "leasehold/config/v1/executor_config.pb.h"

namespace leasehold::executor {
namespace {

using Tree = ConfigChecker::Tree;

class SyntaxErrors : public google::protobuf::io::ErrorCollector {
 public:
  explicit SyntaxErrors(ConfigChecker* checker) : checker_(*checker) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    checker_.AddAt(line, column, message);
  }

 private:
  ConfigChecker& checker_;
};

Tree* NestedTree(Tree* node, const google::protobuf::Message& message,
                 const char* field, int index) {
  return node->GetTreeForNested(message.GetDescriptor()->FindFieldByName(field),
                                index);
}

void ReadQueue(const config::v1::QueueConfig& queue, Tree* node,
               const std::string& path, ConfigChecker* checker,
               Registry* registry) {
  if (absl::Status status = CheckQueueName(queue.name()); !status.ok()) {
    checker->Add(node, queue, "name", path, std::string(status.message()));
  }
  if (queue.handler().empty()) {
    checker->Add(
        node, queue, "name", path,
        absl::StrCat(queue.name(), " has no handler, want at least one"));
  }
  for (int i = 0; i < queue.handler_size(); ++i) {
    const config::v1::HandlerConfig& config = queue.handler(i);
    Tree* handler_node = NestedTree(node, queue, "handler", i);
    const std::string handler_path = absl::StrCat(path, "handler[", i, "].");
    std::unique_ptr<Handler> handler =
        MakeHandler(config, handler_node, handler_path, checker);
    if (absl::Status status = CheckTypeName(config.type()); !status.ok()) {
      checker->Add(handler_node, config, "type", handler_path,
                   std::string(status.message()));
      continue;
    }
    if (handler == nullptr || !CheckQueueName(queue.name()).ok()) continue;
    const absl::Status status =
        registry->Register(queue.name(), config.type(), std::move(handler));
    if (!status.ok()) {
      checker->Add(handler_node, config, "type", handler_path,
                   std::string(status.message()));
    }
  }
}

LoadedConfig ReadConfig(const config::v1::ExecutorConfig& config, Tree* root,
                        ConfigChecker* checker) {
  LoadedConfig loaded;
  ExecutorOptions& options = loaded.options;
  options.schedulers.assign(config.scheduler().begin(),
                            config.scheduler().end());
  options.executor_id = config.executor_id();
  options.slots = config.slots();
  options.max_leases = config.max_leases();
  options.labels = {config.labels().begin(), config.labels().end()};
  // The other limits are checked once the flags have had their say.
  if (config.slots() < 0) {
    checker->Add(root, config, "slots", "",
                 absl::StrCat(config.slots(), ", want 1-1024"));
  }
  if (config.max_leases() != 0 && config.max_leases() < config.slots()) {
    checker->Add(root, config, "max_leases", "",
                 absl::StrCat(config.max_leases(), ", want at least the ",
                              config.slots(), " slots"));
  }
  if (config.queue().empty()) {
    checker->Add(nullptr, config, "queue", "", "none, want at least one");
  }
  for (int i = 0; i < config.queue_size(); ++i) {
    ReadQueue(config.queue(i), NestedTree(root, config, "queue", i),
              absl::StrCat("queue[", i, "]."), checker, &loaded.registry);
  }
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view text,
                                         const std::string& file) {
  ConfigChecker checker(file);
  SyntaxErrors syntax_errors(&checker);
  Tree root;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&syntax_errors);
  parser.WriteLocationsTo(&root);
  config::v1::ExecutorConfig config;
  if (!parser.ParseFromString(std::string(text), &config)) {
    LEASEHOLD_RETURN_IF_ERROR(checker.status());
    return absl::InvalidArgumentError(absl::StrCat(file, ": not readable"));
  }
  LoadedConfig loaded = ReadConfig(config, &root, &checker);
  LEASEHOLD_RETURN_IF_ERROR(checker.status());
  return loaded;
}

absl::StatusOr<LoadedConfig> LoadConfig(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) {
    return absl::NotFoundError(
        absl::StrCat("--config=", file, ": cannot be read"));
  }
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) {
    return absl::InternalError(
        absl::StrCat("--config=", file, ": cannot be read"));
  }
  return ParseConfig(text.str(), file);
}

}  // namespace leasehold::executor
