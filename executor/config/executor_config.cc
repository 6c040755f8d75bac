#include "executor/config/executor_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/status_macros.h"
#include "common/text/host_port.h"
#include "common/text/utf8.h"
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

// Reads the queues of one file.
class QueueReader {
 public:
  QueueReader(std::string folder, ConfigChecker* checker, Registry* registry)
      : folder_(std::move(folder)), checker_(*checker), registry_(*registry) {}

  void Read(const config::v1::QueueConfig& queue, Tree* node,
            const std::string& path) {
    const absl::Status name = CheckQueueName(queue.name());
    if (!name.ok()) {
      checker_.Add(node, queue, "name", path, std::string(name.message()));
    }
    if (queue.handler().empty()) {
      checker_.Add(node, queue, "name", path,
                   absl::StrCat(QuoteForMessage(queue.name()),
                                " has no handler, want at least one"));
    }
    for (int i = 0; i < queue.handler_size(); ++i) {
      ReadHandler(queue, i, NestedTree(node, queue, "handler", i),
                  absl::StrCat(path, "handler[", i, "]."));
    }
  }

 private:
  void ReadHandler(const config::v1::QueueConfig& queue, int i, Tree* node,
                   const std::string& path) {
    const config::v1::HandlerConfig& config = queue.handler(i);
    const auto reject_type = [&](const absl::Status& status) {
      if (status.ok()) return;
      checker_.Add(node, config, "type", path, std::string(status.message()));
    };
    std::unique_ptr<Handler> handler =
        MakeHandler(config, node, path, folder_, &checker_);
    if (absl::Status status = CheckTypeName(config.type()); !status.ok()) {
      reject_type(status);
      return;
    }
    // The registry does not hear of handlers that are wrong themselves.
    if (!seen_.insert({queue.name(), config.type()}).second) {
      reject_type(absl::AlreadyExistsError(
          absl::StrCat("queue ", queue.name(), ", type ", config.type(),
                       ": has a handler already")));
      return;
    }
    if (handler == nullptr || !CheckQueueName(queue.name()).ok()) return;
    reject_type(
        registry_.Register(queue.name(), config.type(), std::move(handler)));
  }

  const std::string folder_;
  ConfigChecker& checker_;
  Registry& registry_;
  std::set<std::pair<std::string, std::string>> seen_;
};

void CheckSchedulers(const config::v1::ExecutorConfig& config, Tree* root,
                     SchedulerField wanted, ConfigChecker* checker) {
  if (config.scheduler().empty() && wanted == SchedulerField::kRequired) {
    checker->Add(nullptr, config, "scheduler", "",
                 "none, want host:port, here or as --scheduler");
  }
  for (int i = 0; i < config.scheduler_size(); ++i) {
    if (IsHostPort(config.scheduler(i))) continue;
    checker->Add(nullptr, config, "scheduler", "",
                 absl::StrCat(QuoteForMessage(config.scheduler(i)),
                              ", want host:port, such as 127.0.0.1:7070"),
                 ConfigChecker::LocationOf(root, config, "scheduler", i));
  }
}

// What CheckOptions says, with its place.
void CheckOtherOptions(ExecutorOptions options,
                       const config::v1::ExecutorConfig& config, Tree* root,
                       ConfigChecker* checker) {
  options.schedulers = {"127.0.0.1:7070"};  // Checked already.
  const absl::Status status = CheckOptions(std::move(options));
  const std::string message(status.message());
  for (absl::string_view line :
       absl::StrSplit(message, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    checker->Add(root, config, std::string(parts.first).c_str(), "",
                 parts.second);
  }
}

LoadedConfig ReadConfig(const config::v1::ExecutorConfig& config, Tree* root,
                        const std::string& folder, SchedulerField scheduler,
                        ConfigChecker* checker) {
  LoadedConfig loaded;
  ExecutorOptions& options = loaded.options;
  options.schedulers.assign(config.scheduler().begin(),
                            config.scheduler().end());
  options.executor_id = config.executor_id();
  options.slots = config.slots();
  options.max_leases = config.max_leases();
  options.labels = {config.labels().begin(), config.labels().end()};
  CheckSchedulers(config, root, scheduler, checker);
  CheckOtherOptions(options, config, root, checker);
  if (config.queue().empty()) {
    checker->Add(nullptr, config, "queue", "", "none, want at least one");
  }
  QueueReader queues(folder, checker, &loaded.registry);
  for (int i = 0; i < config.queue_size(); ++i) {
    queues.Read(config.queue(i), NestedTree(root, config, "queue", i),
                absl::StrCat("queue[", i, "]."));
  }
  return loaded;
}

// Absolute, so that it stays true whatever folder a handler works in.
std::string FolderOf(const std::string& file) {
  std::error_code error;
  const auto path = std::filesystem::absolute(file, error);
  return error ? std::string(".") : path.parent_path().string();
}

}  // namespace

absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view text,
                                         const std::string& file,
                                         SchedulerField scheduler) {
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
  LoadedConfig loaded =
      ReadConfig(config, &root, FolderOf(file), scheduler, &checker);
  LEASEHOLD_RETURN_IF_ERROR(checker.status());
  return loaded;
}

absl::StatusOr<LoadedConfig> LoadConfig(const std::string& file,
                                        SchedulerField scheduler) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config=", file, ": is a folder, want a file"));
  }
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
  return ParseConfig(text.str(), file, scheduler);
}

}  // namespace leasehold::executor
