// The numbered files of schema/, embedded into the program at build time.
#ifndef SCHEDULER_STORE_MYSQL_SCHEMA_FILES_H_
#define SCHEDULER_STORE_MYSQL_SCHEMA_FILES_H_

#include <string>
#include <vector>

namespace leasehold::scheduler {

struct SchemaFile {
  int number = 0;    // From 1, without gaps.
  std::string name;  // "0001_tasks"
  std::string text;
};

// In ascending order.
const std::vector<SchemaFile>& SchemaFiles();

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_SCHEMA_FILES_H_
