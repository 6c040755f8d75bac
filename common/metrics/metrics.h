// Counters, gauges and histograms for Prometheus.
//
//   MetricRegistry metrics;
//   Counter leased = metrics.AddCounter(
//       "leasehold_leases_total", "Leases made. Compare with results to see
//       loss",
//       {{"queue", queue}});
//   leased.Increment();
//   std::string text = metrics.Serialize();   // the body of GET /metrics
//
// Labels are bounded sets such as a queue or an outcome, never a task id, a key
// or an error text.
#ifndef COMMON_METRICS_METRICS_H_
#define COMMON_METRICS_METRICS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace leasehold {

using MetricLabels = std::map<std::string, std::string>;

// Handles are cheap to copy, thread-safe, and valid as long as their registry.
// A default-constructed one counts nothing, for tests and tools without
// metrics.
class Counter {
 public:
  Counter() = default;
  // `by` is not negative.
  void Increment(double by = 1);
  double value() const;

 private:
  friend class MetricRegistry;
  explicit Counter(prometheus::Counter* metric) : metric_(metric) {}
  prometheus::Counter* metric_ = nullptr;
};

class Gauge {
 public:
  Gauge() = default;
  void Set(double value);
  void Add(double by);
  double value() const;

 private:
  friend class MetricRegistry;
  explicit Gauge(prometheus::Gauge* metric) : metric_(metric) {}
  prometheus::Gauge* metric_ = nullptr;
};

class Histogram {
 public:
  Histogram() = default;
  void Observe(double value);
  // In seconds, as Prometheus wants it.
  void Observe(absl::Duration value) { Observe(absl::ToDoubleSeconds(value)); }

 private:
  friend class MetricRegistry;
  explicit Histogram(prometheus::Histogram* metric) : metric_(metric) {}
  prometheus::Histogram* metric_ = nullptr;
};

// Seconds: 0.5 ms to 60 s.
const std::vector<double>& LatencyBuckets();
// Items: 1 to 1000.
const std::vector<double>& SizeBuckets();

// Keeps a callback gauge alive; once destroyed, the callback is not running and
// never runs again. Destroyed after its registry it does nothing.
class [[nodiscard]] CallbackGauge {
 public:
  CallbackGauge() = default;
  explicit CallbackGauge(std::function<void()> remove)
      : remove_(std::move(remove)) {}
  CallbackGauge(CallbackGauge&& other) noexcept
      : remove_(std::exchange(other.remove_, nullptr)) {}
  CallbackGauge& operator=(CallbackGauge&& other) noexcept {
    std::swap(remove_, other.remove_);
    return *this;
  }
  ~CallbackGauge() {
    if (remove_) remove_();
  }

 private:
  std::function<void()> remove_;
};

// Thread-safe. Asking twice for one name and label set gives the same metric. A
// name has one type and one help text; a wrong name is a bug and throws
// std::invalid_argument.
class MetricRegistry {
 public:
  // Label sets of one metric. Past that, every label value reads "other", so
  // that what clients name cannot fill the memory.
  static constexpr size_t kMaxLabelSets = 1000;

  using Samples = std::vector<std::pair<MetricLabels, double>>;

  MetricRegistry();
  ~MetricRegistry();
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  Counter AddCounter(const std::string& name, const std::string& help,
                     MetricLabels labels = {});
  Gauge AddGauge(const std::string& name, const std::string& help,
                 MetricLabels labels = {});
  Histogram AddHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& buckets,
                         MetricLabels labels = {});

  // Gauges whose values are computed when they are read. `read` runs on the
  // thread that serializes and must not register or remove metrics, nor destroy
  // a CallbackGauge. One name belongs to one callback.
  CallbackGauge AddCallbackGauge(const std::string& name,
                                 const std::string& help,
                                 std::function<double()> read);
  CallbackGauge AddCallbackGauges(const std::string& name,
                                  const std::string& help,
                                  std::function<Samples()> read);

  // Everything in the text format, version 0.0.4.
  std::string Serialize() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leasehold

#endif  // COMMON_METRICS_METRICS_H_
