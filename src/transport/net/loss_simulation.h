// Workers that watch each other over a simulated network in virtual time: delays by a seed, cuts in
// one direction, deaths and pauses at any step. For tests.
#ifndef SYNCOPATE_TRANSPORT_NET_LOSS_SIMULATION_H_
#define SYNCOPATE_TRANSPORT_NET_LOSS_SIMULATION_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "transport/net/loss_consensus.h"

namespace syncopate::transport::net {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000 * kMs;

class LossSimulation {
 public:
  struct Options {
    int size = 2;
    uint64_t seed = 1;
    int64_t delay_min_ns = kMs / 10;
    int64_t delay_max_ns = 20 * kMs;
    bool close_lost = true;  // whoever gives a verdict ends its connection to the lost worker
  };

  explicit LossSimulation(const Options& options)
      : options_(options), random_(options.seed), workers_(Index(options.size)) {
    for (int rank = 0; rank < options.size; ++rank) {
      Worker& worker = workers_[Index(rank)];
      worker.links.resize(Index(options.size));
      // Their clocks differ.
      worker.clock_ns = random_.Between(0, kSecond);
      worker.consensus = std::make_unique<LossConsensus>(
          LossConsensusOptions{.rank = rank, .size = options.size}, now_ns_ + worker.clock_ns);
      Flush(rank);
    }
  }

  int64_t now_ns() const { return now_ns_; }
  int64_t steps() const { return steps_; }
  LossConsensus& consensus(int rank) { return *workers_[Index(rank)].consensus; }
  bool alive(int rank) const { return workers_[Index(rank)].alive; }

  // One event; false if none is before `until_ns`.
  bool Step(int64_t until_ns) {
    if (events_.empty() || events_.top().at_ns > until_ns) {
      now_ns_ = std::max(now_ns_, until_ns);
      return false;
    }
    const Event event = events_.top();
    events_.pop();
    now_ns_ = event.at_ns;
    ++steps_;
    Run(event.rank, event.what);
    return true;
  }
  void RunFor(int64_t ns) {
    const int64_t until_ns = now_ns_ + ns;
    while (Step(until_ns)) {
    }
  }

  // Ends it; whoever can still hear it sees its connection end.
  void Kill(int rank) {
    if (!alive(rank)) return;
    workers_[Index(rank)].alive = false;
    for (int other = 0; other < options_.size; ++other) {
      if (other != rank) CloseTo(rank, other, Cause::kDied);
    }
  }
  void Pause(int rank) { workers_[Index(rank)].paused = true; }
  // What came meanwhile, and the ticks that were due, follow in random order of senders.
  void Resume(int rank) {
    Worker& worker = workers_[Index(rank)];
    worker.paused = false;
    std::deque<std::function<void(LossConsensus&, int64_t)>> missed;
    missed.swap(worker.missed);
    for (const auto& what : missed) Run(rank, what);
  }
  void CutOneWay(int from, int to, bool cut = true) {
    workers_[Index(from)].links[Index(to)].cut = cut;
  }
  void Cut(int a, int b, bool cut = true) {
    CutOneWay(a, b, cut);
    CutOneWay(b, a, cut);
  }
  // Something that happens to a worker from outside.
  void Tell(int rank, const std::function<void(LossConsensus&, int64_t)>& what) { Run(rank, what); }

  // Workers that go on.
  std::vector<int> Survivors() {
    std::vector<int> survivors;
    for (int rank = 0; rank < options_.size; ++rank) {
      if (alive(rank) && !workers_[Index(rank)].paused && !consensus(rank).self_lost()) {
        survivors.push_back(rank);
      }
    }
    return survivors;
  }
  // When `rank` gave its verdict on `lost`; -1: it did not.
  int64_t VerdictNs(int rank, int lost) const {
    const auto& times = workers_[Index(rank)].verdict_ns;
    const auto it = times.find(lost);
    return it == times.end() ? -1 : it->second;
  }

  // Empty, or how the survivors contradict each other: different verdicts, or one of them is held
  // for lost by another, which it may not know yet unless the network is `quiet`.
  std::string Contradiction(bool quiet = true) {
    const std::vector<int> survivors = Survivors();
    for (const int a : survivors) {
      for (const int b : survivors) {
        if (consensus(a).IsLost(b) || consensus(b).IsLost(a)) {
          if (!quiet) continue;
          return absl::StrCat(a, " and ", b, " are divided: ", Picture());
        }
        const auto& left = consensus(a).verdicts();
        const auto& right = consensus(b).verdicts();
        const size_t common = std::min(left.size(), right.size());
        if (!std::equal(left.begin(), left.begin() + static_cast<int64_t>(common), right.begin())) {
          return absl::StrCat("verdicts differ: ", Picture());
        }
      }
    }
    return "";
  }
  bool AllEqual() {
    const std::vector<int> survivors = Survivors();
    return std::all_of(survivors.begin(), survivors.end(), [&](int rank) {
      return consensus(rank).verdicts() == consensus(survivors.front()).verdicts();
    });
  }
  std::string Picture() {
    std::string picture =
        absl::StrCat("size ", options_.size, " seed ", options_.seed, " at ", now_ns_ / kMs, " ms");
    for (int rank = 0; rank < options_.size; ++rank) {
      absl::StrAppend(&picture, "\n  ", rank, alive(rank) ? "" : " dead",
                      workers_[Index(rank)].paused ? " paused" : "",
                      consensus(rank).self_lost() ? " self-lost" : "", ":");
      for (const Verdict& verdict : consensus(rank).verdicts()) {
        absl::StrAppend(&picture, " ", verdict.rank, "(", static_cast<int>(verdict.cause), " by ",
                        verdict.by, ")");
      }
    }
    return picture;
  }

 private:
  using Happening = std::function<void(LossConsensus&, int64_t)>;
  struct Event {
    int64_t at_ns = 0;
    uint64_t number = 0;
    int rank = 0;
    Happening what;
    friend bool operator<(const Event& a, const Event& b) {
      return std::pair(a.at_ns, a.number) > std::pair(b.at_ns, b.number);
    }
  };
  struct Link {
    bool cut = false;
    bool closed = false;
    int64_t last_ns = 0;  // bytes come in order
  };
  struct Worker {
    std::unique_ptr<LossConsensus> consensus;
    int64_t clock_ns = 0;
    bool alive = true;
    bool paused = false;
    std::deque<Happening> missed;
    int64_t tick_ns = -1;  // of the tick that is under way
    std::vector<Link> links;
    std::map<int, int64_t> verdict_ns;
  };

  static size_t Index(int rank) { return static_cast<size_t>(rank); }

  void Run(int rank, const Happening& what) {
    Worker& worker = workers_[Index(rank)];
    if (!worker.alive) return;
    if (worker.paused) {
      worker.missed.push_back(what);
      return;
    }
    what(*worker.consensus, now_ns_ + worker.clock_ns);
    Flush(rank);
  }

  void Schedule(int64_t at_ns, int rank, Happening what) {
    events_.push({.at_ns = at_ns, .number = ++events_made_, .rank = rank, .what = std::move(what)});
  }

  // Over the link, in order, unless it is cut or closed.
  void Carry(int from, int to, Happening what) {
    Link& link = workers_[Index(from)].links[Index(to)];
    if (link.cut || link.closed) return;
    link.last_ns = std::max(
        link.last_ns, now_ns_ + random_.Between(options_.delay_min_ns, options_.delay_max_ns));
    Schedule(link.last_ns, to, std::move(what));
  }

  void CloseTo(int from, int to, Cause cause) {
    Carry(from, to, [from, cause](LossConsensus& consensus, int64_t now_ns) {
      consensus.Closed(from, cause, now_ns);
    });
    workers_[Index(from)].links[Index(to)].closed = true;
  }

  void Flush(int rank) {
    Worker& worker = workers_[Index(rank)];
    LossConsensus& consensus = *worker.consensus;
    for (const LossConsensus::Outgoing& outgoing : consensus.TakeMessages()) {
      Carry(rank, outgoing.to,
            [this, rank, bytes = Encode(outgoing.message)](LossConsensus& to, int64_t now_ns) {
              to.Received(rank, *DecodeLossMessage(bytes, options_.size), now_ns);
            });
    }
    while (worker.verdict_ns.size() < consensus.verdicts().size()) {
      const int lost = consensus.verdicts()[worker.verdict_ns.size()].rank;
      worker.verdict_ns[lost] = now_ns_;
      if (options_.close_lost) CloseTo(rank, lost, Cause::kDied);
    }
    const int64_t next_ns = std::max(now_ns_, consensus.NextTickNs() - worker.clock_ns);
    if (consensus.self_lost() || (worker.tick_ns >= 0 && worker.tick_ns <= next_ns)) return;
    worker.tick_ns = next_ns;
    Schedule(next_ns, rank, [this, rank](LossConsensus& ticking, int64_t now_ns) {
      workers_[Index(rank)].tick_ns = -1;
      ticking.Tick(now_ns);
    });
  }

  const Options options_;
  Random random_;
  int64_t now_ns_ = 0;
  int64_t steps_ = 0;
  uint64_t events_made_ = 0;
  std::vector<Worker> workers_;
  std::priority_queue<Event> events_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_LOSS_SIMULATION_H_
