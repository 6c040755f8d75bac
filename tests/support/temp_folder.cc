#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace leasehold::e2e {

TempFolder::TempFolder() {
  // Short, because a unix socket's path has room for 107 bytes.
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/tmp") + "/lh.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder like " + path_);
  }
}

TempFolder::~TempFolder() {
  if (std::getenv("LEASEHOLD_KEEP_TEST_FILES") != nullptr) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name,
                              const std::string& content) const {
  const std::string path = File(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace leasehold::e2e
