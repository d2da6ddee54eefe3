#include "live/plan.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/random.h"

namespace syncopate::live {
namespace {

constexpr const char* kAlgorithms[] = {"ring",   "double-tree",      "hierarchical",    "circulant",
                                       "direct", "halving-doubling", "parameter-server"};
constexpr const char* kBroadcasts[] = {"binomial", "chain", "scatter-all-gather"};

// Draws the cases of a job one after the other and keeps account of who is left.
class Drawing {
 public:
  Drawing(Random& random, const JobPlan& job) : random_(random), slots_(job.slots) {
    for (int rank = 0; rank < job.workers(); ++rank) alive_.push_back(rank);
  }

  std::vector<Case> Draw(size_t cases_max) {
    std::vector<Case> cases;
    while (cases.size() < cases_max) {
      const auto kind = static_cast<Kind>(random_.Below(kKinds));
      Case each = {.kind = kind, .blows = DrawBlows(kind)};
      const std::vector<int> victims = each.Victims();
      if (each.blows.empty() || !Survivable(each, victims)) {
        // What always can be survived, to the last worker.
        if (alive_.size() < 2) break;
        each = {.kind = Kind::kKill, .blows = {{.victims = {Pick(alive_)}}}};
      }
      each.rounds = static_cast<int>(random_.Between(1, 3));
      each.wait_ms = static_cast<int>(random_.Below(150));
      each.heals_first = random_.Below(2) == 0;
      for (const int victim : each.Victims()) std::erase(alive_, victim);
      cases.push_back(std::move(each));
    }
    return cases;
  }

 private:
  int Pick(const std::vector<int>& among) { return among[random_.Below(among.size())]; }
  std::vector<int> AliveOn(int host) const {
    std::vector<int> ranks;
    for (const int rank : alive_) {
      if (rank / slots_ == host) ranks.push_back(rank);
    }
    return ranks;
  }

  // The survivors must hear more than half of those who may still be there; the certainly dead do
  // not count (docs/losses.md).
  bool Survivable(const Case& each, const std::vector<int>& victims) const {
    const bool certain = std::all_of(each.blows.begin(), each.blows.end(),
                                     [](const Blow& blow) { return blow.fault == Fault::kKill; });
    if (certain) return alive_.size() > victims.size();
    return 2 * (alive_.size() - victims.size()) > alive_.size();
  }

  std::vector<Blow> DrawBlows(Kind kind) {
    switch (kind) {
      case Kind::kKill:
        return {{.fault = Fault::kKill, .victims = {Pick(alive_)}}};
      case Kind::kStop:
        return {{.fault = Fault::kStop, .victims = {Pick(alive_)}}};
      case Kind::kCut:
        return {random_.Below(4) == 0 ? DrawCutBetween(Fault::kCut) : DrawCut(Fault::kCut)};
      case Kind::kOneWayCut: {
        const Fault fault = random_.Below(2) == 0 ? Fault::kCutIn : Fault::kCutOut;
        return {random_.Below(4) == 0 ? DrawCutBetween(fault) : DrawCut(fault)};
      }
      case Kind::kTwoAtOnce:
        break;
    }
    return DrawTwo();
  }

  Blow DrawCut(Fault fault) {
    const int host = Pick(alive_) / slots_;
    return {.fault = fault, .host = host, .from_host = -1, .victims = AliveOn(host)};
  }

  // Of two hosts that cannot talk, and have as many workers each, the higher one is lost.
  Blow DrawCutBetween(Fault fault) {
    const int a = Pick(alive_) / slots_, b = Pick(alive_) / slots_;
    if (a == b || AliveOn(a).size() != AliveOn(b).size()) return DrawCut(fault);
    return {.fault = fault, .host = a, .from_host = b, .victims = AliveOn(std::max(a, b))};
  }

  std::vector<Blow> DrawTwo() {
    if (alive_.size() < 3) return {};
    std::vector<Blow> blows;
    while (blows.size() < 2) {
      const auto fault = static_cast<Fault>(random_.Below(5));
      Blow blow = fault == Fault::kKill || fault == Fault::kStop
                      ? Blow{.fault = fault, .victims = {Pick(alive_)}}
                      : DrawCut(fault);
      if (blows.size() == 1) {
        const Blow& first = blows.front();
        const bool apart = std::none_of(blow.victims.begin(), blow.victims.end(), [&](int victim) {
          return std::find(first.victims.begin(), first.victims.end(), victim) !=
                 first.victims.end();
        });
        if (!apart) continue;
        blow.delay_ms = random_.Below(2) == 0 ? 0 : static_cast<int>(random_.Below(500));
      }
      blows.push_back(std::move(blow));
    }
    return blows;
  }

  Random& random_;
  const int slots_;
  std::vector<int> alive_;
};

}  // namespace

std::vector<int> Case::Victims() const {
  std::vector<int> all;
  for (const Blow& blow : blows) all.insert(all.end(), blow.victims.begin(), blow.victims.end());
  std::sort(all.begin(), all.end());
  return all;
}

JobPlan MakeJob(uint64_t seed, uint64_t number) {
  // Two steps, or the draws of a job would be those of its neighbour, shifted by one.
  Random random(Random(Random(seed).Next() ^ number).Next());
  // Neighbouring numbers differ in these, so that a few jobs have all of them.
  JobPlan job = {.number = number,
                 .wire = number % 2 == 0 ? "tcp" : "ucx",
                 .slots = 1 + static_cast<int>(number / 2 % 2),
                 .operation = static_cast<Operation>(number / 4 % kOperations),
                 .algorithm = {},
                 .cases = {}};
  // 1 KiB to 4 MiB of floats, and any number of them.
  const uint64_t magnitude = uint64_t{256} << random.Below(13);
  job.elements = magnitude - random.Below(magnitude / 2);
  job.shared_memory = random.Below(2) == 0;
  job.pause_us = static_cast<int>(random.Between(2'000, 20'000));
  // Trees are packed by every worker for itself, again after each loss, and here they all share the
  // cores of one machine; so the library's own choice, which considers them, is for 8 workers.
  const bool training = job.operation == Operation::kTraining;
  const bool packs_trees = job.operation == Operation::kForest || random.Below(3) == 0;
  if (training || (packs_trees && job.slots > 1)) job.hosts = kFewHosts;
  if (job.operation == Operation::kForest) {
    job.algorithm = "forest";
  } else if (job.operation == Operation::kAllReduce && !packs_trees) {
    job.algorithm = kAlgorithms[random.Below(std::size(kAlgorithms))];
  } else if (job.operation == Operation::kBroadcast && !packs_trees) {
    job.algorithm = kBroadcasts[number % std::size(kBroadcasts)];
  }
  job.cases = Drawing(random, job).Draw(training ? 1 : kCasesMax);
  return job;
}

const char* Name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kForest:
      return "forest";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kTraining:
      break;
  }
  return "training";
}

const char* Name(Fault fault) {
  switch (fault) {
    case Fault::kKill:
      return "kill";
    case Fault::kStop:
      return "stop";
    case Fault::kCut:
      return "cut";
    case Fault::kCutIn:
      return "cut what comes in at";
    case Fault::kCutOut:
      break;
  }
  return "cut what goes out of";
}

const char* Name(Kind kind) {
  switch (kind) {
    case Kind::kKill:
      return "kill";
    case Kind::kStop:
      return "stop";
    case Kind::kCut:
      return "cut";
    case Kind::kOneWayCut:
      return "one-way cut";
    case Kind::kTwoAtOnce:
      break;
  }
  return "two at once";
}

std::string Describe(const Case& each) {
  std::string text;
  for (const Blow& blow : each.blows) {
    if (!text.empty()) absl::StrAppend(&text, "; ", blow.delay_ms, " ms later ");
    absl::StrAppend(&text, Name(blow.fault));
    if (blow.fault == Fault::kKill || blow.fault == Fault::kStop) {
      absl::StrAppend(&text, " rank ", blow.victims[0]);
      continue;
    }
    absl::StrAppend(&text, " h", blow.host);
    if (blow.from_host >= 0) absl::StrAppend(&text, " from h", blow.from_host);
    absl::StrAppend(&text, " (ranks ", FormatRanks(blow.victims), ")");
  }
  return text;
}

std::string Describe(const JobPlan& job) {
  std::string text =
      absl::StrCat("job ", job.number, ": ", job.wire, ", ", job.hosts, " hosts with ", job.slots,
                   " workers each, ", Name(job.operation));
  if (job.operation == Operation::kAllReduce || job.operation == Operation::kBroadcast) {
    absl::StrAppend(&text, " by ", job.algorithm.empty() ? "the best algorithm" : job.algorithm);
  }
  if (job.operation != Operation::kTraining) {
    absl::StrAppend(&text, " of ", FormatBytes(job.elements * 4),
                    job.shared_memory ? " in shared memory" : "");
  }
  return absl::StrCat(text, ", ", job.cases.size(), " faults");
}

}  // namespace syncopate::live
