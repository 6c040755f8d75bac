#include "tests/support/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/support/poll.h"
#include "tests/support/temp_folder.h"

extern char** environ;

namespace leasehold::e2e {
namespace {

std::vector<std::string> MergedEnvironment(
    const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, strcspn(*entry, "="));
    if (added.count(name) == 0) merged.emplace_back(*entry);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: only what is safe there.
[[noreturn]] void Exec(const std::vector<char*>& argv,
                       const std::vector<char*>& environment, int log,
                       const char* folder, pid_t parent, int error_pipe) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(log >= 0 ? log : null, STDOUT_FILENO);
  dup2(log >= 0 ? log : null, STDERR_FILENO);
  if (*folder == '\0' || chdir(folder) == 0) {
    execvpe(argv[0], argv.data(), environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written =
      write(error_pipe, &error, sizeof(error));
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(ChildOptions options)
    : options_(std::move(options)) {
  std::vector<std::string> environment =
      MergedEnvironment(options_.environment);
  const std::vector<char*> argv = Pointers(options_.argv);
  const std::vector<char*> envp = Pointers(environment);
  int log = -1;
  if (!options_.log_path.empty()) {
    log = open(options_.log_path.c_str(),
               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    Exec(argv, envp, log, options_.working_folder.c_str(), parent,
         error_pipe[1]);
  }
  close(error_pipe[1]);
  if (log >= 0) close(log);
  int error = 0;
  const bool failed =
      pid_ < 0 || read(error_pipe[0], &error, sizeof(error)) > 0;
  close(error_pipe[0]);
  if (!failed) return;
  if (pid_ > 0) Reap(true);
  throw std::runtime_error("cannot run " + options_.argv[0] + ": " +
                           std::strerror(error));
}

ChildProcess::~ChildProcess() { Kill(); }

void ChildProcess::Reap(bool block) {
  if (status_.has_value()) return;
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, block ? 0 : WNOHANG);
  } while (reaped < 0 && errno == EINTR);
  if (reaped != pid_) return;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ChildProcess::Running() {
  Reap(false);
  return !status_.has_value();
}

void ChildProcess::Signal(int signal) const {
  if (!status_.has_value()) kill(pid_, signal);
}

std::optional<int> ChildProcess::WaitForExit(absl::Duration timeout) {
  Eventually([this] { return !Running(); }, timeout);
  return status_;
}

void ChildProcess::Kill() {
  if (status_.has_value()) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  Reap(true);
}

std::string ChildProcess::Log() const { return ReadFile(options_.log_path); }

double CpuSeconds(pid_t pid) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream fields(stat.substr(end_of_name + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;  // state .. cmajflt
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ResidentMiB(pid_t pid) {
  std::istringstream fields(
      ReadFile("/proc/" + std::to_string(pid) + "/statm"));
  double total = 0;
  double resident = 0;
  fields >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

std::string RunCommand(const std::vector<std::string>& argv,
                       const std::map<std::string, std::string>& environment) {
  const TempFolder folder;
  ChildProcess child({.argv = argv,
                      .environment = environment,
                      .log_path = folder.File("output"),
                      .working_folder = ""});
  const std::optional<int> status = child.WaitForExit(absl::Minutes(10));
  std::string output = child.Log();
  if (status != 0) {
    throw std::runtime_error(argv[0] + " failed with status " +
                             std::to_string(status.value_or(-1)) + ": " +
                             output);
  }
  return output;
}

}  // namespace leasehold::e2e
