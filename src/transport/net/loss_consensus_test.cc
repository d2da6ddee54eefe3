// All times are virtual: the promises of DESIGN are tested to the nanosecond.
#include "transport/net/loss_consensus.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "transport/net/loss_simulation.h"

namespace syncopate::transport::net {
namespace {

// Seeds and steps from one run to the next. Sanitizers make a run ten times as slow, and there is one thread: with
// them, fewer runs go through the same code.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kStride = 16;
#else
constexpr int kStride = 1;
#endif
constexpr int64_t kSilence = 3 * kSecond;

std::vector<int> Without(int size, const std::vector<int>& lost) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) ranks.push_back(rank);
  }
  return ranks;
}

// Exactly `lost` are lost, for all others, `within_ns` after `fault_ns`.
void ExpectLost(LossSimulation& simulation, int size, const std::vector<int>& lost,
                int64_t fault_ns, int64_t within_ns) {
  EXPECT_EQ(simulation.Survivors(), Without(size, lost)) << simulation.Picture();
  EXPECT_EQ(simulation.Contradiction(), "");
  for (const int rank : simulation.Survivors()) {
    EXPECT_EQ(simulation.consensus(rank).verdicts().size(), lost.size()) << simulation.Picture();
    for (const int gone : lost) {
      ASSERT_GE(simulation.VerdictNs(rank, gone), 0)
          << rank << " does not name " << gone << ": " << simulation.Picture();
      EXPECT_LE(simulation.VerdictNs(rank, gone) - fault_ns, within_ns)
          << rank << " on " << gone << ": " << simulation.Picture();
    }
  }
}

TEST(LossConsensusTest, EvidenceAtOneWorkerIsKnownByAllAfterTwoDelays) {
  constexpr int64_t kDelay = 10 * kMs;
  for (int size = 2; size <= 9; ++size) {
    for (int dead = 0; dead < size; ++dead) {
      for (const int witness : Without(size, {dead})) {
        LossSimulation simulation({.size = size, .delay_min_ns = kDelay, .delay_max_ns = kDelay});
        simulation.RunFor(kSecond);
        for (const int rank : Without(size, {dead})) simulation.CutOneWay(dead, rank);
        simulation.Kill(dead);  // nobody sees it by itself
        const int64_t fault_ns = simulation.now_ns();
        simulation.Tell(witness, [dead](LossConsensus& consensus, int64_t now_ns) {
          consensus.Suspect(dead, Cause::kDied, now_ns);
        });
        simulation.RunFor(kSecond);
        ExpectLost(simulation, size, {dead}, fault_ns, 2 * kDelay);
        for (const int rank : simulation.Survivors()) {
          EXPECT_EQ(simulation.consensus(rank).verdicts().front(),
                    (Verdict{.rank = dead, .order = 1, .cause = Cause::kDied, .by = witness}));
        }
      }
    }
  }
}

TEST(LossConsensusTest, DeathsAreKnownSoonAlsoSeveralAtOnce) {
  for (int size = 2; size <= 9; ++size) {
    for (int deaths = 1; deaths < size; ++deaths) {
      for (uint64_t seed = 0; seed < 20; seed += kStride) {
        LossSimulation simulation({.size = size, .seed = seed});
        simulation.RunFor(kSecond);
        Random random(seed);
        std::vector<int> dead;
        while (static_cast<int>(dead.size()) < deaths) {
          const int rank = static_cast<int>(random.Below(static_cast<uint64_t>(size)));
          if (!simulation.alive(rank)) continue;
          simulation.Kill(rank);
          dead.push_back(rank);
        }
        const int64_t fault_ns = simulation.now_ns();
        simulation.RunFor(2 * kSecond);
        ExpectLost(simulation, size, dead, fault_ns, 200 * kMs);
      }
    }
  }
}

TEST(LossConsensusTest, WhoLeavesIsNamedAsSuch) {
  LossSimulation simulation({.size = 3});
  simulation.RunFor(kSecond);
  for (const int rank : {0, 2}) {
    simulation.Tell(rank, [](LossConsensus& consensus, int64_t now_ns) {
      consensus.Closed(1, Cause::kLeft, now_ns);
    });
  }
  simulation.RunFor(kSecond);
  ASSERT_EQ(simulation.consensus(0).verdicts().size(), 1u);
  EXPECT_EQ(simulation.consensus(0).verdicts().front().cause, Cause::kLeft);
  EXPECT_EQ(simulation.consensus(2).verdicts(), simulation.consensus(0).verdicts());
}

// Worker 0 has ended the round without us and then fell silent. The others may have ended it with 0
// among the lost, on our word.
TEST(LossConsensusTest, VerdictsOfOneThatWeProposeAreNotTakenOver) {
  LossMessage message;
  message.known = 1;
  message.verdicts = {{.rank = 3, .cause = Cause::kDied, .by = 0, .certain = true}};
  for (const bool proposed : {true, false}) {
    LossConsensus consensus({.rank = 2, .size = 4}, 0);
    consensus.Closed(3, Cause::kDied, 0);
    if (proposed) consensus.Suspect(0, Cause::kDied, 0);
    consensus.Received(0, message, 0);
    EXPECT_EQ(consensus.verdicts().empty(), proposed);
  }
}

// How one worker can be lost without its end being seen.
enum class Fault { kStopped, kCut, kMute, kDeaf };

void Inflict(LossSimulation& simulation, int size, int rank, Fault fault) {
  if (fault == Fault::kStopped) simulation.Pause(rank);
  for (const int other : Without(size, {rank})) {
    if (fault == Fault::kCut || fault == Fault::kMute) simulation.CutOneWay(rank, other);
    if (fault == Fault::kCut || fault == Fault::kDeaf) simulation.CutOneWay(other, rank);
  }
}

TEST(LossConsensusTest, SilentOnesAreNamedAfterTheirTimeAndBeforeFiveSeconds) {
  for (const Fault fault : {Fault::kStopped, Fault::kCut, Fault::kMute, Fault::kDeaf}) {
    for (int size = 3; size <= 9; ++size) {
      for (int rank = 0; rank < size; ++rank) {
        for (uint64_t seed = 0; seed < 15; seed += kStride) {
          LossSimulation simulation(
              {.size = size,
               .seed = seed,
               .delay_max_ns = std::vector<int64_t>{20, 150, 400}[seed % 3] * kMs});
          simulation.RunFor(kSecond + static_cast<int64_t>(seed) * 37 * kMs);
          const int64_t fault_ns = simulation.now_ns();
          Inflict(simulation, size, rank, fault);
          simulation.RunFor(kSilence - 400 * kMs);
          for (const int other : Without(size, {rank})) {
            EXPECT_EQ(simulation.VerdictNs(other, rank), -1) << "too early";
          }
          simulation.RunFor(4 * kSecond);
          SCOPED_TRACE(static_cast<int>(fault));
          ExpectLost(simulation, size, {rank}, fault_ns, 5 * kSecond);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(LossConsensusTest, OfTwoThatCannotTalkTheHigherGoes) {
  for (int size = 2; size <= 9; ++size) {
    for (int a = 0; a < size; ++a) {
      for (int b = a + 1; b < size; ++b) {
        for (uint64_t seed = 0; seed < 12; seed += kStride) {
          LossSimulation simulation({.size = size, .seed = seed});
          simulation.RunFor(kSecond + static_cast<int64_t>(seed) * 41 * kMs);
          const int64_t fault_ns = simulation.now_ns();
          if (seed % 3 != 1) simulation.CutOneWay(a, b);
          if (seed % 3 != 2) simulation.CutOneWay(b, a);
          simulation.RunFor(6 * kSecond);
          // Of two workers, the higher one goes if it cannot hear; all else goes by rank.
          ExpectLost(simulation, size, {b}, fault_ns, 5 * kSecond);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(LossConsensusTest, TheMajorityGoesOn) {
  for (int size = 2; size <= 9; ++size) {
    for (uint64_t side = 1; side + 1 < (uint64_t{1} << size); side += size < 7 ? 1 : 5) {
      for (int direction = 0; direction < 3; ++direction) {
        LossSimulation simulation({.size = size, .seed = side});
        simulation.RunFor(kSecond);
        const int64_t fault_ns = simulation.now_ns();
        std::vector<int> in, out;
        for (int rank = 0; rank < size; ++rank) ((side >> rank) & 1 ? in : out).push_back(rank);
        for (const int a : in) {
          for (const int b : out) {
            if (direction != 1) simulation.CutOneWay(a, b);
            if (direction != 2) simulation.CutOneWay(b, a);
          }
        }
        simulation.RunFor(8 * kSecond);
        const bool in_lost =
            in.size() < out.size() || (in.size() == out.size() && out.front() == 0);
        SCOPED_TRACE(direction);
        ExpectLost(simulation, size, in_lost ? in : out, fault_ns, 5 * kSecond);
        for (const int rank : in_lost ? in : out) {
          EXPECT_TRUE(simulation.consensus(rank).self_lost());
          EXPECT_NE(simulation.consensus(rank).self_lost_reason(), "");
        }
        if (HasFailure()) return;
      }
    }
  }
}

TEST(LossConsensusTest, WhoWakesAfterItsVerdictLearnsIt) {
  for (const bool close_lost : {true, false}) {
    for (int size = 3; size <= 9; ++size) {
      for (int rank = 0; rank < size; ++rank) {
        for (uint64_t seed = 0; seed < 10; seed += kStride) {
          LossSimulation simulation({.size = size, .seed = seed, .close_lost = close_lost});
          simulation.RunFor(kSecond);
          const int64_t fault_ns = simulation.now_ns();
          simulation.Pause(rank);
          simulation.RunFor(6 * kSecond);
          simulation.Resume(rank);
          simulation.RunFor(kSecond);
          EXPECT_TRUE(simulation.consensus(rank).self_lost());
          EXPECT_TRUE(simulation.consensus(rank).verdicts().empty());
          ExpectLost(simulation, size, {rank}, fault_ns, 5 * kSecond);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(LossConsensusTest, WhoWakesAndFindsAllConnectionsEndedIsLost) {
  LossConsensus consensus({.rank = 1, .size = 4}, 0);
  for (int64_t ns = 0; ns < kSecond; ns += 100 * kMs) consensus.Tick(ns);
  for (const int other : {0, 2, 3}) consensus.Closed(other, Cause::kDied, 7 * kSecond);
  EXPECT_TRUE(consensus.self_lost());
  EXPECT_TRUE(consensus.verdicts().empty());
}

TEST(LossConsensusTest, ThePauseOfOneIsNotBlamedOnOthers) {
  for (int size = 2; size <= 9; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      LossSimulation simulation({.size = size, .seed = 5});
      simulation.RunFor(kSecond);
      for (int i = 0; i < 20; ++i) {
        simulation.Pause(rank);
        simulation.RunFor(2700 * kMs);
        simulation.Resume(rank);
        simulation.RunFor(kSecond);
      }
      ExpectLost(simulation, size, {}, 0, 0);
    }
  }
}

// The whole machine stands still for longer than anybody may be silent.
TEST(LossConsensusTest, APauseOfAllHarmsNobody) {
  for (int size = 2; size <= 9; ++size) {
    for (uint64_t seed = 0; seed < 50; seed += kStride) {
      LossSimulation simulation({.size = size, .seed = seed});
      simulation.RunFor(kSecond);
      Random random(seed);
      for (int rank = 0; rank < size; ++rank) {
        simulation.Pause(rank);
        simulation.RunFor(random.Between(0, 20 * kMs));
      }
      simulation.RunFor(20 * kSecond);
      for (int rank = 0; rank < size; ++rank) {
        simulation.Resume(rank);
        simulation.RunFor(random.Between(0, 100 * kMs));
      }
      simulation.RunFor(10 * kSecond);
      ExpectLost(simulation, size, {}, 0, 0);
    }
  }
}

TEST(LossConsensusTest, NobodyIsAccusedInQuietTimes) {
  for (int size = 2; size <= 9; ++size) {
    for (uint64_t seed = 0; seed < 4; seed += kStride) {
      LossSimulation simulation({.size = size, .seed = seed, .delay_max_ns = kSecond});
      Random random(seed);
      for (int i = 0; i < 100; ++i) {
        const int rank = static_cast<int>(random.Below(static_cast<uint64_t>(size)));
        simulation.Pause(rank);
        simulation.RunFor(random.Between(0, 1700 * kMs));
        simulation.Resume(rank);
        simulation.RunFor(random.Between(0, 3 * kSecond));
      }
      ExpectLost(simulation, size, {}, 0, 0);
    }
  }
}

TEST(LossConsensusTest, TheCallersWishIsDoneAndTwoWishesEndInOne) {
  for (int size = 2; size <= 9; ++size) {
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < size; ++b) {
        if (a == b) continue;
        for (const bool both : {false, true}) {
          LossSimulation simulation({.size = size, .seed = 3});
          simulation.RunFor(kSecond);
          const int64_t fault_ns = simulation.now_ns();
          const auto expel = [](int whom) {
            return
                [whom](LossConsensus& consensus, int64_t now_ns) { consensus.Expel(whom, now_ns); };
          };
          simulation.Tell(a, expel(b));
          if (both) simulation.Tell(b, expel(a));
          simulation.RunFor(3 * kSecond);
          const int lost = both ? std::max(a, b) : b;
          ExpectLost(simulation, size, {lost}, fault_ns, 2 * kSecond);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(LossConsensusTest, TheWishOfAllIsGranted) {
  LossSimulation simulation({.size = 5});
  simulation.RunFor(kSecond);
  const int64_t fault_ns = simulation.now_ns();
  for (const int rank : {1, 2, 3, 4}) {
    simulation.Tell(rank,
                    [](LossConsensus& consensus, int64_t now_ns) { consensus.Expel(0, now_ns); });
  }
  simulation.RunFor(3 * kSecond);
  ExpectLost(simulation, 5, {0}, fault_ns, 2 * kSecond);
  EXPECT_EQ(simulation.consensus(1).verdicts().front().cause, Cause::kStuck);
}

// A first fault, and at each step of what follows a second one.
TEST(LossConsensusTest, ASecondFaultAtAnyStepDoesNotDivideTheRest) {
  int64_t runs = 0;
  for (int size = 3; size <= 5; ++size) {
    for (int first = 0; first < size; ++first) {
      for (int second = 0; second < size; ++second) {
        for (int kind = 0; kind < 6; ++kind) {
          if (second == first) continue;
          // The first one is only silent: the interesting part is later.
          const bool slow = kind >= 3;
          for (int64_t step = 0;; step += kStride) {
            LossSimulation simulation({.size = size, .seed = 11});
            simulation.RunFor(kSecond);
            if (slow) {
              simulation.Pause(first);
              simulation.RunFor(2900 * kMs);
            } else {
              simulation.Kill(first);
            }
            const int64_t until_ns = simulation.now_ns() + (slow ? 700 : 120) * kMs;
            int64_t taken = 0;
            while (taken < step && simulation.Step(until_ns)) ++taken;
            if (taken < step) break;
            const int64_t fault_ns = simulation.now_ns();
            switch (kind % 3) {
              case 0:
                simulation.Kill(second);
                break;
              case 1:
                simulation.Pause(second);
                break;
              case 2:
                Inflict(simulation, size, second, Fault::kCut);
                break;
            }
            simulation.RunFor(12 * kSecond);
            ++runs;
            SCOPED_TRACE(
                absl::StrCat("first ", first, " second ", second, " kind ", kind, " step ", step));
            ASSERT_EQ(simulation.Contradiction(), "");
            ASSERT_TRUE(simulation.AllEqual()) << simulation.Picture();
            // A death does not count against the rest; silence does.
            const bool dead = kind % 3 == 0;
            const int electors = size - (slow ? 0 : 1) - (dead ? 1 : 0);
            const int rest = size - 2;
            if (2 * rest > electors)
              ExpectLost(simulation, size, {first, second}, fault_ns, 7 * kSecond);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(runs, 1000 / kStride);
}

// Anything at any time: what stands must never contradict itself, and who can go on goes on.
TEST(LossConsensusTest, NoSeedDividesTheSurvivors) {
  for (uint64_t seed = 0; seed < 4000; seed += kStride) {
    Random random(seed);
    const int size = static_cast<int>(random.Between(2, 9));
    LossSimulation simulation({.size = size,
                               .seed = seed,
                               .delay_max_ns = random.Between(1, 400) * kMs,
                               .close_lost = random.Below(2) == 0});
    const auto anybody = [&] {
      return static_cast<int>(random.Below(static_cast<uint64_t>(size)));
    };
    const int faults = static_cast<int>(random.Between(1, 6));
    std::vector<int> paused;
    for (int i = 0; i < faults; ++i) {
      simulation.RunFor(random.Between(0, random.Below(2) == 0 ? 100 * kMs : 4 * kSecond));
      const int rank = anybody();
      const int other = anybody();
      switch (random.Below(7)) {
        case 0:
        case 1:
          simulation.Kill(rank);
          break;
        case 2:
          simulation.Pause(rank);
          paused.push_back(rank);
          break;
        case 3:
          Inflict(simulation, size, rank, static_cast<Fault>(random.Between(1, 3)));
          break;
        case 4:
          simulation.Cut(rank, other);
          break;
        case 5:
          simulation.CutOneWay(rank, other);
          break;
        case 6:
          if (!paused.empty()) {
            simulation.Resume(paused.back());
            paused.pop_back();
          }
          break;
      }
      ASSERT_EQ(simulation.Contradiction(/*quiet=*/false), "");
    }
    simulation.RunFor(15 * kSecond);
    for (const int rank : paused) simulation.Resume(rank);
    simulation.RunFor(15 * kSecond);
    ASSERT_EQ(simulation.Contradiction(), "");
    ASSERT_TRUE(simulation.AllEqual()) << simulation.Picture();
    for (const int survivor : simulation.Survivors()) {
      for (int rank = 0; rank < size; ++rank) {
        ASSERT_TRUE(simulation.alive(rank) || simulation.consensus(survivor).IsLost(rank))
            << simulation.Picture();
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::transport::net
