// Folds that die: whatever the moment, replaying the journal and folding the rest gives every
// destination the plain result.
#include "engine/fold_journal.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "engine/kernels.h"
#include "gtest/gtest.h"

namespace syncopate::engine {
namespace {

// A journal and some buffers in memory that a forked child shares.
class SharedFold {
 public:
  SharedFold(DataType type, size_t buffers, uint64_t elements, uint64_t origin = 0)
      : type_(type),
        elements_(elements),
        origin_(origin),
        // An odd stride, so that buffers differ in alignment.
        stride_((elements + 3) * SizeOf(type)),
        buffers_(buffers),
        bytes_(sizeof(FoldJournal) + buffers * stride_) {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) abort();
    journal()->state.store(FoldJournal::Pack(origin, 0, 0));
  }
  ~SharedFold() { munmap(memory_, bytes_); }
  SharedFold(const SharedFold&) = delete;
  SharedFold& operator=(const SharedFold&) = delete;

  FoldJournal* journal() { return reinterpret_cast<FoldJournal*>(memory_); }
  std::byte* buffer(size_t b) { return memory_ + sizeof(FoldJournal) + b * stride_; }
  uint64_t elements() const { return elements_; }
  uint64_t origin() const { return origin_; }
  size_t bytes() const { return bytes_; }
  const std::byte* memory() const { return memory_; }
  void CopyFrom(const SharedFold& other) { std::memcpy(memory_, other.memory_, bytes_); }

  std::vector<void*> Destinations(uint64_t skip = 0) {
    std::vector<void*> destinations;
    for (size_t b = 0; b < buffers_; ++b) destinations.push_back(buffer(b) + skip * SizeOf(type_));
    return destinations;
  }

  // Folds all buffers into all from element `skip` on, as round `round` of the operation.
  void Run(FoldOp op, double factor, uint64_t skip = 0, uint64_t round = 0) {
    std::vector<FoldSource> sources;
    for (void* destination : Destinations(skip)) sources.push_back({destination, factor});
    Fold(type_, op, sources, Destinations(skip), elements_ - skip, journal(),
         origin_ + round * elements_ + skip);
  }

  bool SameBuffers(SharedFold& other) {
    for (size_t b = 0; b < buffers_; ++b) {
      if (std::memcmp(buffer(b), other.buffer(b), elements_ * SizeOf(type_)) != 0) return false;
    }
    return true;
  }

 private:
  DataType type_;
  uint64_t elements_;
  uint64_t origin_;
  size_t stride_;
  size_t buffers_;
  size_t bytes_;
  std::byte* memory_;
};

struct StepCase {
  DataType type;
  FoldOp op;
  double factor;
  size_t buffers;
  uint64_t elements;
};

void FillBuffers(SharedFold* fold, size_t buffers, DataType type, Random* random) {
  for (size_t b = 0; b < buffers; ++b) {
    for (size_t i = 0; i < fold->elements() * SizeOf(type); ++i) {
      // A byte below 0x3c never makes a NaN or infinity, and hardly ever a sum that hides a number.
      fold->buffer(b)[i] = static_cast<std::byte>(random->Below(0x3c));
    }
  }
}

// Lets a child fold one machine instruction at a time and after each one that changed memory
// finishes the work on a copy of it: the child dies at every possible moment.
void CheckEveryInstruction(const StepCase& c, Random* random) {
  SharedFold shared(c.type, c.buffers, c.elements, 1000);
  FillBuffers(&shared, c.buffers, c.type, random);
  SharedFold expected(c.type, c.buffers, c.elements, 1000);
  expected.CopyFrom(shared);
  expected.Run(c.op, c.factor);  // also makes Highway choose its target, before the fork

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    raise(SIGSTOP);
    shared.Run(c.op, c.factor);
    _exit(0);
  }
  SharedFold last(c.type, c.buffers, c.elements, 1000);
  SharedFold copy(c.type, c.buffers, c.elements, 1000);
  last.CopyFrom(shared);
  uint64_t states = 0;
  uint64_t resumed_inside = 0;
  int status = 0;
  bool good = true;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    if (std::memcmp(last.memory(), shared.memory(), shared.bytes()) != 0) {
      ++states;
      last.CopyFrom(shared);
      copy.CopyFrom(shared);
      const auto done =
          ReplayJournal(copy.journal(), c.type, copy.Destinations(), c.elements, 1000);
      good = good && done.ok();
      if (!good) break;
      resumed_inside += *done > 0 && *done < c.elements;
      copy.Run(c.op, c.factor, *done);
      good = copy.SameBuffers(expected);
      if (!good) break;
    }
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
  }
  if (!good) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    FAIL() << "after " << states << " changes of memory";
  }
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this machine does not let a process be traced";
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(shared.SameBuffers(expected));
  // The child was seen at work, at least once in every vector of every destination.
  EXPECT_GE(states, c.buffers * c.elements * SizeOf(c.type) / 64);
  EXPECT_GT(resumed_inside, 0u);
}

TEST(FoldJournalTest, SurvivesDeathAfterEveryInstruction) {
  Random random(11);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The sanitizers multiply the instructions; there one case has to be enough.
  CheckEveryInstruction({DataType::kFloat32, FoldOp::kSum, 1, 2, 70}, &random);
  return;
#endif
  for (DataType type : kDataTypes) {
    const uint64_t elements = 430 / SizeOf(type) + 1;  // whole blocks, vectors and a part
    for (FoldOp op : {FoldOp::kSum, FoldOp::kMax}) {
      SCOPED_TRACE(::testing::Message() << Name(type) << " op " << static_cast<int>(op));
      CheckEveryInstruction({type, op, 1, 3, elements}, &random);
      if (HasFatalFailure() || IsSkipped()) return;
    }
  }
  for (size_t buffers : {1, 2, 4, 8, 9}) {
    SCOPED_TRACE(::testing::Message() << buffers << " buffers");
    CheckEveryInstruction({DataType::kFloat32, FoldOp::kSum, buffers == 1 ? 3.0 : 1, buffers, 111},
                          &random);
    CheckEveryInstruction({DataType::kBFloat16, FoldOp::kSum, 0.25, buffers, 111}, &random);
    if (HasFatalFailure()) return;
  }
}

template <typename T>
T Power(size_t base, uint64_t exponent) {
  T power = 1;
  for (uint64_t i = 0; i < exponent; ++i) power *= static_cast<T>(base);
  return power;
}

// A child folds the same buffers over and over, the position going on from round to round, until it
// is killed. After the first round all are equal, so each further one multiplies by their number.
template <typename T>
void CheckKills(DataType type, size_t buffers, uint64_t rounds_max, double scale, int hits_wanted) {
  constexpr uint64_t kElements = 100'003;
  const uint64_t seed = 4711 + buffers;
  SCOPED_TRACE(::testing::Message() << Name(type) << " seed " << seed);
  Random random(seed);
  SharedFold shared(type, buffers, kElements);
  std::vector<T> sums(kElements);
  std::vector<std::vector<T>> start(buffers, std::vector<T>(kElements));
  for (uint64_t i = 0; i < kElements; ++i) {
    for (size_t b = 0; b < buffers; ++b) {
      start[b][i] = static_cast<T>(static_cast<double>(random.Between(1, 4096)) * scale);
      sums[i] += start[b][i];
    }
  }

  int hits = 0;
  int tries = 0;
  for (; hits < hits_wanted && tries < 10 * hits_wanted; ++tries) {
    for (size_t b = 0; b < buffers; ++b) {
      std::memcpy(shared.buffer(b), start[b].data(), kElements * sizeof(T));
    }
    shared.journal()->state.store(0);
    const uint64_t target = random.Below(3 * kElements);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (uint64_t round = 0; round < rounds_max; ++round) shared.Run(FoldOp::kSum, 1, 0, round);
      _exit(0);
    }
    while (FoldJournal::Position(shared.journal()->state.load()) < target) sched_yield();
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);

    const uint64_t position = FoldJournal::Position(shared.journal()->state.load());
    const uint64_t round = std::min(position / kElements, rounds_max - 1);
    hits += WIFSIGNALED(status) && position % kElements != 0;
    const auto done =
        ReplayJournal(shared.journal(), type, shared.Destinations(), kElements, round * kElements);
    ASSERT_TRUE(done.ok()) << done.status();
    shared.Run(FoldOp::kSum, 1, *done, round);
    EXPECT_EQ(shared.journal()->state.load(), FoldJournal::Pack((round + 1) * kElements, 0, 0));
    std::vector<T> expected(kElements);
    // In two steps, each of which a float can hold. Exact for powers of two, wrapping for integers.
    const T step1 = Power<T>(buffers, round / 2);
    const T step2 = Power<T>(buffers, round - round / 2);
    for (uint64_t i = 0; i < kElements; ++i) expected[i] = sums[i] * step1 * step2;
    for (size_t b = 0; b < buffers; ++b) {
      ASSERT_EQ(std::memcmp(shared.buffer(b), expected.data(), kElements * sizeof(T)), 0)
          << "buffer " << b << " after a kill at " << position << ", try " << tries;
    }
  }
  EXPECT_EQ(hits, hits_wanted) << "kills inside a fold, of " << tries;
}

TEST(FoldJournalTest, SurvivesKillsOfFloatSums) {
  CheckKills<float>(DataType::kFloat32, 2, 200, 0x1p-100, 150);
  CheckKills<float>(DataType::kFloat32, 4, 100, 0x1p-100, 150);
}

TEST(FoldJournalTest, SurvivesKillsOfIntegerSums) {
  CheckKills<uint64_t>(DataType::kInt64, 3, 1'000'000, 1, 100);
}

TEST(FoldJournalTest, ReplayMayBeRepeated) {
  FoldJournal journal = {};
  float results[3] = {1, 2, 3};
  std::memcpy(journal.half(1), results, sizeof(results));
  std::vector<float> a(10, 0);
  std::vector<float> b(10, 9);
  const std::vector<void*> destinations = {a.data(), b.data()};
  journal.state.store(FoldJournal::Pack(104, 3, 1));
  auto done = ReplayJournal(&journal, DataType::kFloat32, destinations, 10, 100);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(*done, 7u);
  EXPECT_EQ(a, (std::vector<float>{0, 0, 0, 0, 1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(b, (std::vector<float>{9, 9, 9, 9, 1, 2, 3, 9, 9, 9}));
  b[8] = 5;
  done = ReplayJournal(&journal, DataType::kFloat32, destinations, 10, 100);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(*done, 7u);
  EXPECT_EQ(b, (std::vector<float>{9, 9, 9, 9, 1, 2, 3, 9, 5, 9}));
}

TEST(FoldJournalTest, ReplayRefusesWhatNoFoldWrites) {
  FoldJournal journal = {};
  std::vector<float> data(200, 1);
  const std::vector<void*> destinations = {data.data()};
  for (uint64_t state : {
           FoldJournal::Pack(99, 0, 0),    // before the range
           FoldJournal::Pack(301, 0, 0),   // behind it
           FoldJournal::Pack(298, 3, 0),   // sticks out of it
           FoldJournal::Pack(100, 65, 0),  // more than half a block holds
           ~uint64_t{0},
       }) {
    journal.state.store(state);
    EXPECT_EQ(ReplayJournal(&journal, DataType::kFloat32, destinations, 200, 100).status().code(),
              absl::StatusCode::kDataLoss)
        << state;
    EXPECT_EQ(journal.state.load(), state);
  }
  EXPECT_EQ(data, std::vector<float>(200, 1));
}

}  // namespace
}  // namespace syncopate::engine
