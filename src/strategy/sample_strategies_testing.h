// Strategies of kinds that are not built yet, which need what those will need: parameters averaged
// in groups that change, by a rule or by a service's word; averages that overlap the next iteration;
// a server with permissions; exchanges with neighbours over byte ranges. For tests, in virtual time
// and live.
#ifndef SYNCOPATE_STRATEGY_SAMPLE_STRATEGIES_TESTING_H_
#define SYNCOPATE_STRATEGY_SAMPLE_STRATEGIES_TESTING_H_

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/random.h"
#include "base/status.h"
#include "strategy/network_versions.h"
#include "strategy/strategy.h"

namespace syncopate::strategy {

// The neighbours that average in a round: shifted by one in every other round. A worker without one
// is alone.
inline std::vector<int> NeighboursOf(int rank, int size, int64_t round, const std::set<int>& gone) {
  const int other = (rank + round) % 2 == 0 ? rank + 1 : rank - 1;
  if (other < 0 || other >= size || gone.contains(other)) return {rank};
  return {std::min(rank, other), std::max(rank, other)};
}

// Steps locally, then averages each tensor's parameters in a group that changes every round, beside
// the backward pass and the next forward. Goes on without workers that are gone.
class GroupAverage : public Strategy {
 public:
  explicit GroupAverage(const WorkerInfo& info)
      : info_(info),
        busy_(static_cast<size_t>(info.tensors), false),
        needed_(static_cast<size_t>(info.tensors), false) {}
  std::string name() const override { return "group-average"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<NewValue>(&event)) versions_.Add(*e);
    if (const auto* e = std::get_if<IterationBegan>(&event)) round_ = e->iteration;
    if (const auto* e = std::get_if<ForwardNeeds>(&event)) {
      needed_[static_cast<size_t>(e->tensor)] = true;
      Release(e->tensor, commands);
    }
    if (const auto* e = std::get_if<GradientReady>(&event)) {
      commands.emplace_back(ApplyUpdate{Update::kStepLocal, e->tensor, e->tensor});
      const std::vector<int> members = NeighboursOf(info_.rank, info_.size, round_, gone_);
      if (members.size() > 1) {
        busy_[static_cast<size_t>(e->tensor)] = true;
        commands.emplace_back(
            StartTransfer{.transfer = Id(e->tensor, members.front()),
                          .content = Content::kParameters,
                          .first = e->tensor,
                          .last = e->tensor,
                          .members = members,
                          .key = {.maker = 1, .number = static_cast<uint64_t>(round_)},
                          .version = versions_.At(round_)});
      }
    }
    if (const auto* e = std::get_if<TransferDone>(&event)) {
      const int tensor = TensorOf(e->transfer);
      commands.emplace_back(ApplyUpdate{Update::kAdopt, tensor, tensor, e->transfer});
      End(tensor, commands);
    }
    // The parameters are as they were: this worker's own.
    if (const auto* e = std::get_if<TransferFailed>(&event)) End(TensorOf(e->transfer), commands);
    if (const auto* e = std::get_if<WorkerLost>(&event)) gone_.insert(e->rank);
    if (const auto* e = std::get_if<WorkerLeft>(&event)) gone_.insert(e->rank);
    draining_ |= std::holds_alternative<Drain>(event);
    if (draining_ && std::find(busy_.begin(), busy_.end(), true) == busy_.end()) {
      draining_ = false;
      commands.emplace_back(Drained{});
    }
  }

 private:
  int TensorOf(int64_t transfer) const { return static_cast<int>(transfer) % info_.tensors; }
  int64_t Id(int tensor, int first_member) const {
    return (round_ * info_.size + first_member) * info_.tensors + tensor;
  }
  void End(int tensor, std::vector<Command>& commands) {
    busy_[static_cast<size_t>(tensor)] = false;
    Release(tensor, commands);
  }
  void Release(int tensor, std::vector<Command>& commands) {
    const size_t t = static_cast<size_t>(tensor);
    if (busy_[t] || !needed_[t]) return;
    needed_[t] = false;
    commands.emplace_back(Proceed{tensor});
  }

  const WorkerInfo info_;
  NetworkVersions versions_;
  int64_t round_ = 0;
  std::set<int> gone_;
  std::vector<bool> busy_, needed_;
  bool draining_ = false;
};

// Groups of `group` ranks (the last may be smaller) that are others in every round, by a seed: the ranks in
// the order of an affine permutation, cut into pieces. Takes no time by `size`.
inline std::vector<int> ShuffledGroupOf(int rank, int size, int group, uint64_t seed,
                                        int64_t round) {
  Random random(seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(round));
  const int64_t n = size;
  const int64_t shift = random.Between(0, n - 1);
  int64_t stride = random.Between(1, n);
  while (std::gcd(stride, n) != 1) ++stride;
  const int64_t place = (rank * stride + shift) % n;
  // The stride's inverse, by Euclid: r = t * stride modulo n holds for both pairs at each step.
  int64_t t = 0, next_t = 1, r = n, next_r = stride % n;
  while (next_r != 0) {
    const int64_t q = r / next_r;
    std::tie(t, next_t) = std::pair(next_t, t - q * next_t);
    std::tie(r, next_r) = std::pair(next_r, r - q * next_r);
  }
  const int64_t inverse = (t % n + n) % n;
  std::vector<int> members;
  for (int64_t i = place / group * group; i < std::min(n, (place / group + 1) * group); ++i) {
    members.push_back(static_cast<int>((i + n - shift) % n * inverse % n));
  }
  std::sort(members.begin(), members.end());
  return members;
}

// Steps locally, then averages all parameters in a group that changes every round, and waits for it.
class ShuffledGroups : public Strategy {
 public:
  ShuffledGroups(const WorkerInfo& info, int group, uint64_t seed)
      : info_(info), group_(group), seed_(seed) {}
  std::string name() const override { return "shuffled-groups"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<NewValue>(&event)) versions_.Add(*e);
    if (const auto* e = std::get_if<IterationBegan>(&event)) round_ = e->iteration;
    if (const auto* e = std::get_if<ForwardNeeds>(&event)) {
      needed_ = e->tensor;
      if (!out_) commands.emplace_back(Proceed{e->tensor});
    }
    if (std::holds_alternative<BackwardEnded>(event)) {
      commands.emplace_back(ApplyUpdate{Update::kStepLocal, 0, info_.tensors - 1});
      const std::vector<int> members =
          ShuffledGroupOf(info_.rank, info_.size, group_, seed_, round_);
      needed_ = -1;
      out_ = members.size() > 1;
      if (out_) {
        commands.emplace_back(StartTransfer{.transfer = round_ * info_.size + members.front(),
                                            .content = Content::kParameters,
                                            .first = 0,
                                            .last = info_.tensors - 1,
                                            .members = members,
                                            .version = versions_.At(round_)});
      }
    }
    if (const auto* e = std::get_if<TransferDone>(&event)) {
      commands.emplace_back(ApplyUpdate{Update::kAdopt, 0, info_.tensors - 1, e->transfer});
      out_ = false;
      if (needed_ >= 0) commands.emplace_back(Proceed{needed_});
    }
    draining_ |= std::holds_alternative<Drain>(event);
    if (draining_ && !out_) {
      draining_ = false;
      commands.emplace_back(Drained{});
    }
  }

 private:
  const WorkerInfo info_;
  const int group_;
  const uint64_t seed_;
  NetworkVersions versions_;
  int64_t round_ = 0;
  int needed_ = -1;  // tensor that the forward pass was told to need
  bool out_ = false, draining_ = false;
};

// Steps locally and asks a service for a group after every backward pass. The average of the whole
// model runs beside the next iteration, and what it changed is added then. One average at a time.
// Tells its successor how far each average moved it. Goes on without workers that are gone. Its state is
// what it counts and has been told.
class AskedGroups : public Strategy {
 public:
  static constexpr char kService[] = "groups";

  explicit AskedGroups(const WorkerInfo& info) : info_(info) {}
  std::string name() const override { return "asked-groups"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<NewValue>(&event)) versions_.Add(*e);
    if (const auto* e = std::get_if<IterationBegan>(&event)) {
      iteration_ = e->iteration;
      samples_ = e->samples;
    }
    if (const auto* e = std::get_if<ForwardNeeds>(&event)) needed_.insert(e->tensor);
    if (std::holds_alternative<BackwardEnded>(event)) {
      commands.emplace_back(ApplyUpdate{Update::kStepLocal, 0, info_.tensors - 1});
      wants_ = true;
      asks_for_ = iteration_;
    }
    if (const auto* e = std::get_if<Answered>(&event))
      On(std::get<GroupGiven>(e->message), commands);
    if (const auto* e = std::get_if<TransferDone>(&event)) {
      commands.emplace_back(ApplyUpdate{.update = Update::kAddChange,
                                        .first = 0,
                                        .last = info_.tensors - 1,
                                        .transfer = e->transfer,
                                        .measure = true});
      ++averages_;
      out_ = false;
    }
    if (std::holds_alternative<TransferFailed>(event)) out_ = false;
    if (const auto* e = std::get_if<Updated>(&event); e && info_.size > 1) {
      commands.emplace_back(
          SendMessage{(info_.rank + 1) % info_.size,
                      Distance{.iteration = iteration_, .squared = e->squared_distance}});
    }
    if (const auto* e = std::get_if<MessageArrived>(&event)) {
      farthest_ = std::max(farthest_, std::get<Distance>(e->message).squared);
    }
    if (wants_ && !out_) {
      wants_ = false;
      out_ = true;
      commands.emplace_back(AskService{
          kService, asks_for_,
          WantGroup{.iteration = asks_for_, .samples = samples_, .version = versions_.newest()}});
    }
    // At most one iteration ahead of the average.
    if (!wants_) {
      for (const int tensor : std::exchange(needed_, {})) commands.emplace_back(Proceed{tensor});
    }
    draining_ |= std::holds_alternative<Drain>(event);
    if (draining_ && !out_ && !wants_) {
      draining_ = false;
      commands.emplace_back(Drained{});
    }
  }

  double farthest() const { return farthest_; }        // that the predecessor told
  int64_t averages() const { return averages_; }       // that it has taken part in
  uint64_t last_group() const { return last_group_; }  // the number of the last group given to it

  std::string State() const override {
    std::string out;
    Append(out, averages_);
    Append(out, last_group_);
    Append(out, farthest_);
    return out;
  }
  absl::Status Resume(absl::string_view state, const std::vector<int>& /*ranks*/) override {
    ByteReader reader(state);
    averages_ = reader.Read<int64_t>();
    last_group_ = reader.Read<uint64_t>();
    farthest_ = reader.Read<double>();
    if (!reader.AtEnd() || averages_ < 0 || !(farthest_ >= 0)) {
      return absl::DataLossError("no averages that groups have had");
    }
    return absl::OkStatus();
  }

 private:
  void On(const GroupGiven& given, std::vector<Command>& commands) {
    commands.emplace_back(SetProgress{.total_samples = given.total_samples, .stop = given.stop});
    if (given.members.size() < 2) {
      out_ = false;
      return;
    }
    last_group_ = given.key.number;
    commands.emplace_back(StartTransfer{.transfer = static_cast<int64_t>(given.key.number),
                                        .content = Content::kParameters,
                                        .first = 0,
                                        .last = info_.tensors - 1,
                                        .members = given.members,
                                        .key = given.key,
                                        .version = given.version,
                                        .keep_sent = true});
  }

  const WorkerInfo info_;
  NetworkVersions versions_;
  int64_t iteration_ = 0;
  int64_t asks_for_ = 0;  // the iteration whose step the next average follows
  uint64_t samples_ = 0;
  std::set<int> needed_;
  bool wants_ = false;  // a group, as soon as the last average is over
  bool out_ = false;    // a request or an average is under way
  bool draining_ = false;
  double farthest_ = 0;
  int64_t averages_ = 0;
  uint64_t last_group_ = 0;
};

// After each backward pass pushes to rank 0, asks a service for leave, then pulls.
class PermittedServer : public Strategy {
 public:
  static constexpr char kService[] = "turns";

  explicit PermittedServer(const WorkerInfo& info) : info_(info) {}
  std::string name() const override { return "permitted-server"; }

  void Step(double now, const Event& event, std::vector<Command>& commands) override {
    if (failed_) return;
    if (const auto* e = std::get_if<IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<ForwardNeeds>(&event)) {
      needed_.insert(e->tensor);
      Release(commands);
    }
    if (std::holds_alternative<BackwardEnded>(event)) {
      waiting_ = true;
      Move(Movement::kPush, Content::kGradients, commands);
    }
    if (const auto* e = std::get_if<TransferDone>(&event)) {
      if (pulling_) {
        commands.emplace_back(ApplyUpdate{Update::kAdopt, 0, info_.tensors - 1, e->transfer});
        waiting_ = pulling_ = false;
        Release(commands);
      } else {
        commands.emplace_back(WakeAt{now + 0.01});
      }
    }
    if (std::holds_alternative<TimePassed>(event)) {
      // The next iteration may have begun, so its number does for no ticket.
      commands.emplace_back(AskService{kService, tickets_++, WantTurn{.iteration = iteration_}});
    }
    if (const auto* e = std::get_if<Answered>(&event)) {
      const auto* given = std::get_if<TurnGiven>(&e->message);
      if (given == nullptr) return End(absl::InternalError("no turn was given"), commands);
      commands.emplace_back(SetBatch{given->samples});
      pulling_ = true;
      Move(Movement::kPull, Content::kParameters, commands);
    }
    draining_ |= std::holds_alternative<Drain>(event);
    if (draining_ && !waiting_) {
      draining_ = false;
      commands.emplace_back(Drained{});
    }
    // The server is what it needs, not the others.
    if (const auto* e = std::get_if<WorkerLost>(&event); e && e->rank == 0) End(e->why, commands);
    if (const auto* e = std::get_if<WorkerLeft>(&event); e && e->rank == 0) {
      End(WithBlast(absl::UnavailableError("the server has left"), BlastRadius::kJob, 0), commands);
    }
  }

 private:
  void Move(Movement movement, Content content, std::vector<Command>& commands) {
    commands.emplace_back(StartTransfer{.transfer = next_++,
                                        .movement = movement,
                                        .content = content,
                                        .first = 0,
                                        .last = info_.tensors - 1,
                                        .target = 0});
  }
  void Release(std::vector<Command>& commands) {
    if (waiting_) return;
    for (const int tensor : std::exchange(needed_, {})) commands.emplace_back(Proceed{tensor});
  }
  void End(const absl::Status& why, std::vector<Command>& commands) {
    failed_ = true;
    commands.emplace_back(Fail{why});
  }

  const WorkerInfo info_;
  int64_t iteration_ = 0, next_ = 0, tickets_ = 0;
  std::set<int> needed_;
  bool waiting_ = false, pulling_ = false, draining_ = false, failed_ = false;
};

// After each backward pass sends its parameters to the next worker of a ring and takes half of those
// of the one before, in two byte ranges of the packed layout. Ends when a worker is gone.
class RingExchange : public Strategy {
 public:
  // `layout_bytes`: of the packed layout.
  RingExchange(const WorkerInfo& info, uint64_t layout_bytes)
      : info_(info), cuts_({0, layout_bytes / 128 * 64, layout_bytes}) {
    if (cuts_[1] == 0) cuts_ = {0, layout_bytes};
  }
  std::string name() const override { return "ring-exchange"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (failed_) return;
    if (const auto* e = std::get_if<NewValue>(&event)) versions_.Add(*e);
    if (const auto* e = std::get_if<IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<ForwardNeeds>(&event)) needed_.insert(e->tensor);
    if (std::holds_alternative<BackwardEnded>(event)) {
      commands.emplace_back(
          ApplyUpdate{.update = Update::kStepLocal, .last = info_.tensors - 1, .rate_factor = 0.5});
      for (size_t i = 0; i + 1 < cuts_.size() && info_.size > 1; ++i) {
        ++left_;
        commands.emplace_back(
            StartTransfer{.transfer = next_++,
                          .movement = Movement::kExchange,
                          .content = Content::kParameters,
                          .begin = cuts_[i],
                          .end = cuts_[i + 1],
                          .version = versions_.At(iteration_),
                          .weight = 0.5,
                          .to = {(info_.rank + 1) % info_.size},
                          .from = {{(info_.rank + info_.size - 1) % info_.size, 0.5}}});
      }
    }
    if (const auto* e = std::get_if<TransferDone>(&event); e && --left_ == 0) {
      commands.emplace_back(ApplyUpdate{Update::kAdopt, 0, info_.tensors - 1, e->transfer});
    }
    if (left_ == 0) {
      for (const int tensor : std::exchange(needed_, {})) commands.emplace_back(Proceed{tensor});
    }
    draining_ |= std::holds_alternative<Drain>(event);
    if (draining_ && left_ == 0) {
      draining_ = false;
      commands.emplace_back(Drained{});
    }
    if (const auto* e = std::get_if<WorkerLost>(&event)) End(e->rank, commands);
    if (const auto* e = std::get_if<WorkerLeft>(&event)) End(e->rank, commands);
  }

 private:
  void End(int rank, std::vector<Command>& commands) {
    failed_ = true;
    commands.emplace_back(
        Fail{WithBlast(absl::UnavailableError(absl::StrCat("the ring lacks worker ", rank)),
                       BlastRadius::kJob, rank)});
  }

  const WorkerInfo info_;
  std::vector<uint64_t> cuts_;
  NetworkVersions versions_;
  int64_t iteration_ = 0, next_ = 0;
  int left_ = 0;
  std::set<int> needed_;
  bool draining_ = false, failed_ = false;
};

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_SAMPLE_STRATEGIES_TESTING_H_
