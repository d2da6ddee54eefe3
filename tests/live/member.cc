#include "live/member.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace syncopate::live {
namespace {

// Longer than any loss may take to be noticed: a call that ends by it is a failure.
constexpr absl::Duration kCallTimeout = absl::Seconds(20);

// Small whole numbers, so that sums are exact in any order; different from element to element, so
// that bytes in the wrong place show.
float Element(uint64_t index, uint64_t round) {
  return static_cast<float>(1 + (index * 7 + index / 1021 + round * 3) % 61);
}

class Member {
 public:
  Member(Worker& worker, const JobPlan& job, Story& story)
      : worker_(worker),
        job_(job),
        story_(story),
        account_(story.accounts[worker.rank()]),
        group_(worker.world()),
        members_(group_.members()),
        heap_(job.shared_memory ? 0 : job.elements) {}

  void Run() {
    if (!FindMemory()) return;
    while (!story_.leave.load()) {
      const absl::Status status = RunOnce();
      if (account_.end.load() != End::kNone) return;
      if (status.ok()) {
        usleep(static_cast<useconds_t>(job_.pause_us));
        continue;
      }
      if (!GoOn(status, ClassifyData())) return;
    }
    account_.end.store(End::kLeft);
  }

 private:
  bool FindMemory() {
    data_ = heap_.data();
    if (!job_.shared_memory) return true;
    absl::StatusOr<Buffer> buffer = worker_.Allocate(job_.elements * sizeof(float));
    if (!buffer.ok()) return Finish(End::kWrong, buffer.status().ToString());
    buffer_.emplace(*std::move(buffer));
    data_ = buffer_->as<float>();
    return true;
  }

  bool Finish(End end, const std::string& why) {
    std::strncpy(account_.why, why.c_str(), sizeof(account_.why) - 1);
    account_.end.store(end);
    return false;
  }

  int Root() const { return static_cast<int>(rounds_ % members_.size()); }
  bool broadcast() const { return job_.operation == Operation::kBroadcast; }
  float OldFactor() const { return static_cast<float>(worker_.rank() + 1); }
  float NewFactor() const {
    if (broadcast()) return static_cast<float>(members_[static_cast<size_t>(Root())] + 1);
    return static_cast<float>(std::accumulate(members_.begin(), members_.end(), 0) +
                              static_cast<int>(members_.size()));
  }
  // The first element that is not `factor` times what it was made of, or their number.
  uint64_t FirstOther(float factor) const {
    for (uint64_t i = 0; i < job_.elements; ++i) {
      if (data_[i] != factor * Element(i, rounds_)) return i;
    }
    return job_.elements;
  }

  absl::Status RunOnce() {
    for (uint64_t i = 0; i < job_.elements; ++i) data_[i] = OldFactor() * Element(i, rounds_);
    Call call = {.data = Array::Of(data_, job_.elements), .timeout = kCallTimeout};
    call.algorithm = job_.algorithm;
    if (broadcast()) {
      call.collective = Collective::kBroadcast;
      call.root = Root();
    }
    absl::Status status = group_.Run(call);
    returned_ns_ = MonotonicClock().NowNs();
    if (!status.ok()) return status;
    if (const uint64_t i = FirstOther(NewFactor()); i < job_.elements) {
      Finish(End::kWrong,
             absl::StrCat("wrong element ", i, " of ", job_.elements, " in round ", rounds_, ": ",
                          data_[i], " instead of ", NewFactor() * Element(i, rounds_)));
      return status;
    }
    ++rounds_;
    account_.progress.store(ProgressOf(losses_, rounds_));
    return status;
  }

  Data ClassifyData() const {
    if (broadcast()) return Data::kUnspecified;
    if (FirstOther(OldFactor()) == job_.elements) return Data::kOld;
    return FirstOther(NewFactor()) == job_.elements ? Data::kNew : Data::kWrong;
  }

  // Writes a failed call down and makes the group of the survivors; false: this worker ends.
  bool GoOn(absl::Status status, Data data) {
    for (;;) {
      const std::optional<int> suspect = GetSuspect(status);
      if (GetBlast(status) == BlastRadius::kJob || suspect == worker_.rank()) {
        return Finish(End::kOut, status.ToString());
      }
      if (!suspect || std::erase(members_, *suspect) == 0 || losses_ == kWorkersMax) {
        return Finish(End::kWrong, absl::StrCat("no member is blamed: ", status.ToString()));
      }
      Loss& loss = account_.loss[losses_];
      loss = {.suspect = *suspect,
              .code = static_cast<int>(status.code()),
              .noticed_ns = returned_ns_,
              .rounds = rounds_,
              .data = data};
      std::strncpy(loss.text, status.ToString().c_str(), sizeof(loss.text) - 1);
      rounds_ = 0;
      account_.losses.store(++losses_);
      account_.progress.store(ProgressOf(losses_, 0));
      absl::StatusOr<Group> survivors = worker_.NewGroup(members_);
      if (survivors.ok()) {
        group_ = *survivors;
        return true;
      }
      status = survivors.status();
      data = Data::kNoCall;
      returned_ns_ = MonotonicClock().NowNs();
    }
  }

  Worker& worker_;
  const JobPlan& job_;
  Story& story_;
  Account& account_;
  Group group_;
  std::vector<int> members_;
  std::vector<float> heap_;
  std::optional<Buffer> buffer_;
  float* data_ = nullptr;
  uint64_t rounds_ = 0;  // of the present group
  uint64_t losses_ = 0;
  int64_t returned_ns_ = 0;  // when the last call did
};

}  // namespace

void RunMember(Worker& worker, const JobPlan& job, Story& story) {
  Member(worker, job, story).Run();
}

}  // namespace syncopate::live
