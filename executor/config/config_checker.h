// Collects what is wrong with a configuration file, each with its place.
#ifndef EXECUTOR_CONFIG_CONFIG_CHECKER_H_
#define EXECUTOR_CONFIG_CONFIG_CHECKER_H_

#include <google/protobuf/text_format.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leasehold::executor {

class ConfigChecker {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;
  using Location = google::protobuf::TextFormat::ParseLocation;

  explicit ConfigChecker(std::string file) : file_(std::move(file)) {}

  // `node` is where `message` stands in the file, null if unknown; `field` is
  // the proto field that is wrong, and `path` how the message reads in the
  // error: "queue[0].handler[1].exec.". A field that is not in the file counts
  // as standing at `otherwise`.
  void Add(const Tree* node, const google::protobuf::Message& message,
           const char* field, absl::string_view path, absl::string_view what,
           Location otherwise = Location());

  // Of a repeated field, the one at `index`; line -1 when it is not in the
  // file.
  static Location LocationOf(const Tree* node,
                             const google::protobuf::Message& message,
                             const char* field, int index = 0);

  // Lines and columns count from 0, as Protobuf's do.
  void AddAt(int line, int column, absl::string_view what);

  // OK, or INVALID_ARGUMENT with a line for each mistake.
  absl::Status status() const;

 private:
  const std::string file_;
  std::vector<std::string> mistakes_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_CONFIG_CONFIG_CHECKER_H_
