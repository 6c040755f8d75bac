// Who can take a task the moment it is stored: sessions with free slots for
// which nothing waits in any of their lanes.
#ifndef SCHEDULER_DISPATCH_DIRECT_LEASES_H_
#define SCHEDULER_DISPATCH_DIRECT_LEASES_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/dispatch/dispatch_target.h"
#include "scheduler/dispatch/lease_builder.h"
#include "scheduler/dispatch/ready_index.h"
#include "scheduler/engine/direct_leaser.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/scheduler_metrics.h"

namespace leasehold::scheduler {

class DirectLeases : public DirectLeaser {
 public:
  using Targets = std::vector<std::shared_ptr<DispatchTarget>>;
  using GiveBack =
      std::function<void(std::vector<std::pair<LeaseRef, HolderId>>)>;

  // `give_back` takes leases whose session ended before they could be sent; it
  // must not block.
  DirectLeases(const ReadyIndex& index, const LaneDirectory& lanes,
               const LeaseBuilder& builder,
               std::function<Targets()> list_targets, GiveBack give_back,
               SchedulerMetrics& metrics)
      : index_(index),
        lanes_(lanes),
        builder_(builder),
        list_targets_(std::move(list_targets)),
        give_back_(std::move(give_back)),
        metrics_(metrics) {}

  std::unique_ptr<DirectLeaseBatch> Begin() override;

 private:
  class Batch;

  const ReadyIndex& index_;
  const LaneDirectory& lanes_;
  const LeaseBuilder& builder_;
  const std::function<Targets()> list_targets_;
  const GiveBack give_back_;
  SchedulerMetrics& metrics_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_DIRECT_LEASES_H_
