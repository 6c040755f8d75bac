#include "tests/support/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <stdexcept>

namespace leasehold::e2e {

int ListenOnLoopback(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, 128) != 0) {
    close(fd);
    throw std::runtime_error("cannot listen on port " + std::to_string(port));
  }
  return fd;
}

int BoundPort(int socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

int FreePort() {
  static std::mutex mutex;
  static std::set<int> handed_out;
  const std::lock_guard<std::mutex> lock(mutex);
  while (true) {
    const int fd = ListenOnLoopback(0);
    const int port = BoundPort(fd);
    close(fd);
    if (handed_out.insert(port).second) return port;
  }
}

std::string LoopbackAddress(int port) {
  return "127.0.0.1:" + std::to_string(port);
}

}  // namespace leasehold::e2e
