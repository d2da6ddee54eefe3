// The validator against an oracle that shares nothing with it: mutants of correct programs are
// either refused, or give the right numbers in every run of a plain executor that works on real
// memory, in random order, with sends that are buffered or not as a seed decides.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "model/program.h"
#include "model/program_samples.h"
#include "model/program_validator.h"

namespace syncopate {
namespace {

using Numbers = std::vector<uint64_t>;  // additions wrap around, so the order does not matter

enum class Sends { kEither, kSynchronous };

bool StartsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// Runs a program once. Long steps are cut in two halves, so that a step that should have waited
// gets a chance to come in between.
class Executor {
 public:
  Executor(const Program& program, uint64_t seed, Sends sends)
      : program_(program), sends_(sends), random_(seed) {
    for (int worker = 0; worker < program.workers; ++worker) {
      workers_.emplace_back();
      workers_[worker].data.resize(program.elements());
      for (uint64_t& number : workers_[worker].data) number = random_.Next();
      workers_[worker].scratch.resize(program.scratch_elements());
      for (uint64_t& number : workers_[worker].scratch) number = random_.Next();
      workers_[worker].states.resize(program.steps[worker].size());
      std::map<std::pair<int, bool>, int> next;  // (peer, is a send) -> number of the message
      for (size_t i = 0; i < program.steps[worker].size(); ++i) {
        const Step& step = program.steps[worker][i];
        if (step.peer < 0) continue;
        const bool send = step.kind == StepKind::kSend;
        const int number = next[{step.peer, send}]++;
        workers_[worker].states[i].message =
            send ? Message{worker, step.peer, number} : Message{step.peer, worker, number};
      }
      before_.push_back(workers_[worker].data);
    }
  }

  // What is wrong with the outcome, or an empty string.
  std::string Run() {
    while (true) {
      std::vector<std::pair<int, size_t>> movable;
      size_t left = 0;
      for (int worker = 0; worker < program_.workers; ++worker) {
        for (size_t i = 0; i < program_.steps[worker].size(); ++i) {
          if (workers_[worker].states[i].progress != Progress::kDone) ++left;
          if (CanMove(worker, i)) movable.emplace_back(worker, i);
        }
      }
      if (left == 0) return CheckSums();
      if (movable.empty()) return "stuck";
      const auto [worker, i] = movable[random_.Below(movable.size())];
      Move(worker, i);
    }
  }

 private:
  enum class Progress { kNotStarted, kHalf, kWaiting, kDone };
  struct Message {
    int from = -1;
    int to = -1;
    int number = -1;
    auto operator<=>(const Message&) const = default;
  };
  struct State {
    Progress progress = Progress::kNotStarted;
    Message message;
  };
  struct Worker {
    Numbers data;
    Numbers scratch;
    std::vector<State> states;
  };
  struct Flight {
    bool buffered = false;
    Numbers numbers;  // if buffered
    const Step* send = nullptr;
    bool received = false;
  };

  Numbers& Memory(int worker, Space space) {
    return space == Space::kData ? workers_[worker].data : workers_[worker].scratch;
  }

  bool CanMove(int worker, size_t i) {
    const Step& step = program_.steps[worker][i];
    const State& state = workers_[worker].states[i];
    switch (state.progress) {
      case Progress::kNotStarted:
        for (uint32_t earlier : step.after) {
          if (workers_[worker].states[earlier].progress != Progress::kDone) return false;
        }
        return step.peer < 0 || step.kind == StepKind::kSend || flights_.count(state.message) > 0;
      case Progress::kHalf:
        return true;
      case Progress::kWaiting:
        return flights_[state.message].received;
      case Progress::kDone:
        return false;
    }
    return false;
  }

  void Move(int worker, size_t i) {
    const Step& step = program_.steps[worker][i];
    State& state = workers_[worker].states[i];
    const uint64_t size = program_.size(step);
    const uint64_t begin = program_.begin(step.space, step.chunk);
    if (step.kind == StepKind::kSend) {
      if (state.progress == Progress::kWaiting) {
        state.progress = Progress::kDone;
        return;
      }
      Flight& flight = flights_[state.message];
      flight.buffered = sends_ == Sends::kEither && random_.Below(2) == 0;
      flight.send = &step;
      if (flight.buffered) {
        const auto from = Memory(worker, step.space).begin() + static_cast<int64_t>(begin);
        flight.numbers.assign(from, from + static_cast<int64_t>(size));
      }
      state.progress = flight.buffered ? Progress::kDone : Progress::kWaiting;
      return;
    }
    const bool first = state.progress == Progress::kNotStarted;
    const bool whole = first && random_.Below(2) == 0;
    const uint64_t half = size / 2;
    const uint64_t lo = first ? 0 : half;
    const uint64_t hi = first && !whole ? half : size;
    for (uint64_t k = lo; k < hi; ++k) {
      uint64_t number = 0;
      if (step.peer < 0) {
        number = Memory(
            worker, step.source_space)[program_.begin(step.source_space, step.source_chunk) + k];
      } else {
        const Flight& flight = flights_[state.message];
        number =
            flight.buffered
                ? flight.numbers.at(k)
                : Memory(step.peer,
                         flight.send
                             ->space)[program_.begin(flight.send->space, flight.send->chunk) + k];
      }
      uint64_t& target = Memory(worker, step.space)[begin + k];
      const bool adds = step.kind == StepKind::kReceiveReduce || step.kind == StepKind::kReduce;
      target = adds ? target + number : number;
    }
    if (hi == size) {
      if (step.peer >= 0) flights_[state.message].received = true;
      state.progress = Progress::kDone;
    } else {
      state.progress = Progress::kHalf;
    }
  }

  std::string CheckSums() const {
    Numbers sum(program_.elements(), 0);
    for (int worker : program_.active) {
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += before_[worker][k];
    }
    for (int worker = 0; worker < program_.workers; ++worker) {
      const bool active = std::find(program_.active.begin(), program_.active.end(), worker) !=
                          program_.active.end();
      if (workers_[worker].data != (active ? sum : before_[worker])) {
        return "worker " + std::to_string(worker) + " has the wrong numbers";
      }
    }
    return "";
  }

  const Program& program_;
  const Sends sends_;
  Random random_;
  std::vector<Worker> workers_;
  std::vector<Numbers> before_;
  std::map<Message, Flight> flights_;
};

enum class Change { kDrop, kTwice, kPeer, kChunk, kKind, kCount, kLessAfter, kMoreAfter, kSpace };
constexpr uint64_t kChanges = 9;

// One random change to one step.
Program Mutate(Program program, Random& random, Change change) {
  const int worker = static_cast<int>(random.Below(program.workers));
  std::vector<Step>& steps = program.steps[worker];
  if (steps.empty()) return program;
  const size_t i = random.Below(steps.size());
  const auto renumber = [&](size_t from, int by) {  // later steps moved: `after` must follow
    for (Step& step : steps) {
      for (uint32_t& earlier : step.after) {
        if (earlier >= from) earlier = static_cast<uint32_t>(static_cast<int>(earlier) + by);
      }
    }
  };
  switch (change) {
    case Change::kDrop:
      for (Step& step : steps) {
        const auto gone = std::remove(step.after.begin(), step.after.end(), i);
        step.after.erase(gone, step.after.end());
      }
      steps.erase(steps.begin() + static_cast<int64_t>(i));
      renumber(i, -1);
      break;
    case Change::kTwice: {
      const Step copy = steps[i];
      renumber(i + 1, 1);
      steps.insert(steps.begin() + static_cast<int64_t>(i) + 1, copy);
      break;
    }
    case Change::kPeer:
      steps[i].peer = static_cast<int>(random.Below(program.workers));
      break;
    case Change::kChunk:
      steps[i].chunk = static_cast<uint32_t>(random.Below(program.chunks(steps[i].space) + 1));
      break;
    case Change::kKind:
      steps[i].kind = static_cast<StepKind>(random.Below(5));
      if (steps[i].kind >= StepKind::kCopy && steps[i].peer >= 0) {
        steps[i].peer = -1;
        steps[i].source_chunk = static_cast<uint32_t>(random.Below(program.chunks(Space::kData)));
      }
      break;
    case Change::kCount:
      steps[i].count = static_cast<uint32_t>(random.Between(0, 3));
      break;
    case Change::kLessAfter:
      if (!steps[i].after.empty()) {
        steps[i].after.erase(steps[i].after.begin() +
                             static_cast<int64_t>(random.Below(steps[i].after.size())));
      }
      break;
    case Change::kMoreAfter:  // usually harmless, sometimes a deadlock
      if (i > 0) steps[i].after.push_back(static_cast<uint32_t>(random.Below(i)));
      break;
    case Change::kSpace:
      steps[i].space = steps[i].space == Space::kData ? Space::kScratch : Space::kData;
  }
  return program;
}

// Workers 0 and 2 add through scratch; worker 1, inactive, carries everything between them.
Program WithRelay() {
  Program program = samples::Empty(Collective::kAllReduce, 3, 2, 3);
  program.active = {0, 2};
  program.scratch_bounds = {0, 3, 6};
  using namespace samples;  // NOLINT: the makers of steps
  program.steps[0] = {Send(1, 0, {}, 2), Receive(1, 0, {}, 2, Space::kScratch),
                      Reduce(Space::kData, 0, Space::kScratch, 0, {0, 1}),
                      Reduce(Space::kData, 1, Space::kScratch, 1, {0, 1})};
  program.steps[1] = {Receive(0, 0, {}, 2, Space::kScratch), Send(2, 0, {0}, 2, Space::kScratch),
                      Receive(2, 0, {1}, 2, Space::kScratch), Send(0, 0, {2}, 2, Space::kScratch)};
  program.steps[2] = {Copy(Space::kScratch, 0, Space::kData, 0, {}, 2), ReceiveReduce(1, 0, {0}, 2),
                      Send(1, 0, {1}, 2, Space::kScratch)};
  return program;
}

struct Tally {
  int refused = 0;
  int accepted = 0;
  int lost = 0;
  int deadlocks = 0;
};

// A mutant that the validator accepts must be right in each of a few runs, and some refusals must
// be seen in them.
void Compare(const Program& mutant, uint64_t seed, Random& random, Tally* tally) {
  const absl::Status verdict = ProveProgram(mutant).status();
  ++(verdict.ok() ? tally->accepted : tally->refused);
  const std::string why(verdict.message());
  // A refusal for one of these reasons says that the outcome is wrong in every run.
  const bool lost = StartsWith(why, "contribution lost");
  const bool deadlock = StartsWith(why, "deadlock");
  if (!verdict.ok() && !lost && !deadlock) return;
  tally->lost += lost;
  tally->deadlocks += deadlock;
  for (int run = 0; run < 6; ++run) {
    const Sends sends = deadlock ? Sends::kSynchronous : Sends::kEither;
    const std::string fault = Executor(mutant, random.Next(), sends).Run();
    const bool agrees = verdict.ok() ? fault.empty() : deadlock ? fault == "stuck" : !fault.empty();
    ASSERT_TRUE(agrees) << "seed " << seed << ", run " << run << ": validator \"" << why
                        << "\", executor \"" << fault << "\"\n"
                        << ToText(mutant);
  }
}

Tally TryMutants(const Program& original, uint64_t first_seed, int mutants, int changes) {
  Tally tally;
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(mutants); ++seed) {
    Random random(seed);
    Program mutant = original;
    for (int k = 0; k < changes; ++k) {
      const Change change = static_cast<Change>(random.Below(kChanges));
      mutant = Mutate(std::move(mutant), random, change);
    }
    Compare(mutant, seed, random, &tally);
    if (::testing::Test::HasFatalFailure()) break;
  }
  return tally;
}

TEST(MutationTest, TheOracleAgreesWithCorrectPrograms) {
  for (const Program& program :
       {samples::RingAllReduce(4, 2), samples::DirectAllReduce(4, 3), WithRelay()}) {
    ASSERT_TRUE(ProveProgram(program).ok()) << ProveProgram(program).status();
    for (uint64_t seed = 0; seed < 200; ++seed) {
      ASSERT_EQ(Executor(program, seed, Sends::kEither).Run(), "") << "seed " << seed;
    }
  }
}

// The oracle must be able to find what the validator promises to refuse, or it proves nothing.
TEST(MutationTest, TheOracleFindsRacesAndDeadlocks) {
  Program race = samples::DirectAllReduce(4, 3);
  for (Step& step : race.steps[1]) {
    if (step.kind == StepKind::kSend && step.chunk == 1) step.after.clear();
  }
  Program deadlock = samples::RingAllReduce(4, 2);
  for (std::vector<Step>& steps : deadlock.steps) steps[1].after.push_back(0);
  for (const Program& program : {race, deadlock}) {
    EXPECT_FALSE(ProveProgram(program).ok());
    int failed = 0;
    for (uint64_t seed = 0; seed < 200; ++seed)
      failed += !Executor(program, seed, Sends::kEither).Run().empty();
    EXPECT_GT(failed, 0);
    EXPECT_LT(failed, 200);
  }
}

TEST(MutationTest, RingMutantsAreRefusedOrRight) {
  const Tally tally = TryMutants(samples::RingAllReduce(4, 2), 1000, 4000, 1);
  EXPECT_GT(tally.refused, 1000);
  EXPECT_GT(tally.accepted, 100);
  EXPECT_GT(tally.lost, 5);
}

TEST(MutationTest, DirectMutantsAreRefusedOrRight) {
  const Tally tally = TryMutants(samples::DirectAllReduce(4, 3), 100000, 4000, 1);
  EXPECT_GT(tally.refused, 1000);
  EXPECT_GT(tally.accepted, 100);
}

TEST(MutationTest, RelayMutantsAreRefusedOrRight) {
  const Tally tally = TryMutants(WithRelay(), 200000, 4000, 1);
  EXPECT_GT(tally.refused, 1000);
  EXPECT_GT(tally.accepted, 100);
}

TEST(MutationTest, NeedlessDependenciesAreHarmlessOrDeadlocks) {
  Tally tally;
  for (uint64_t seed = 500000; seed < 502000; ++seed) {
    Random random(seed);
    Program mutant = seed % 2 == 0 ? samples::RingAllReduce(4, 2) : samples::DirectAllReduce(3, 2);
    for (uint64_t k = random.Between(1, 16); k > 0; --k) {
      mutant = Mutate(std::move(mutant), random, Change::kMoreAfter);
    }
    Compare(mutant, seed, random, &tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.accepted, 100);
  EXPECT_GT(tally.deadlocks, 100);
}

TEST(MutationTest, DoubleMutantsAreRefusedOrRight) {
  TryMutants(samples::RingAllReduce(3, 2), 300000, 4000, 2);
  TryMutants(WithRelay(), 400000, 4000, 2);
}

}  // namespace
}  // namespace syncopate
