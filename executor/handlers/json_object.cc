#include "executor/handlers/json_object.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <utility>

#include "common/status/status_macros.h"
#include "common/text/json.h"

namespace leasehold::executor {

struct JsonObject::Value {
  std::shared_ptr<rapidjson::Document> document;
  const rapidjson::Value* object = nullptr;

  const rapidjson::Value* Find(const char* field) const {
    const auto it = object->FindMember(field);
    return it == object->MemberEnd() || it->value.IsNull() ? nullptr
                                                           : &it->value;
  }
};

JsonObject::JsonObject(std::unique_ptr<Value> value)
    : value_(std::move(value)) {}
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

absl::StatusOr<JsonObject> JsonObject::Parse(absl::string_view text) {
  LEASEHOLD_RETURN_IF_ERROR(ValidateJson(text));
  auto document = std::make_shared<rapidjson::Document>();
  // Iterative, so that deep nesting takes no stack.
  document->Parse<rapidjson::kParseIterativeFlag |
                  rapidjson::kParseValidateEncodingFlag>(text.data(),
                                                         text.size());
  if (document->HasParseError() || !document->IsObject()) {
    return absl::InvalidArgumentError("want a JSON object");
  }
  auto value = std::make_unique<Value>();
  value->object = document.get();
  value->document = std::move(document);
  return JsonObject(std::move(value));
}

bool JsonObject::Has(const char* field) const {
  return value_->Find(field) != nullptr;
}

std::optional<std::string> JsonObject::GetString(const char* field) const {
  const rapidjson::Value* value = value_->Find(field);
  if (value == nullptr || !value->IsString()) return std::nullopt;
  return std::string(value->GetString(), value->GetStringLength());
}

std::optional<int64_t> JsonObject::GetInt(const char* field) const {
  const rapidjson::Value* value = value_->Find(field);
  if (value == nullptr) return std::nullopt;
  if (value->IsInt64()) return value->GetInt64();
  if (!value->IsDouble()) return std::nullopt;
  const double number = value->GetDouble();
  if (!(number > -9e18 && number < 9e18)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<JsonObject> JsonObject::GetObject(const char* field) const {
  const rapidjson::Value* value = value_->Find(field);
  if (value == nullptr || !value->IsObject()) return std::nullopt;
  auto inner = std::make_unique<Value>();
  inner->document = value_->document;
  inner->object = value;
  return JsonObject(std::move(inner));
}

std::string JsonQuote(absl::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  return std::string(buffer.GetString(), buffer.GetSize());
}

}  // namespace leasehold::executor
