// The sample-range service: exact epochs at unequal speed. Workers take ranges of an epoch's samples
// as they need them. A range *counts* when its holder says so, after the update that used it; what a
// worker holds and has not said when it goes is handed out again. So every sample is counted once in
// every epoch, whoever is lost; samples that were handed out twice are told.
//
// A sample here is a place in the epoch's order; which sample that is says the data set's shuffle.
// Ranges of the next epoch may be taken while older ones are still held, so nobody waits at the end
// of an epoch, except of the last.
#ifndef SYNCOPATE_SERVICES_SAMPLE_RANGES_H_
#define SYNCOPATE_SERVICES_SAMPLE_RANGES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "services/sample_message.h"
#include "services/service.h"

namespace syncopate::services {

struct SampleRangesOptions {
  uint64_t samples = 1;  // of an epoch
  uint64_t epochs = 1;
  uint64_t ahead = 1;  // epochs that may have begun before the oldest is done
  // What counts already: of a job that goes on.
  SampleProgress before = {};
};

class SampleRanges : public Service {
 public:
  // The options must be valid.
  explicit SampleRanges(const SampleRangesOptions& options);
  static absl::Status Validate(const SampleRangesOptions& options);

  absl::string_view name() const override { return "samples"; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override;
  std::string State() const override;
  absl::Status Load(absl::string_view state) override;
  bool CanRebuild() const override { return true; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override;

 private:
  struct Epoch {
    uint64_t cursor = 0;  // samples from here on were never handed out
    Intervals counted;
    Intervals returned;  // they were, to workers that are gone
  };
  struct Holding {
    int rank = -1;
    uint64_t epoch = 0;
    Interval samples;
  };
  struct Taker {
    int rank = -1;
    uint64_t ticket = 0;
    uint64_t want = 0;
  };

  void OnNext(const ServiceContext& context, int from, uint64_t ticket, const NextRequest& request,
              ServiceStep& step);
  // Gives ranges to those that wait, or the end.
  void Serve(const ServiceContext& context, ServiceStep& step);
  bool ServeOne(const ServiceContext& context, const Taker& taker, ServiceStep& step);
  // Those that wait for what they may hold themselves are told to say it.
  void SendBackHolders(ServiceStep& step);
  // Of epochs that are open all is set but what was counted, and what was handed out.
  void SetUp(const SampleProgress& counted, const std::vector<Intervals>& handed);
  SampleProgress Progress() const;
  void CloseEpochs();
  void Return(int rank, ServiceStep& step);
  Epoch& epoch(uint64_t number) { return open_[number - done_]; }

  SampleRangesOptions options_;
  uint64_t done_ = 0;  // epochs below this are complete
  std::deque<Epoch> open_;
  std::map<ServiceId, Holding> held_;
  std::deque<Taker> takers_;
  uint64_t ranges_ = 0;    // made so far
  uint64_t repeated_ = 0;  // samples that were handed out again
  uint64_t rebuilt_ = 0;   // the incarnation in which the service was rebuilt; 0: never
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SAMPLE_RANGES_H_
