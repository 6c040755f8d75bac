#include "scheduler/store/mysql/spec_json.h"

#include <gtest/gtest.h>

namespace leasehold::scheduler {
namespace {

TEST(SpecJsonTest, WritesNothingForNothing) {
  EXPECT_EQ(LabelsToJson({}), "");
  EXPECT_EQ(RetryPolicyToJson({}), "");
  EXPECT_TRUE(LabelsFromJson("").value().empty());
  EXPECT_EQ(RetryPolicyFromJson("").value(), RetryPolicySpec{});
}

TEST(SpecJsonTest, KeepsLabels) {
  const Labels labels = {{"a", "\"\\\n\xC3\xA4"}, {"b", ""}};

  EXPECT_EQ(LabelsFromJson(LabelsToJson(labels)).value(), labels);
}

TEST(SpecJsonTest, KeepsRetryPolicies) {
  RetryPolicySpec policy;
  policy.max_attempts = 3;
  policy.max_backoff_us = 9'007'199'254'740'993;
  policy.backoff_schedule_us = {1, 2};
  policy.non_retryable_codes = {"x", "it's"};

  EXPECT_EQ(RetryPolicyFromJson(RetryPolicyToJson(policy)).value(), policy);
}

TEST(SpecJsonTest, SkipsWhatItDoesNotKnow) {
  EXPECT_EQ(
      RetryPolicyFromJson(R"({"later":1,"max_attempts":2})")->max_attempts, 2);
}

TEST(SpecJsonTest, ReportsDamage) {
  EXPECT_FALSE(LabelsFromJson("{").ok());
  EXPECT_FALSE(LabelsFromJson(R"({"a":1})").ok());
  EXPECT_FALSE(RetryPolicyFromJson("[]").ok());
}

}  // namespace
}  // namespace leasehold::scheduler
