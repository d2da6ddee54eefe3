#include "plan/groups/ds_sync.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "plan/groups/consensus.h"

namespace syncopate::plan {
namespace {

// Shifts of places against each other that are tried.
constexpr int64_t kShiftMax = 2;

// Who takes which turn in round t.
struct TurnRules {
  // The r-th place below another is as many turns ahead as it has gone through all of its members,
  // times r + shift, so that places of equal sizes do not always send up the same pairs. Negative:
  // none is ahead.
  int64_t shift = -1;
  // Partners of slow members at the top change every `hold` rounds, and by one more every `skip`
  // (0: never).
  int64_t hold = 1;
  int64_t skip = 0;
  // Places of this height and below send nobody up, and all of their members average. 0: none.
  int whole_height = 0;
};

// 0 for a worker, 1 for a place of workers only.
int HeightOf(const Place& place) {
  int height = 0;
  for (const Place& child : place.children) height = std::max(height, HeightOf(child));
  return place.is_worker() ? 0 : height + 1;
}

// Emits the groups of one round.
class RoundMaker {
 public:
  RoundMaker(int64_t t, const TurnRules& turns) : t_(t), turns_(turns) {}

  Pattern::Round Make(const Place& root) {
    GoUp(root, 0, true);
    Sort(round_);
    return std::move(round_);
  }

 private:
  // The worker that `place` sends up, if there is one; the groups of the others are made.
  std::optional<int> GoUp(const Place& place, int64_t number, bool top);
  // Pairs of slow members with partners from `regular`, taken from `first` on. The other regular
  // ones are one group, the other slow ones are paired in the order of a tournament.
  void Divide(const std::vector<int>& regular, const std::vector<int>& slow, size_t first,
              int64_t turn);
  void PlayTournament(const std::vector<int>& players, int64_t turn);
  const int64_t t_;
  const TurnRules& turns_;
  Pattern::Round round_;
};

int64_t Size(const std::vector<int>& members) { return static_cast<int64_t>(members.size()); }

size_t Modulo(int64_t turn, size_t count) {
  return static_cast<size_t>(turn % static_cast<int64_t>(count));
}

std::optional<int> RoundMaker::GoUp(const Place& place, int64_t number, bool top) {
  if (place.is_worker()) return place.worker;
  std::vector<int> regular, slow, all;
  for (size_t i = 0; i < place.children.size(); ++i) {
    const Place& child = place.children[i];
    const std::optional<int> member = GoUp(child, static_cast<int64_t>(i), false);
    if (!member) continue;
    (child.slow ? slow : regular).push_back(*member);
    all.push_back(*member);
  }
  if (all.empty()) return std::nullopt;
  if (turns_.whole_height > 0 && HeightOf(place) <= turns_.whole_height) {
    std::optional<int> up;
    if (!top && HeightOf(place) < turns_.whole_height) {
      // Somebody of it has to meet the others of the place above.
      up = regular.empty() ? all.front() : regular.front();
      std::erase(all, *up);
    }
    round_.push_back(std::move(all));
    return up;
  }
  if (top) {
    int64_t skips = turns_.skip > 0 ? t_ / turns_.skip : 0;
    if (turns_.shift > 0 && !regular.empty()) skips += t_ / (Size(regular) * turns_.shift);
    if (place.whole) {
      round_.push_back(all);
    } else {
      Divide(regular, slow, regular.empty() ? 0 : Modulo(t_ / turns_.hold + skips, regular.size()),
             t_);
    }
    return std::nullopt;
  }
  if (regular.empty()) {
    const bool all_slow = std::all_of(place.children.begin(), place.children.end(),
                                      [](const Place& child) { return child.slow; });
    if (!all_slow) {  // those that are not have sent nobody in this round
      Divide(regular, slow, 0, t_);
      return std::nullopt;
    }
    regular.swap(slow);  // none is slower than the others
  }
  const bool alternates = regular.size() == 1 && !slow.empty();
  // A single regular member takes every second turn to stay with the slow ones.
  const int64_t round = alternates ? t_ / 2 : t_;
  if (alternates && t_ % 2 == 0) {
    Divide(regular, slow, 0, round);
    return std::nullopt;
  }
  const int64_t size = Size(regular);
  const int64_t turn = round + (turns_.shift >= 0 ? (number + turns_.shift) * (round / size) : 0);
  const size_t chosen = Modulo(turn, regular.size());
  const int up = regular[chosen];
  regular.erase(regular.begin() + static_cast<int64_t>(chosen));
  if (place.whole) {
    regular.insert(regular.end(), slow.begin(), slow.end());
    round_.push_back(regular);
  } else {
    Divide(regular, slow, regular.empty() ? 0 : chosen % regular.size(), round);
  }
  return up;
}

void RoundMaker::Divide(const std::vector<int>& regular, const std::vector<int>& slow, size_t first,
                        int64_t turn) {
  const size_t pairs = std::min(regular.size(), slow.size());
  const int64_t ahead = turns_.shift >= 0 && !slow.empty() ? turn / Size(slow) : 0;
  const size_t from = pairs > 0 && pairs < slow.size() ? Modulo(turn + ahead, slow.size()) : 0;
  for (size_t i = 0; i < pairs; ++i) {
    round_.push_back({slow[(from + i) % slow.size()], regular[(first + i) % regular.size()]});
  }
  Pattern::Group hub;
  for (size_t i = pairs; i < regular.size(); ++i) {
    hub.push_back(regular[(first + i) % regular.size()]);
  }
  round_.push_back(std::move(hub));
  std::vector<int> left;
  for (size_t i = pairs; i < slow.size(); ++i) left.push_back(slow[(from + i) % slow.size()]);
  PlayTournament(left, pairs > 0 ? turn / Size(slow) : turn);
}

void RoundMaker::PlayTournament(const std::vector<int>& players, int64_t turn) {
  if (players.empty()) return;
  if (players.size() == 1) {
    round_.push_back(players);
    return;
  }
  // The circle method: one stands still and the others move round it. Where the number is odd, the
  // one that stands still is nobody.
  const size_t circle = players.size() - (players.size() % 2 == 0 ? 1 : 0);
  const size_t moved = Modulo(turn, circle);
  const auto at = [&](size_t i) { return players[(i + moved) % circle]; };
  round_.push_back({at(0)});
  if (players.size() % 2 == 0) round_.back().push_back(players.back());
  for (size_t i = 1; i <= circle / 2; ++i) round_.push_back({at(i), at(circle - i)});
}

int64_t LcmOrMore(int64_t a, int64_t b, int64_t max) {
  const int64_t lcm = a / std::gcd(a, b) * b;
  return std::min(lcm, max);
}

// What the sizes of places ask of the period.
struct Sizes {
  int64_t lcm = 1;          // of the turns of all places below the top; at most `max`
  int64_t largest = 1;      // place below the top
  bool alternates = false;  // some place sends somebody up in every second round only
  int height = 0;
  size_t regular_on_top = 0;
  size_t slow_on_top = 0;
};

// The rounds after which a place's turns repeat.
int64_t TurnsOf(size_t regular, size_t slow, bool whole) {
  if (regular == 0) std::swap(regular, slow);
  const int64_t r = static_cast<int64_t>(regular), s = static_cast<int64_t>(slow);
  if (r == 1 && s > 0) return 2 * (s > 1 ? s * std::max<int64_t>(1, s - 1) : 1);
  const int64_t partners = r - 1;
  if (whole || s <= partners) return r;
  const int64_t left = s - partners;
  return std::lcm(r, s * std::max<int64_t>(1, left - (left % 2 == 0 ? 1 : 0)));
}

void MeasurePlaces(const Place& place, bool top, int64_t max, Sizes& sizes) {
  if (place.is_worker()) return;
  size_t slow = 0;
  for (const Place& child : place.children) {
    MeasurePlaces(child, false, max, sizes);
    slow += child.slow ? 1 : 0;
  }
  const size_t regular = place.children.size() - slow;
  if (top) {
    sizes.regular_on_top = place.whole ? regular + slow : regular;
    sizes.slow_on_top = place.whole ? 0 : slow;
    return;
  }
  sizes.largest = std::max(sizes.largest, static_cast<int64_t>(place.children.size()));
  sizes.alternates = sizes.alternates || (regular == 1 && slow > 0);
  sizes.lcm = LcmOrMore(sizes.lcm, TurnsOf(regular, slow, place.whole), max);
}

// The rounds after which the partners at the top repeat.
int64_t PartnerRounds(const Sizes& sizes, const TurnRules& turns) {
  const int64_t r = static_cast<int64_t>(sizes.regular_on_top);
  const int64_t s = static_cast<int64_t>(sizes.slow_on_top);
  if (s == 0) return 1;
  const int64_t left = std::max<int64_t>(0, s - r);
  const int64_t tournament = std::max<int64_t>(1, left - (left % 2 == 0 ? 1 : 0));
  if (r == 0) return tournament;
  const int64_t skips = turns.skip > 0 ? turns.skip * r : 1;
  const int64_t partners = std::lcm(turns.hold * r, skips);
  return left == 0 ? partners : std::lcm(partners, s * tournament);
}

Pattern MakePattern(const Place& root, int workers, int64_t period, const TurnRules& turns) {
  Pattern pattern{kDsSync, workers, {}};
  for (int64_t t = 0; t < period; ++t) pattern.rounds.push_back(RoundMaker(t, turns).Make(root));
  return pattern;
}

// With the shortest period that joins all workers: that of the turns; else with places shifted
// against each other, over as many periods as it takes; else with rounds in which places stay
// whole.
Pattern Connect(const Place& root, int workers, const Sizes& sizes, int64_t max, TurnRules turns) {
  int64_t period = LcmOrMore(sizes.lcm, PartnerRounds(sizes, turns), max);
  if (turns.shift >= 0) period = std::min(2 * period, max);
  Pattern pattern = MakePattern(root, workers, period, turns);
  if (CheckConnected(pattern).ok()) return pattern;
  for (int64_t longer = period; longer <= max; longer += period) {
    // Where a place takes every second turn only, the first one has to be shifted too.
    for (turns.shift = 0; turns.shift <= kShiftMax; ++turns.shift) {
      Pattern shifted = MakePattern(root, workers, longer, turns);
      if (CheckConnected(shifted).ok()) return shifted;
    }
  }
  pattern.rounds.resize(
      static_cast<size_t>(std::min(period, std::max<int64_t>(1, max - sizes.height))));
  for (int height = 1; height <= sizes.height; ++height) {
    TurnRules whole = turns;
    whole.whole_height = height;
    pattern.rounds.push_back(RoundMaker(0, whole).Make(root));
    if (CheckConnected(pattern).ok()) break;
  }
  return pattern;
}

absl::Status CheckWorkers(const Place& place, std::vector<bool>& seen) {
  if (place.is_worker()) {
    const size_t worker = static_cast<size_t>(place.worker);
    if (worker >= seen.size() || seen[worker]) {
      return absl::InvalidArgumentError(
          absl::StrCat("place \"", place.name, "\": worker ", worker,
                       worker >= seen.size() ? " is missing below" : " stands at two places"));
    }
    seen[worker] = true;
  }
  for (const Place& child : place.children) {
    if (absl::Status status = CheckWorkers(child, seen); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DsSyncPlan> PlanDsSync(const Place& whole) {
  const int workers = WorkersIn(whole);
  if (workers < 1 || workers > limits::kWorkersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", workers, " workers, not 1 to ", limits::kWorkersMax));
  }
  std::vector<bool> seen(static_cast<size_t>(workers), false);
  if (absl::Status status = CheckWorkers(whole, seen); !status.ok()) return status;
  const Place root = WithoutSingles(whole);
  if (root.is_worker()) return DsSyncPlan{Pattern{kDsSync, 1, {{{0}}}}, ""};

  Sizes sizes;
  MeasurePlaces(root, true, limits::kPatternRoundsMax, sizes);
  sizes.height = HeightOf(root);
  const int64_t max = std::max<int64_t>(kDsSyncPeriodMax, sizes.largest);
  sizes.lcm = std::min(sizes.lcm, max);

  struct Choice {
    TurnRules turns;
    std::string name;
  };
  std::vector<Choice> choices = {{TurnRules(), ""}};
  if (sizes.slow_on_top > 0 && sizes.regular_on_top > 1) {
    const int64_t g = sizes.lcm;
    choices[0].name = "partners change every round";
    TurnRules held, skipping;
    held.hold = g;
    skipping.skip = g;
    if (g > 1) {
      choices.push_back({held, absl::StrCat("partners are held ", g, " rounds")});
      choices.push_back(
          {skipping, absl::StrCat("partners change every round, by one more after ", g)});
    }
  }
  // Else others of an even size would meet it with every second of their members only.
  for (int64_t shift = 0; sizes.alternates && shift <= kShiftMax; ++shift) {
    TurnRules shifted;
    shifted.shift = shift;
    choices.push_back({shifted, absl::StrCat("places shifted by ", shift)});
  }
  DsSyncPlan best;
  double lambda = 0;
  for (const Choice& choice : choices) {
    Pattern pattern = Connect(root, workers, sizes, max, choice.turns);
    if (choices.size() == 1) return DsSyncPlan{std::move(pattern), choice.name};
    const double its = LambdaOf(pattern);
    if (best.pattern.workers == 0 || its < lambda - 1e-9) {
      lambda = its;
      best = {std::move(pattern), choice.name};
    }
  }
  return best;
}

}  // namespace syncopate::plan
