#ifndef TESTS_SUPPORT_HTTP_GET_H_
#define TESTS_SUPPORT_HTTP_GET_H_

#include <string>

namespace leasehold::e2e {

struct HttpResponse {
  int status = 0;  // 0: no answer.
  std::string body;
};

// GET from a server on a loopback port.
HttpResponse HttpGet(int port, const std::string& path);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_HTTP_GET_H_
