#include "scheduler/store/mysql/mysql_config.h"

#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace leasehold::scheduler {
namespace {

constexpr char kKeys[] =
    "host, port, unix_socket, user, db, password, password_file, ssl_ca, "
    "ssl_cert, ssl_key";

struct Setting {
  std::string key;
  std::string value;
};

// Splits `key=value key='quoted \' value'`.
std::vector<Setting> Split(absl::string_view text,
                           std::vector<std::string>* errors) {
  std::vector<Setting> settings;
  size_t i = 0;
  while (true) {
    while (i < text.size() && absl::ascii_isspace(text[i])) ++i;
    if (i == text.size()) return settings;
    Setting setting;
    while (i < text.size() && text[i] != '=' && !absl::ascii_isspace(text[i])) {
      setting.key.push_back(text[i++]);
    }
    if (i == text.size() || text[i] != '=') {
      // Not shown: it may be the rest of a password.
      errors->push_back(absl::StrCat("setting ", settings.size() + 1,
                                     ": want key=value, values with blanks in "
                                     "single quotes"));
      settings.push_back({});
      continue;
    }
    ++i;
    const bool quoted = i < text.size() && text[i] == '\'';
    if (quoted) ++i;
    bool closed = false;
    while (i < text.size()) {
      if (quoted && text[i] == '\'') {
        closed = true;
        ++i;
        break;
      }
      if (!quoted && absl::ascii_isspace(text[i])) break;
      if (quoted && text[i] == '\\' && i + 1 < text.size()) ++i;
      setting.value.push_back(text[i++]);
    }
    if (quoted && !closed) {
      errors->push_back(absl::StrCat(setting.key, ": closing ' is missing"));
    }
    settings.push_back(std::move(setting));
  }
}

void ReadPasswordFile(const std::string& path, MySqlConfig* config,
                      std::vector<std::string>* errors) {
  std::ifstream file(path);
  if (!file || !std::getline(file, config->password)) {
    errors->push_back(absl::StrCat("password_file: \"", path,
                                   "\", want a readable file with the "
                                   "password in its first line"));
    return;
  }
  if (!config->password.empty() && config->password.back() == '\r') {
    config->password.pop_back();
  }
}

void CheckReadable(const char* key, const std::string& path,
                   std::vector<std::string>* errors) {
  if (!path.empty() && !std::ifstream(path)) {
    errors->push_back(
        absl::StrCat(key, ": \"", path, "\", want a readable file"));
  }
}

void CheckWhole(const std::set<std::string>& seen, const MySqlConfig& config,
                std::vector<std::string>* errors) {
  if (config.user.empty()) errors->push_back("user: missing, want user=NAME");
  if (config.db.empty()) errors->push_back("db: missing, want db=NAME");
  if (seen.contains("host") && seen.contains("unix_socket")) {
    errors->push_back("host, unix_socket: want one of them");
  }
  if (seen.contains("password") && seen.contains("password_file")) {
    errors->push_back("password, password_file: want one of them");
  }
  if (config.ssl_cert.empty() != config.ssl_key.empty()) {
    errors->push_back("ssl_cert, ssl_key: want both or none");
  }
  CheckReadable("ssl_ca", config.ssl_ca, errors);
  CheckReadable("ssl_cert", config.ssl_cert, errors);
  CheckReadable("ssl_key", config.ssl_key, errors);
}

}  // namespace

absl::StatusOr<MySqlConfig> ParseMySqlConfig(absl::string_view text) {
  MySqlConfig config;
  std::vector<std::string> errors;
  std::string password_file;
  const std::map<std::string, std::string*> texts = {
      {"host", &config.host},         {"unix_socket", &config.unix_socket},
      {"user", &config.user},         {"db", &config.db},
      {"password", &config.password}, {"password_file", &password_file},
      {"ssl_ca", &config.ssl_ca},     {"ssl_cert", &config.ssl_cert},
      {"ssl_key", &config.ssl_key}};
  std::set<std::string> seen;
  for (const Setting& setting : Split(text, &errors)) {
    if (setting.key.empty()) continue;
    if (!seen.insert(setting.key).second) {
      errors.push_back(absl::StrCat(setting.key, ": given twice"));
    } else if (setting.key == "port") {
      if (!absl::SimpleAtoi(setting.value, &config.port) || config.port < 1 ||
          config.port > 65535) {
        errors.push_back(
            absl::StrCat("port: \"", setting.value, "\", want 1-65535"));
      }
    } else if (const auto it = texts.find(setting.key); it != texts.end()) {
      *it->second = setting.value;
    } else {
      errors.push_back(
          absl::StrCat(setting.key, ": unknown setting, want ", kKeys));
    }
  }
  if (!password_file.empty()) {
    ReadPasswordFile(password_file, &config, &errors);
  }
  CheckWhole(seen, config, &errors);
  if (!errors.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  }
  if (config.host.empty() && config.unix_socket.empty()) {
    config.host = "127.0.0.1";
  }
  return config;
}

std::string AddressForMessage(const MySqlConfig& config) {
  if (!config.unix_socket.empty()) {
    return absl::StrCat(config.unix_socket, "/", config.db);
  }
  return absl::StrCat(config.host, ":", config.port, "/", config.db);
}

}  // namespace leasehold::scheduler
