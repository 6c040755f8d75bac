#include <gtest/gtest.h>

#include "executor/handlers/echo_handler.h"
#include "executor/handlers/fail_handler.h"
#include "executor/handlers/json_object.h"
#include "executor/handlers/sleep_handler.h"
#include "tests/executor/handler_run.h"

namespace leasehold::executor {
namespace {

TEST(EchoHandler, ReturnsItsPayload) {
  EchoHandler echo;

  EXPECT_EQ(Describe(HandlerRun().WithJson("[1]").Run(echo)), "json:[1]");
  EXPECT_EQ(Describe(HandlerRun().WithData("x").Run(echo)), "data:x");
  EXPECT_EQ(Describe(HandlerRun().Run(echo)), "none");
}

TEST(SleepHandler, SleepsAsLongAsThePayloadSays) {
  SleepHandler sleep(absl::Hours(1));

  EXPECT_EQ(Describe(HandlerRun().WithJson("{\"ms\": 3}").Run(sleep)),
            "json:{\"slept_ms\":3}");
}

TEST(SleepHandler, WakesUpWhenItIsCancelled) {
  SleepHandler sleep(absl::Hours(1));

  EXPECT_EQ(Describe(HandlerRun().RunAndCancel(sleep, absl::Milliseconds(5))),
            "error:CANCELLED");
}

TEST(FailHandler, FailsAsThePayloadSays) {
  FailHandler fail;

  const TaskError error = ErrorOf(
      HandlerRun()
          .WithJson("{\"error_class\": \"RATE_LIMITED\", \"code\": \"BOOM\", "
                    "\"message\": \"m\", \"retry_after_ms\": 7000}")
          .Run(fail));

  EXPECT_EQ(error.error_class, ErrorClass::kRateLimited);
  EXPECT_EQ(error.code, "BOOM");
  EXPECT_EQ(error.message, "m");
  EXPECT_EQ(error.retry_after, absl::Seconds(7));
}

TEST(FailHandler, FailsRetryablyWithoutAUsablePayload) {
  FailHandler fail;
  for (const char* payload : {"", "[]", "{", "{\"code\": 7}"}) {
    const HandlerResult result = HandlerRun().WithJson(payload).Run(fail);

    EXPECT_EQ(Describe(result), "error:FAILED") << payload;
    EXPECT_EQ(ErrorOf(result).error_class, ErrorClass::kRetryable);
  }
}

TEST(FailHandler, SucceedsAfterAsManyTimesAsAsked) {
  FailHandler fail;
  HandlerRun run;
  run.WithJson("{\"times\": 2}");
  run.run.input.attempt = 2;
  EXPECT_EQ(Describe(run.Run(fail)), "error:FAILED");

  run.run.input.attempt = 3;
  EXPECT_EQ(Describe(run.Run(fail)), "json:{\"attempt\":3}");
}

TEST(JsonObject, ReadsNumbersOfAnySizeWithoutHarm) {
  const auto object =
      JsonObject::Parse("{\"a\": 1e999, \"b\": 1e30, \"c\": 2.9, \"d\": null}");
  if (!object.ok()) return;  // 1e999 may be refused, but must not crash.

  EXPECT_EQ(object->GetInt("b"), std::nullopt);
  EXPECT_EQ(object->GetInt("c"), 2);
  EXPECT_FALSE(object->Has("d"));
}

}  // namespace
}  // namespace leasehold::executor
