// The steps of a program, numbered across all workers, with every send matched to its receive.
#ifndef SYNCOPATE_MODEL_PROGRAM_STEPS_H_
#define SYNCOPATE_MODEL_PROGRAM_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/program.h"

namespace syncopate {

class StepTable {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  // Pairs the k-th send from p to q with the k-th receive from p at q. FailedPrecondition if one is
  // left over. The program must be valid and outlive the table.
  static absl::StatusOr<StepTable> Make(const Program& program);

  Id size() const { return static_cast<Id>(worker_.size()); }
  // The steps of `worker` are begin(worker) .. begin(worker + 1) - 1, in the order of its list.
  Id begin(int worker) const { return begin_[worker]; }
  int worker(Id id) const { return worker_[id]; }
  size_t index(Id id) const { return id - begin_[worker_[id]]; }
  const Step& operator[](Id id) const { return program_->steps[worker(id)][index(id)]; }
  // The other end of a message; kNone for local steps.
  Id partner(Id id) const { return partner_[id]; }
  // Where a receive, copy or reduce reads: the sender's chunks, or its own source.
  std::pair<Space, uint32_t> Source(Id id) const;
  // For people: "worker 2, step 7 (send data 3 to 0)".
  std::string Place(Id id) const;

 private:
  explicit StepTable(const Program& program);

  const Program* program_;
  std::vector<Id> begin_;
  std::vector<int> worker_;
  std::vector<Id> partner_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_STEPS_H_
