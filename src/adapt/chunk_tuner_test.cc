// Several workers of one process that tune the same calls: they try the same sizes at the same call
// and come to the same size.
#include "adapt/chunk_tuner.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "adapt/job_exchange_testing.h"
#include "adapt/value_agreement_testing.h"
#include "gtest/gtest.h"

namespace syncopate::adapt {
namespace {

constexpr int kTunedWorkers = 3;
constexpr uint64_t kProposed = 64 << 10;
constexpr uint64_t kLast =  // the first call after the last before all use what is decided
    ChunkTuner::kCallsBefore + 3 * ChunkTuner::kTrials + ChunkTuner::kCallsFurther + 2;

plan::ProgramKey KeyOf(uint64_t elements) {
  plan::ProgramKey key;
  key.request.collective = Collective::kAllReduce;
  key.request.workers = kTunedWorkers;
  key.request.elements = elements;
  return key;
}

class ChunkTunerTest : public ::testing::Test {
 protected:
  ChunkTunerTest() {
    for (int rank = 0; rank < kTunedWorkers; ++rank) {
      exchanges_.push_back(std::make_unique<BoardExchange>(board_, rank));
      agreements_.push_back(std::make_unique<InstantAgreement>(agreed_, rank));
      tuners_.push_back(std::make_unique<ChunkTuner>(*exchanges_.back(), *agreements_.back()));
    }
  }

  // One call of all workers; the size that they used. `ns`: what each takes with which size.
  uint64_t Call(const std::map<uint64_t, int64_t>& ns, std::optional<int> slow = std::nullopt) {
    uint64_t used = 0;
    ++calls_;
    for (int rank = 0; rank < kTunedWorkers; ++rank) {
      agreements_[static_cast<size_t>(rank)]->Reach(calls_);
      // What is the worker's own does not matter to what all call it.
      plan::ProgramKey key = KeyOf(1 << 20);
      key.self = rank;
      ChunkTuner& tuner = *tuners_[static_cast<size_t>(rank)];
      const uint64_t next = tuner.NextSize(calls_, key, kProposed);
      EXPECT_EQ(tuner.NextSize(calls_, key, kProposed), next) << "asking changes nothing";
      const ChunkTuner::Advice advice = tuner.BeforeCall(calls_, key, kProposed);
      EXPECT_EQ(advice.chunk_bytes, next);
      const uint64_t size = advice.chunk_bytes == 0 ? kProposed : advice.chunk_bytes;
      EXPECT_TRUE(rank == 0 || size == used) << size << " " << used;
      used = size;
      if (advice.took == nullptr) continue;
      ++trials_;
      // One worker for which the small size is a bad one.
      const bool bad = slow == rank && size < kProposed;
      if (ns.at(size) > 0) advice.took->store(bad ? 10 * ns.at(size) : ns.at(size));
    }
    return used;
  }

  Board board_{kTunedWorkers};
  std::vector<std::unique_ptr<BoardExchange>> exchanges_;
  AgreedValues agreed_{kTunedWorkers, ChunkTuner::kCallsFurther};
  std::vector<std::unique_ptr<InstantAgreement>> agreements_;
  std::vector<std::unique_ptr<ChunkTuner>> tuners_;
  int64_t calls_ = 0;
  int trials_ = 0;
};

TEST_F(ChunkTunerTest, TheQuickestSizeStays) {
  const std::map<uint64_t, int64_t> ns = {
      {kProposed / 2, 900}, {kProposed, 1000}, {kProposed * 2, 1100}};
  std::map<uint64_t, int> used;
  for (uint64_t call = 0; call < kLast; ++call) ++used[Call(ns)];
  EXPECT_EQ(used[kProposed / 2], static_cast<int>(ChunkTuner::kTrials));
  EXPECT_EQ(used[kProposed * 2], static_cast<int>(ChunkTuner::kTrials));
  for (int call = 0; call < 10; ++call) EXPECT_EQ(Call(ns), kProposed / 2);
  EXPECT_EQ(trials_, kTunedWorkers * 3 * static_cast<int>(ChunkTuner::kTrials));
}

TEST_F(ChunkTunerTest, TheSlowestWorkerCounts) {
  const std::map<uint64_t, int64_t> ns = {
      {kProposed / 2, 500}, {kProposed, 1000}, {kProposed * 2, 900}};
  for (uint64_t call = 0; call < kLast; ++call) Call(ns, /*slow=*/1);
  EXPECT_EQ(Call(ns), kProposed * 2);
}

TEST_F(ChunkTunerTest, LittleGainIsNotWorthAChange) {
  const std::map<uint64_t, int64_t> ns = {
      {kProposed / 2, 980}, {kProposed, 1000}, {kProposed * 2, 1100}};
  for (uint64_t call = 0; call < kLast; ++call) Call(ns);
  EXPECT_EQ(Call(ns), kProposed);
}

TEST_F(ChunkTunerTest, WithoutMeasurementsTheProposalStays) {
  const std::map<uint64_t, int64_t> ns = {{kProposed / 2, 1}, {kProposed, 0}, {kProposed * 2, 1}};
  for (uint64_t call = 0; call < kLast; ++call) Call(ns);
  EXPECT_EQ(Call(ns), kProposed);
}

TEST_F(ChunkTunerTest, ASizeThatCouldNotBeMeasuredIsOut) {
  const std::map<uint64_t, int64_t> ns = {
      {kProposed / 2, 0}, {kProposed, 1000}, {kProposed * 2, 900}};
  for (uint64_t call = 0; call < kLast; ++call) Call(ns);
  EXPECT_EQ(Call(ns), kProposed * 2);
}

TEST_F(ChunkTunerTest, WithoutTheOthersTheProposalStays) {
  const std::map<uint64_t, int64_t> ns = {
      {kProposed / 2, 500}, {kProposed, 1000}, {kProposed * 2, 1100}};
  board_.Break(0);
  for (uint64_t call = 0; call < kLast; ++call) Call(ns);
  EXPECT_EQ(Call(ns), kProposed);
  EXPECT_EQ(agreed_.proposals(), 0);
}

TEST_F(ChunkTunerTest, WhatIsNoListOfSizesIsRefused) {
  EXPECT_FALSE(ChunkTuner::DigestOfSizes("").ok());
  EXPECT_TRUE(ChunkTuner::DigestOfSizes(std::string(4, '\0')).ok());
  EXPECT_FALSE(ChunkTuner::DigestOfSizes(std::string(5, '\0')).ok());
  EXPECT_FALSE(ChunkTuner::DigestOfSizes(std::string(4, '\xff')).ok());
  std::string one_of_no_size(28, '\0');
  one_of_no_size[0] = 1;
  EXPECT_FALSE(ChunkTuner::DigestOfSizes(one_of_no_size).ok());
}

TEST_F(ChunkTunerTest, SmallCallsAndOtherAlgorithmsAreLeftAlone) {
  for (int call = 0; call < 40; ++call) {
    EXPECT_EQ(tuners_[0]->BeforeCall(call, KeyOf(1000), kProposed).took, nullptr);
    EXPECT_EQ(tuners_[0]->BeforeCall(call, KeyOf(1 << 20), 0).took, nullptr);
    EXPECT_EQ(tuners_[0]->NextSize(call, KeyOf(1000), kProposed), 0u);
  }
}

}  // namespace
}  // namespace syncopate::adapt
