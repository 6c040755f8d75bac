#include "common/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>
#include <set>

namespace leasehold {
namespace {

struct Callback {
  std::string name;
  std::string help;
  std::function<MetricRegistry::Samples()> read;
};

prometheus::MetricFamily ReadFamily(const Callback& callback) {
  prometheus::MetricFamily family;
  family.name = callback.name;
  family.help = callback.help;
  family.type = prometheus::MetricType::Gauge;
  for (const auto& [labels, value] : callback.read()) {
    prometheus::ClientMetric metric;
    for (const auto& [key, text] : labels) metric.label.push_back({key, text});
    metric.gauge.value = value;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

struct MetricRegistry::State {
  prometheus::Registry registry;

  std::mutex labels_mutex;
  std::map<std::string, std::set<MetricLabels>> label_sets;

  // Held while callbacks run, so that removing one waits for it.
  std::mutex callbacks_mutex;
  std::map<int64_t, Callback> callbacks;
  int64_t next_callback = 1;

  MetricLabels Bound(const std::string& name, MetricLabels labels) {
    const std::lock_guard<std::mutex> lock(labels_mutex);
    std::set<MetricLabels>& known = label_sets[name];
    if (known.count(labels) != 0) return labels;
    if (known.size() < kMaxLabelSets) {
      known.insert(labels);
      return labels;
    }
    for (auto& [key, value] : labels) value = "other";
    return labels;
  }
};

void Counter::Increment(double by) {
  if (metric_ != nullptr) metric_->Increment(by);
}
double Counter::value() const {
  return metric_ == nullptr ? 0 : metric_->Value();
}

void Gauge::Set(double value) {
  if (metric_ != nullptr) metric_->Set(value);
}
void Gauge::Add(double by) {
  if (metric_ != nullptr) metric_->Increment(by);
}
double Gauge::value() const {
  return metric_ == nullptr ? 0 : metric_->Value();
}

void Histogram::Observe(double value) {
  if (metric_ != nullptr) metric_->Observe(value);
}

const std::vector<double>& LatencyBuckets() {
  static const auto* buckets = new std::vector<double>{
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
  return *buckets;
}

const std::vector<double>& SizeBuckets() {
  static const auto* buckets =
      new std::vector<double>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  return *buckets;
}

MetricRegistry::MetricRegistry() : state_(std::make_shared<State>()) {}
MetricRegistry::~MetricRegistry() = default;

Counter MetricRegistry::AddCounter(const std::string& name,
                                   const std::string& help,
                                   MetricLabels labels) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(
      state_->registry);
  return Counter(&family.Add(state_->Bound(name, std::move(labels))));
}

Gauge MetricRegistry::AddGauge(const std::string& name, const std::string& help,
                               MetricLabels labels) {
  auto& family =
      prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
  return Gauge(&family.Add(state_->Bound(name, std::move(labels))));
}

Histogram MetricRegistry::AddHistogram(const std::string& name,
                                       const std::string& help,
                                       const std::vector<double>& buckets,
                                       MetricLabels labels) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(
      state_->registry);
  return Histogram(
      &family.Add(state_->Bound(name, std::move(labels)), buckets));
}

CallbackGauge MetricRegistry::AddCallbackGauge(const std::string& name,
                                               const std::string& help,
                                               std::function<double()> read) {
  return AddCallbackGauges(name, help, [read = std::move(read)] {
    return Samples{{MetricLabels{}, read()}};
  });
}

CallbackGauge MetricRegistry::AddCallbackGauges(const std::string& name,
                                                const std::string& help,
                                                std::function<Samples()> read) {
  int64_t id = 0;
  {
    const std::lock_guard<std::mutex> lock(state_->callbacks_mutex);
    id = state_->next_callback++;
    state_->callbacks[id] = {name, help, std::move(read)};
  }
  return CallbackGauge([weak = std::weak_ptr<State>(state_), id] {
    const std::shared_ptr<State> state = weak.lock();
    if (state == nullptr) return;
    const std::lock_guard<std::mutex> lock(state->callbacks_mutex);
    state->callbacks.erase(id);
  });
}

std::string MetricRegistry::Serialize() const {
  std::vector<prometheus::MetricFamily> families = state_->registry.Collect();
  {
    const std::lock_guard<std::mutex> lock(state_->callbacks_mutex);
    for (const auto& [id, callback] : state_->callbacks) {
      families.push_back(ReadFamily(callback));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace leasehold
