#include "common/process/limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"

namespace leasehold {

absl::StatusOr<int64_t> RaiseFileLimit() {
  constexpr rlim_t kEnough = 65'536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return absl::ErrnoToStatus(errno, "open files: cannot read the limit");
  }
  const rlim_t wanted =
      std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  if (wanted != limit.rlim_cur) {
    limit.rlim_cur = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return absl::ErrnoToStatus(errno, "open files: cannot raise the limit");
    }
  }
  return static_cast<int64_t>(std::min(wanted, static_cast<rlim_t>(INT64_MAX)));
}

void OpenStandardDescriptors() {
  // open takes the lowest number that is free.
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace leasehold
