#include "executor/handlers/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/text/utf8.h"
#include "executor/handlers/process_guard.h"

namespace leasehold::executor {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

// Above 0-2, so that no pipe stands where the child's standard descriptors go.
absl::StatusOr<Fd> MoveUp(Fd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  Fd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (moved.open()) return moved;
  return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
}

absl::StatusOr<Pipe> OpenPipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
  }
  Fd read_end(fds[0]);
  Fd write_end(fds[1]);
  Pipe pipe;
  LEASEHOLD_ASSIGN_OR_RETURN(pipe.read, MoveUp(std::move(read_end)));
  LEASEHOLD_ASSIGN_OR_RETURN(pipe.write, MoveUp(std::move(write_end)));
  return pipe;
}

void MakeNonBlocking(const Fd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) {
    pointers.push_back(const_cast<char*>(s.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn's attributes and file actions, freed together.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
  }
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  // A group of its own, and signals as a fresh process has them: this process
  // blocks some and ignores SIGPIPE.
  void SetGroupAndSignals() {
    sigset_t none;
    sigemptyset(&none);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM,
                             SIGUSR1, SIGUSR2, SIGCHLD}) {
      sigaddset(&defaults, signal);
    }
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
  }

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

absl::Status SpawnError(int error, const Subprocess::Options& options) {
  std::string message = absl::StrCat(
      "command ", QuoteForMessage(options.argv[0], 256), ": ", strerror(error));
  if (!options.working_folder.empty()) {
    absl::StrAppend(&message, " (in folder ",
                    QuoteForMessage(options.working_folder, 256), ")");
  }
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case ENOEXEC:
      return absl::PermissionDeniedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

absl::StatusOr<Subprocess> Subprocess::Spawn(const Options& options) {
  LEASEHOLD_ASSIGN_OR_RETURN(Pipe input, OpenPipe());
  LEASEHOLD_ASSIGN_OR_RETURN(Pipe output, OpenPipe());
  LEASEHOLD_ASSIGN_OR_RETURN(Pipe error, OpenPipe());

  SpawnSetup setup;
  setup.SetGroupAndSignals();
  posix_spawn_file_actions_t* actions = &setup.actions;
  posix_spawn_file_actions_adddup2(actions, input.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(actions, output.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions, error.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
  if (!options.working_folder.empty()) {
    posix_spawn_file_actions_addchdir_np(actions,
                                         options.working_folder.c_str());
  }

  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<char*> environment = Pointers(options.environment);
  pid_t pid = -1;
  const int result = posix_spawnp(&pid, argv[0], actions, &setup.attributes,
                                  argv.data(), environment.data());
  if (result != 0) return SpawnError(result, options);

  Subprocess child;
  child.pid_ = pid;
  child.input_ = std::move(input.write);
  child.output_ = std::move(output.read);
  child.error_ = std::move(error.read);
  child.pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // A child that would outlive this process's death is not kept.
  LEASEHOLD_RETURN_IF_ERROR(ProcessGuard::OfThisProcess().Add(
      pid, child.pidfd_.get(), options.kill_grace));
  MakeNonBlocking(child.input_);
  MakeNonBlocking(child.output_);
  MakeNonBlocking(child.error_);
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)),
      pidfd_(std::move(other.pidfd_)) {}

Subprocess::~Subprocess() {
  if (pid_ < 0) return;
  SignalGroup(SIGKILL);
  int wait_status = 0;
  Reap(&wait_status);
}

void Subprocess::SignalGroup(int signal) {
  if (pid_ > 0) kill(-pid_, signal);
}

bool Subprocess::TryReap(int* wait_status) {
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info,
             WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == 0) {
    return false;
  }
  // Before the child is reaped its id cannot be anybody else's.
  SignalGroup(SIGKILL);
  // Somebody else reaped it: nobody knows how it ended, so not well.
  if (!Reap(wait_status)) *wait_status = W_EXITCODE(255, 0);
  return true;
}

bool Subprocess::Reap(int* wait_status) {
  ProcessGuard::OfThisProcess().Drop(pid_);
  pid_t reaped;
  do {
    reaped = waitpid(pid_, wait_status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  return reaped >= 0;
}

}  // namespace leasehold::executor
