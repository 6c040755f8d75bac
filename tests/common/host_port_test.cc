#include "common/text/host_port.h"

#include <gtest/gtest.h>

namespace leasehold {
namespace {

TEST(HostPort, TakesNamesAndAddresses) {
  for (const char* good : {"127.0.0.1:7070", "localhost:1", "a-b_c.d:65535",
                           "[::1]:7070", "[fe80::1%eth0]:80"}) {
    EXPECT_TRUE(IsHostPort(good)) << good;
  }
}

TEST(HostPort, RefusesEverythingElse) {
  for (const char* bad : {"",
                          "127.0.0.1",
                          ":7070",
                          "a:",
                          "a:0",
                          "a:65536",
                          "a: 7070",
                          "a:+7070",
                          "a:7070 ",
                          " a:7070",
                          "http://127.0.0.1:7070",
                          "dns:///a:7070",
                          "a:7070/path",
                          "user@a:7070",
                          "::1:7070",
                          "[]:80",
                          "[::1:80",
                          "[x]:80",
                          "[::1%]:80",
                          "a,b:80",
                          "a:99999999999"}) {
    EXPECT_FALSE(IsHostPort(bad)) << bad;
  }
}

}  // namespace
}  // namespace leasehold
