#include "scheduler/domain/retry_policy.h"
