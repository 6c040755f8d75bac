#include "scheduler/store/mysql/mysql_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace leasehold::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Mistakes(absl::string_view text) {
  const auto config = ParseMySqlConfig(text);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(MySqlConfigTest, ReadsASocketAddress) {
  const auto config =
      ParseMySqlConfig("unix_socket=/run/db.sock user=root db=leasehold");

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->unix_socket, "/run/db.sock");
  EXPECT_EQ(config->host, "");
  EXPECT_EQ(AddressForMessage(*config), "/run/db.sock/leasehold");
}

TEST(MySqlConfigTest, ReadsQuotedValues) {
  const auto config = ParseMySqlConfig(
      R"(host=db port=3307  user='a b' db=x password='it\'s \\ =secret')");

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->port, 3307);
  EXPECT_EQ(config->user, "a b");
  EXPECT_EQ(config->password, "it's \\ =secret");
  EXPECT_THAT(AddressForMessage(*config),
              AllOf(HasSubstr("db:3307/x"), Not(HasSubstr("secret"))));
}

TEST(MySqlConfigTest, TakesThePasswordFromTheFirstLineOfAFile) {
  const std::string path = testing::TempDir() + "password";
  std::ofstream(path) << "s3 cret\r\nmore\n";

  const auto config = ParseMySqlConfig("user=u db=d password_file=" + path);
  std::remove(path.c_str());

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->password, "s3 cret");
  EXPECT_EQ(config->host, "127.0.0.1");
}

TEST(MySqlConfigTest, ReportsEveryMistakeAtOnce) {
  const std::string mistakes =
      Mistakes("hots=db port=0 ssl_cert=/nonexistent user=a user=b");

  EXPECT_THAT(mistakes, HasSubstr("hots: unknown setting"));
  EXPECT_THAT(mistakes, HasSubstr("port: \"0\", want 1-65535"));
  EXPECT_THAT(mistakes, HasSubstr("ssl_cert, ssl_key: want both or none"));
  EXPECT_THAT(mistakes, HasSubstr("ssl_cert: \"/nonexistent\""));
  EXPECT_THAT(mistakes, HasSubstr("user: given twice"));
  EXPECT_THAT(mistakes, HasSubstr("db: missing"));
}

TEST(MySqlConfigTest, NeverShowsAPassword) {
  EXPECT_THAT(Mistakes("user=u db=d password=two secret words"),
              Not(HasSubstr("secret")));
  EXPECT_THAT(Mistakes("user=u db=d password='secret"),
              Not(HasSubstr("secret")));
}

TEST(MySqlConfigTest, RefusesTwoWaysToSayOneThing) {
  EXPECT_THAT(Mistakes("host=h unix_socket=/s user=u db=d"),
              HasSubstr("host, unix_socket: want one of them"));
}

}  // namespace
}  // namespace leasehold::scheduler
