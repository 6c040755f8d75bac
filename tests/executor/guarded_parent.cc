// A process with children of its own, for tests that end it in bad ways:
//
//   guarded_parent TAG GRACE_MS SCRIPT
//
// Says its pid, then obeys a word a line of its input:
//
//   spawn     runs sh -c SCRIPT as a Subprocess, says the first line it prints
//   reap      waits for the oldest child to end
//   recycled  guards a group whose number a process that has ended had before
//   hold      forks a process that keeps all that is open here
//   (end)     exits with children still running
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "executor/handlers/process_guard.h"
#include "executor/handlers/subprocess.h"

namespace leasehold::executor {
namespace {

std::string FirstLine(const Fd& fd) {
  std::string line;
  char c = 0;
  for (;;) {
    const ssize_t size = read(fd.get(), &c, 1);
    if (size == 1 && c != '\n') {
      line.push_back(c);
    } else if (size >= 0) {
      return line;
    } else {
      usleep(1000);
    }
  }
}

class Parent {
 public:
  Parent(absl::Duration grace, std::string script)
      : grace_(grace), script_(std::move(script)) {}

  std::string Obey(const std::string& word) {
    if (word == "spawn") return Spawn();
    if (word == "reap") return Reap();
    if (word == "recycled") return AddRecycled();
    if (word == "hold") return Hold();
    return "what?";
  }

 private:
  std::string Spawn() {
    auto child = Subprocess::Spawn(
        {{"sh", "-c", script_}, {"PATH=/usr/bin:/bin"}, "", grace_});
    if (!child.ok()) return std::string(child.status().message());
    const std::string line = FirstLine(child->output());
    children_.push_back(*std::move(child));
    return line;
  }

  std::string Reap() {
    int status = 0;
    while (!children_.front().TryReap(&status)) usleep(1000);
    children_.pop_front();
    return "reaped";
  }

  std::string AddRecycled() {
    const pid_t gone = fork();
    if (gone == 0) _exit(0);
    const int leader = static_cast<int>(syscall(SYS_pidfd_open, gone, 0));
    waitpid(gone, nullptr, 0);
    const pid_t innocent = fork();
    if (innocent == 0) {
      setpgid(0, 0);
      for (;;) pause();
    }
    setpgid(innocent, innocent);
    const absl::Status added =
        ProcessGuard::OfThisProcess().Add(innocent, leader, grace_);
    return added.ok() ? std::to_string(innocent) : "not added";
  }

  static std::string Hold() {
    const pid_t holder = fork();
    if (holder == 0) {
      close(STDOUT_FILENO);
      for (;;) pause();
    }
    return std::to_string(holder);
  }

  const absl::Duration grace_;
  const std::string script_;
  std::deque<Subprocess> children_;
};

int Main(char** argv) {
  signal(SIGPIPE, SIG_IGN);
  Parent parent(absl::Milliseconds(std::atoi(argv[2])), argv[3]);
  std::cout << getpid() << std::endl;
  std::string word;
  while (std::getline(std::cin, word)) {
    std::cout << parent.Obey(word) << std::endl;
  }
  _exit(0);
}

}  // namespace
}  // namespace leasehold::executor

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "want TAG GRACE_MS SCRIPT\n");
    return 2;
  }
  return leasehold::executor::Main(argv);
}
