// The smallest service: a number that workers add to. Each addition gets an id and the sum after it.
#ifndef SYNCOPATE_SERVICES_COUNTER_H_
#define SYNCOPATE_SERVICES_COUNTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "services/service.h"

namespace syncopate::services {

class Counter : public Service {
 public:
  struct Sum {
    ServiceId id;        // of this addition
    uint64_t total = 0;  // with it
  };

  // `rebuilds`: whether it goes on from the largest sum that a live worker has seen.
  explicit Counter(bool rebuilds) : rebuilds_(rebuilds) {}

  // The request for an addition, and its answer.
  static std::string Add(uint32_t amount);
  static absl::StatusOr<Sum> Read(absl::string_view answer);
  // What a worker reports: the largest sum that it has seen.
  static std::string Report(uint64_t total);

  absl::string_view name() const override { return "counter"; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override;
  std::string State() const override;
  absl::Status Load(absl::string_view state) override;
  bool CanRebuild() const override { return rebuilds_; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override;
  bool CanResume() const override { return true; }
  // Nothing of it is ever open.
  absl::Status Resume(absl::string_view state, const std::vector<int>& /*ranks*/) override {
    return Load(state);
  }

 private:
  const bool rebuilds_;
  uint64_t total_ = 0;
  uint64_t additions_ = 0;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_COUNTER_H_
