#ifndef TESTS_SUPPORT_FREE_PORT_H_
#define TESTS_SUPPORT_FREE_PORT_H_

#include <string>

namespace leasehold::e2e {

// A loopback port that nobody listens on. Different on every call of a process.
int FreePort();

std::string LoopbackAddress(int port);

// A listening socket on 127.0.0.1; `port` 0 picks one, BoundPort says which.
// Throws when the port is taken.
int ListenOnLoopback(int port);
int BoundPort(int socket);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_FREE_PORT_H_
