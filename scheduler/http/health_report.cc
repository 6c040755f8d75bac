#include "scheduler/http/health_report.h"

#include "absl/strings/str_cat.h"

namespace leasehold::scheduler {

// Names of loops are ours and need no escaping.
HealthReport ReportHealth(const HealthProbe& probe) {
  bool healthy = true;
  std::string loops;
  for (const LoopHealth& loop : probe.loops()) {
    const bool ok = loop.age <= loop.limit;
    healthy = healthy && ok;
    absl::StrAppend(&loops, loops.empty() ? "" : ",", "{\"name\":\"", loop.name,
                    "\",\"age_ms\":", absl::ToInt64Milliseconds(loop.age),
                    ",\"limit_ms\":", absl::ToInt64Milliseconds(loop.limit),
                    ",\"ok\":", ok ? "true" : "false", "}");
  }
  return {healthy ? 200 : 503,
          absl::StrCat("{\"status\":\"", healthy ? "ok" : "unhealthy",
                       "\",\"loops\":[", loops, "]}\n")};
}

HealthReport ReportReadiness(const HealthProbe& probe) {
  const bool serving = probe.serving();
  const bool database = probe.database_up();
  const bool ready = serving && database;
  return {ready ? 200 : 503,
          absl::StrCat("{\"status\":\"", ready ? "ready" : "not ready",
                       "\",\"serving\":", serving ? "true" : "false",
                       ",\"database\":\"",
                       database ? "reachable" : "unreachable", "\"}\n")};
}

}  // namespace leasehold::scheduler
