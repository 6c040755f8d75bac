// An HTTP server that does what a test says, byte by byte.
#ifndef TESTS_EXECUTOR_TINY_HTTP_SERVER_H_
#define TESTS_EXECUTOR_TINY_HTTP_SERVER_H_

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leasehold::executor {

// Answers one connection after the other, each with one response.
class TinyHttpServer {
 public:
  // Called with the request and a function that sends bytes; it returns false
  // once the client is gone.
  using Send = std::function<bool(const std::string&)>;
  using Answer = std::function<void(const std::string& request, const Send&)>;

  explicit TinyHttpServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_, 16);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  // Answers `status` with these headers, each ended by \r\n, and body.
  TinyHttpServer(std::string status, std::string headers, std::string body)
      : TinyHttpServer([=](const std::string&, const Send& send) {
          send(absl::StrCat("HTTP/1.1 ", status, "\r\n", headers,
                            "Content-Length: ", body.size(),
                            "\r\nConnection: close\r\n\r\n", body));
        }) {}
  ~TinyHttpServer() {
    stopped_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string url() const {
    return absl::StrCat("http://127.0.0.1:", port_, "/path");
  }
  std::vector<std::string> requests() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }

 private:
  void Serve() {
    while (!stopped_) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      const std::string request = ReadRequest(fd);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        requests_.push_back(request);
      }
      answer_(request, [&](const std::string& bytes) {
        return !stopped_ &&
               send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                   static_cast<ssize_t>(bytes.size());
      });
      close(fd);
    }
  }

  static std::string ReadRequest(int fd) {
    std::string request;
    char buffer[4096];
    size_t wanted = std::string::npos;
    while (request.size() < wanted) {
      const ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
      if (size <= 0) break;
      request.append(buffer, static_cast<size_t>(size));
      const size_t end = request.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      wanted = end + 4;
      for (absl::string_view line :
           absl::StrSplit(absl::string_view(request).substr(0, end), "\r\n")) {
        size_t length = 0;
        if (absl::StartsWithIgnoreCase(line, "content-length:") &&
            absl::SimpleAtoi(line.substr(15), &length)) {
          wanted += length;
        }
      }
    }
    return request;
  }

  const Answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace leasehold::executor

#endif  // TESTS_EXECUTOR_TINY_HTTP_SERVER_H_
