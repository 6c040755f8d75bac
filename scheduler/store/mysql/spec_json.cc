#include "scheduler/store/mysql/spec_json.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <optional>

namespace leasehold::scheduler {
namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void WriteString(JsonWriter& writer, const std::string& text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

std::string ToString(const rapidjson::Value& value) {
  return std::string(value.GetString(), value.GetStringLength());
}

absl::Status BadColumn(const char* column) {
  return absl::InternalError(std::string(column) + ": column is damaged");
}

template <typename T>
void WriteIfSet(JsonWriter& writer, const char* key,
                const std::optional<T>& value) {
  if (!value.has_value()) return;
  writer.Key(key);
  writer.Int64(*value);
}

template <typename T>
void ReadIfSet(const rapidjson::Value& object, const char* key,
               std::optional<T>* value) {
  const auto it = object.FindMember(key);
  if (it != object.MemberEnd() && it->value.IsInt64()) {
    *value = static_cast<T>(it->value.GetInt64());
  }
}

}  // namespace

std::string LabelsToJson(const Labels& labels) {
  if (labels.empty()) return "";
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  writer.StartObject();
  for (const auto& [key, value] : labels) {
    writer.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
    WriteString(writer, value);
  }
  writer.EndObject();
  return buffer.GetString();
}

std::string RetryPolicyToJson(const RetryPolicySpec& policy) {
  if (policy == RetryPolicySpec{}) return "";
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  writer.StartObject();
  WriteIfSet(writer, "max_attempts", policy.max_attempts);
  WriteIfSet(writer, "initial_backoff_us", policy.initial_backoff_us);
  WriteIfSet(writer, "max_backoff_us", policy.max_backoff_us);
  if (!policy.backoff_schedule_us.empty()) {
    writer.Key("backoff_schedule_us");
    writer.StartArray();
    for (const int64_t wait_us : policy.backoff_schedule_us) {
      writer.Int64(wait_us);
    }
    writer.EndArray();
  }
  if (!policy.non_retryable_codes.empty()) {
    writer.Key("non_retryable_codes");
    writer.StartArray();
    for (const std::string& code : policy.non_retryable_codes) {
      WriteString(writer, code);
    }
    writer.EndArray();
  }
  writer.EndObject();
  return buffer.GetString();
}

absl::StatusOr<Labels> LabelsFromJson(absl::string_view json) {
  Labels labels;
  if (json.empty()) return labels;
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return BadColumn("labels");
  }
  for (const auto& member : document.GetObject()) {
    if (!member.value.IsString()) return BadColumn("labels");
    labels.emplace_back(ToString(member.name), ToString(member.value));
  }
  return labels;
}

absl::StatusOr<RetryPolicySpec> RetryPolicyFromJson(absl::string_view json) {
  RetryPolicySpec policy;
  if (json.empty()) return policy;
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return BadColumn("retry_policy");
  }
  ReadIfSet(document, "max_attempts", &policy.max_attempts);
  ReadIfSet(document, "initial_backoff_us", &policy.initial_backoff_us);
  ReadIfSet(document, "max_backoff_us", &policy.max_backoff_us);
  const auto schedule = document.FindMember("backoff_schedule_us");
  if (schedule != document.MemberEnd() && schedule->value.IsArray()) {
    for (const auto& wait_us : schedule->value.GetArray()) {
      if (!wait_us.IsInt64()) return BadColumn("retry_policy");
      policy.backoff_schedule_us.push_back(wait_us.GetInt64());
    }
  }
  const auto codes = document.FindMember("non_retryable_codes");
  if (codes != document.MemberEnd() && codes->value.IsArray()) {
    for (const auto& code : codes->value.GetArray()) {
      if (!code.IsString()) return BadColumn("retry_policy");
      policy.non_retryable_codes.push_back(ToString(code));
    }
  }
  return policy;
}

}  // namespace leasehold::scheduler
