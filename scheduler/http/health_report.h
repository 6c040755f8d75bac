// The bodies of /healthz and /readyz.
//
//   503 {"status":"unhealthy","loops":[{"name":"dispatcher","age_ms":61000,
//        "limit_ms":30000,"ok":false}]}
//   503 {"status":"not ready","serving":true,"database":"unreachable"}
#ifndef SCHEDULER_HTTP_HEALTH_REPORT_H_
#define SCHEDULER_HTTP_HEALTH_REPORT_H_

#include <string>

#include "scheduler/http/health_probe.h"

namespace leasehold::scheduler {

struct HealthReport {
  int http_status = 200;  // Or 503.
  std::string json;
};

// Whether the process does its rounds: restart it if not. A database that is
// away does not count; a restart would not bring it back.
HealthReport ReportHealth(const HealthProbe& probe);

// Whether this replica should get calls.
HealthReport ReportReadiness(const HealthProbe& probe);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_HTTP_HEALTH_REPORT_H_
