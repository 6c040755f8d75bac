// Tasks between Protobuf and the scheduler's own nouns. Requests have been
// validated before (validation.h); nothing here can fail.
#ifndef SCHEDULER_RPC_TASK_CONVERSION_H_
#define SCHEDULER_RPC_TASK_CONVERSION_H_

#include <string>
#include <utility>
#include <vector>

#include "leasehold/v1/task.pb.h"
#include "leasehold/v1/task_service.pb.h"
#include "scheduler/domain/task.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

TaskSpec ToTaskSpec(const v1::Task& task);
ListFilter ToListFilter(const v1::ListTasksRequest& request);

// As the record stands. Payload and result only if they were `read`: a record
// that was read without them still knows their kind.
v1::Task ToProto(const TaskRecord& record, const ReadOptions& read);
// A task that has just been stored, without its payload.
v1::Task ToProto(const SubmittedTask& stored, const TaskSpec& spec);

void ToProto(const Payload& payload, v1::Payload* out);
void ToProto(const TaskError& error, v1::TaskError* out);
void ToProto(const std::vector<std::pair<std::string, std::string>>& labels,
             google::protobuf::Map<std::string, std::string>* out);
// Sorted by key.
std::vector<std::pair<std::string, std::string>> ToLabels(
    const google::protobuf::Map<std::string, std::string>& labels);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_TASK_CONVERSION_H_
