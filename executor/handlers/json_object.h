// Reads single fields of a JSON object that comes from outside.
#ifndef EXECUTOR_HANDLERS_JSON_OBJECT_H_
#define EXECUTOR_HANDLERS_JSON_OBJECT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leasehold::executor {

// A parsed object. Fields that are missing or null read as nullopt, and so do
// fields of another kind; Has tells them apart.
class JsonObject {
 public:
  // INVALID_ARGUMENT unless `text` is a JSON object.
  static absl::StatusOr<JsonObject> Parse(absl::string_view text);

  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  bool Has(const char* field) const;
  std::optional<std::string> GetString(const char* field) const;
  // Fractions are cut off; numbers outside of the range are nullopt.
  std::optional<int64_t> GetInt(const char* field) const;
  std::optional<JsonObject> GetObject(const char* field) const;

 private:
  struct Value;
  explicit JsonObject(std::unique_ptr<Value> value);
  std::unique_ptr<Value> value_;
};

// `text` as a JSON string, with its quotes. `text` must be valid UTF-8.
std::string JsonQuote(absl::string_view text);

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_JSON_OBJECT_H_
