// A folder that is gone when its owner is, unless LEASEHOLD_KEEP_TEST_FILES is
// set.
#ifndef TESTS_SUPPORT_TEMP_FOLDER_H_
#define TESTS_SUPPORT_TEMP_FOLDER_H_

#include <string>

namespace leasehold::e2e {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Writes the file and returns its path.
  std::string Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

// The whole file; empty when there is none.
std::string ReadFile(const std::string& path);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_TEMP_FOLDER_H_
