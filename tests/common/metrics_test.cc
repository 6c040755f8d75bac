#include "common/metrics/metrics.h"

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leasehold {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricRegistry, ShowsEveryKindInTheTextFormat) {
  MetricRegistry metrics;
  metrics.AddCounter("test_leases_total", "Leases made", {{"queue", "mail"}})
      .Increment();
  metrics.AddGauge("test_sessions", "Sessions open").Set(3);
  Histogram histogram =
      metrics.AddHistogram("test_wait_seconds", "Wait", LatencyBuckets());
  histogram.Observe(absl::Milliseconds(2));
  histogram.Observe(0.25);

  const std::string text = metrics.Serialize();

  EXPECT_THAT(text, HasSubstr("# HELP test_leases_total Leases made\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE test_leases_total counter\n"));
  EXPECT_THAT(text, HasSubstr("test_leases_total{queue=\"mail\"} 1"));
  EXPECT_THAT(text, HasSubstr("test_sessions 3"));
  EXPECT_THAT(text, HasSubstr("test_wait_seconds_count 2"));
  EXPECT_THAT(text, HasSubstr("test_wait_seconds_bucket{le=\"0.001\"} 0"));
  EXPECT_THAT(text, HasSubstr("test_wait_seconds_bucket{le=\"0.0025\"} 1"));
  EXPECT_THAT(text, HasSubstr("test_wait_seconds_bucket{le=\"60\"} 2"));
}

TEST(MetricRegistry, GivesOneMetricForOneNameAndLabelSet) {
  MetricRegistry metrics;
  Counter first = metrics.AddCounter("test_total", "Help", {{"a", "1"}});
  Counter second = metrics.AddCounter("test_total", "Help", {{"a", "1"}});
  Counter other = metrics.AddCounter("test_total", "Help", {{"a", "2"}});

  first.Increment(2);
  second.Increment();

  EXPECT_EQ(first.value(), 3);
  EXPECT_EQ(other.value(), 0);
}

TEST(MetricRegistry, BoundsTheLabelSetsOfAMetric) {
  MetricRegistry metrics;
  for (size_t i = 0; i < MetricRegistry::kMaxLabelSets + 5; ++i) {
    metrics.AddCounter("test_total", "Help", {{"queue", absl::StrCat("q", i)}})
        .Increment();
  }

  EXPECT_EQ(
      metrics.AddCounter("test_total", "Help", {{"queue", "other"}}).value(),
      5);
  EXPECT_THAT(metrics.Serialize(), Not(HasSubstr("q1004")));
}

TEST(MetricRegistry, ReadsCallbackGaugesWhenItIsRead) {
  MetricRegistry metrics;
  double size = 1;
  CallbackGauge gauge =
      metrics.AddCallbackGauge("test_size", "Size", [&] { return size; });
  CallbackGauge lanes = metrics.AddCallbackGauges("test_lanes", "Lanes", [] {
    return MetricRegistry::Samples{{{{"lane", "a"}}, 1}, {{{"lane", "b"}}, 2}};
  });
  size = 7;

  EXPECT_THAT(metrics.Serialize(), HasSubstr("test_size 7"));
  EXPECT_THAT(metrics.Serialize(), HasSubstr("test_lanes{lane=\"b\"} 2"));

  gauge = {};
  EXPECT_THAT(metrics.Serialize(), Not(HasSubstr("test_size")));
}

TEST(MetricRegistry, MayGoBeforeItsCallbackGauges) {
  CallbackGauge gauge;
  {
    MetricRegistry metrics;
    gauge = metrics.AddCallbackGauge("test_size", "Size", [] { return 1.0; });
  }
  gauge = {};
}

TEST(MetricRegistry, RunsNoCallbackThatHasBeenRemoved) {
  MetricRegistry metrics;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) metrics.Serialize();
  });
  for (int i = 0; i < 200; ++i) {
    auto value = std::make_unique<double>(1);
    CallbackGauge gauge = metrics.AddCallbackGauge(
        "test_size", "Size", [read = value.get()] { return *read; });
    gauge = {};
    value.reset();
  }
  stop = true;
  reader.join();
}

TEST(Metrics, CountNothingWithoutARegistry) {
  Counter counter;
  Gauge gauge;
  Histogram histogram;

  counter.Increment();
  gauge.Set(1);
  gauge.Add(1);
  histogram.Observe(1);

  EXPECT_EQ(counter.value(), 0);
  EXPECT_EQ(gauge.value(), 0);
}

}  // namespace
}  // namespace leasehold
