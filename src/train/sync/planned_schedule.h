// Interim.
#ifndef SYNCOPATE_TRAIN_SYNC_PLANNED_SCHEDULE_H_
#define SYNCOPATE_TRAIN_SYNC_PLANNED_SCHEDULE_H_

#include <memory>
#include <string>

#include "base/status.h"
#include "driver/live_driver.h"
#include "schedule/planners.h"

namespace syncopate::train {

class PlannedSchedule {
 public:
  static absl::StatusOr<std::unique_ptr<PlannedSchedule>> Make(Worker&, Group&,
                                                               const TensorTable& table,
                                                               const std::string& planner) {
    SYNCOPATE_ASSIGN_OR_RETURN(
        Schedule schedule,
        MakeSchedule(planner, table, {.a = 1e-4, .b = 1e-9, .gamma = {1}, .source = ""}));
    auto planned = std::make_unique<PlannedSchedule>();
    planned->first_ = std::make_shared<Schedule>(std::move(schedule));
    return planned;
  }
  const std::shared_ptr<const Schedule>& first() const { return first_; }
  absl::StatusOr<std::shared_ptr<const Schedule>> AfterIteration(driver::LiveDriver&) {
    return nullptr;
  }

 private:
  std::shared_ptr<const Schedule> first_;
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_SYNC_PLANNED_SCHEDULE_H_
