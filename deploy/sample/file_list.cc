#include "deploy/sample/file_list.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace leasehold::sample {
namespace {

bool IsSkipped(const std::string& folder_name) {
  return folder_name == ".git" || folder_name == ".build" ||
         folder_name == ".cache" || folder_name == ".run" ||
         folder_name == "node_modules";
}

}  // namespace

std::vector<std::string> ListRegularFiles(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(
      folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code unreadable;
    if (entry->is_symlink(unreadable)) continue;
    if (entry->is_directory(unreadable)) {
      if (IsSkipped(entry->path().filename().string()))
        entry.disable_recursion_pending();
    } else if (entry->is_regular_file(unreadable)) {
      files.push_back(entry->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace leasehold::sample
