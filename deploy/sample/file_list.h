// Which files the sample job is about.
#ifndef DEPLOY_SAMPLE_FILE_LIST_H_
#define DEPLOY_SAMPLE_FILE_LIST_H_

#include <string>
#include <vector>

namespace leasehold::sample {

// Every regular file under `folder`, sorted, with `folder` in front; folders
// named .git, .build, .cache, .run and node_modules are skipped, symbolic links
// are not followed. What cannot be read is left out. Names are bytes: they may
// hold anything but NUL.
std::vector<std::string> ListRegularFiles(const std::string& folder);

}  // namespace leasehold::sample

#endif  // DEPLOY_SAMPLE_FILE_LIST_H_
