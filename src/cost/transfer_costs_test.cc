#include "cost/transfer_costs.h"

#include <cmath>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::cost {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

const CommunicationCosts kUsual{.a = 1e-3, .b = 5e-9, .gamma = {1, 1.5, 2.4}, .source = "measured"};
const KnownCosts kKnown = KnownCosts::Measured(kUsual, 10);

// Some transfers by `costs`, with times off by up to `noise`.
std::vector<TransferTime> Transfers(const CommunicationCosts& costs,
                                    const std::vector<uint64_t>& sizes, int at_once = 1,
                                    double noise = 0, uint64_t seed = 1, int count = 20) {
  Random random(seed);
  std::vector<TransferTime> times;
  for (int i = 0; i < count; ++i) {
    for (const uint64_t bytes : sizes) {
      const double exact = costs.a + costs.Gamma(at_once) * costs.b * static_cast<double>(bytes);
      times.push_back(
          {bytes, static_cast<double>(at_once), exact * (1 + noise * (2 * random.Unit() - 1))});
    }
  }
  return times;
}

auto Within(double part, double value) {
  return AllOf(Ge(value * (1 - part)), Le(value * (1 + part)));
}

TEST(TransferCostsTest, TwoSizesTellBothWithoutAnythingKnown) {
  const auto reading = ReadTransfers({}, Transfers(kUsual, {20'000, 2'000'000}), 30);
  EXPECT_THAT(reading.known.costs.a, Within(1e-6, kUsual.a));
  EXPECT_THAT(reading.known.costs.b, Within(1e-6, kUsual.b));
  EXPECT_EQ(reading.known.a_told, 30);
  EXPECT_EQ(reading.known.b_told, 30);
  EXPECT_TRUE(reading.known.Complete(1));
  EXPECT_FALSE(reading.known.Complete(2));
  EXPECT_EQ(reading.change, 0);  // nothing was known that could have changed
}

TEST(TransferCostsTest, NoiseMovesLittleAndIsNoChange) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const auto reading =
        ReadTransfers(kKnown, Transfers(kUsual, {20'000, 200'000, 2'000'000}, 1, 0.3, seed), 30);
    EXPECT_THAT(reading.known.costs.a, Within(0.3, kUsual.a));
    EXPECT_THAT(reading.known.costs.b, Within(0.3, kUsual.b));
    EXPECT_LT(reading.change, 0.1);
  }
}

TEST(TransferCostsTest, OutliersDoNotCount) {
  std::vector<TransferTime> times = Transfers(kUsual, {20'000, 200'000, 2'000'000}, 1, 0.05);
  for (size_t i = 0; i < times.size(); i += 3) times[i].seconds *= 20;  // a third of the small ones
  for (size_t i = 1; i < times.size(); i += 7) times[i].seconds *= 50;
  times.push_back({20'000, 1, -1});
  times.push_back({20'000, 1, std::nan("")});
  const auto reading = ReadTransfers(kKnown, times, 30);
  EXPECT_THAT(reading.known.costs.b, Within(0.15, kUsual.b));
  EXPECT_TRUE(Validate(reading.known.costs).ok()) << Validate(reading.known.costs);
}

TEST(TransferCostsTest, FewTransfersTellNothing) {
  std::vector<TransferTime> times = Transfers(kUsual, {20'000, 2'000'000}, 1, 0, 1, 2);
  for (TransferTime& time : times) time.seconds *= 3;
  const auto reading = ReadTransfers(kKnown, times, 30);
  EXPECT_EQ(reading.known.costs, kUsual);
  EXPECT_EQ(reading.change, 0);
}

// One size has one time: whichever of the two takes more of it is corrected, the other one ages.
TEST(TransferCostsTest, OneSizeCorrectsWhatTakesMoreOfItsTime) {
  CommunicationCosts now = kUsual;
  now.b *= 3;
  const auto large = ReadTransfers(kKnown, Transfers(now, {2'000'000}), 30);
  EXPECT_THAT(large.known.costs.b, Within(1e-6, now.b));
  EXPECT_EQ(large.known.b_told, 30);
  EXPECT_EQ(large.known.costs.a, kUsual.a);
  EXPECT_EQ(large.known.a_told, 10);
  now = kUsual;
  now.a *= 3;
  const auto small = ReadTransfers(kKnown, Transfers(now, {2'000}), 30);
  EXPECT_THAT(small.known.costs.a, Within(1e-2, now.a));
  EXPECT_EQ(small.known.a_told, 30);
  EXPECT_EQ(small.known.costs.b, kUsual.b);
  EXPECT_EQ(small.known.b_told, 10);
}

TEST(TransferCostsTest, OneSizeAloneTellsBytesAndNoStartUp) {
  const auto reading = ReadTransfers({}, Transfers(kUsual, {2'000'000}), 30);
  EXPECT_EQ(reading.known.a_told, KnownCosts::kNever);
  EXPECT_THAT(reading.known.costs.b, Within(0.11, kUsual.b));
  EXPECT_FALSE(reading.known.Complete(1));
}

// Beside seconds of bytes a start-up of a millisecond does not show.
TEST(TransferCostsTest, WhatDoesNotShowBesideTheOtherKeepsItsValue) {
  const auto large = ReadTransfers(kKnown, Transfers(kUsual, {4'000'000, 40'000'000}, 1, 0.1), 30);
  EXPECT_EQ(large.known.a_told, 10);
  EXPECT_EQ(large.known.costs.a, kUsual.a);
  EXPECT_EQ(large.known.b_told, 30);
  const auto small = ReadTransfers(kKnown, Transfers(kUsual, {100, 2'000}, 1, 0.1), 30);
  EXPECT_EQ(small.known.b_told, 10);
  EXPECT_EQ(small.known.costs.b, kUsual.b);
  EXPECT_EQ(small.known.a_told, 30);
  // A start-up that takes longer than a whole transfer does now has become shorter.
  CommunicationCosts quick = kUsual;
  quick.a = 1e-5;
  quick.b = 1e-11;
  const auto less = ReadTransfers(kKnown, Transfers(quick, {4'000'000}), 30);
  EXPECT_LE(less.known.costs.a, quick.Seconds(4e6) * (1 + 1e-9));
}

TEST(TransferCostsTest, ThoseInFlightTogetherTellTheirGamma) {
  CommunicationCosts now = kUsual;
  now.gamma = {1, 1.9, 2.4};
  std::vector<TransferTime> times = Transfers(now, {20'000, 2'000'000});
  const std::vector<TransferTime> two = Transfers(now, {2'000'000}, 2);
  times.insert(times.end(), two.begin(), two.end());
  times.push_back({2'000'000, 1.5, 99});  // neither one nor two
  const auto reading = ReadTransfers(kKnown, times, 30);
  EXPECT_THAT(reading.known.costs.gamma[1], Within(1e-3, 1.9));
  EXPECT_EQ(reading.known.gamma_told, (std::vector<double>{10, 30, 10}));
  EXPECT_THAT(reading.change, Within(1e-6, 4.0 / 16));  // 1 ms + 10 ms * gamma
  EXPECT_EQ(reading.known.costs.gamma[2], 2.4);
  // One that was never tried appears, with what is between assumed.
  const auto four = ReadTransfers(kKnown, Transfers(now, {2'000'000}, 4), 30);
  ASSERT_EQ(four.known.costs.gamma.size(), 4u);
  EXPECT_EQ(four.known.gamma_told[3], 30);
}

TEST(TransferCostsTest, GammaThatNobodyTriedIsPlannedForAsAFullNetwork) {
  const auto reading = ReadTransfers({}, Transfers(kUsual, {20'000, 2'000'000}), 30);
  EXPECT_EQ(reading.known.ForPlanning(3).gamma, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(kKnown.ForPlanning(3).gamma, kUsual.gamma);
  EXPECT_TRUE(Validate(reading.known.ForPlanning(16)).ok());
}

TEST(TransferCostsTest, AnotherRateIsAChangeByThatMuch) {
  for (const double factor : {0.5, 0.7, 1.5, 2.0, 6.0}) {
    SCOPED_TRACE(factor);
    CommunicationCosts now = kUsual;
    now.b *= factor;
    const auto reading = ReadTransfers(kKnown, Transfers(now, {8'000'000}, 1, 0.1), 30);
    EXPECT_THAT(reading.change, Within(0.3, std::max(factor, 1 / factor) - 1));
    EXPECT_THAT(reading.known.costs.b, Within(0.1, now.b));
  }
}

TEST(TransferCostsTest, AgesAreTold) {
  KnownCosts known = kKnown;
  known.b_told = 22;
  EXPECT_EQ(known.ToText(22),
            "a 1 ms (12 s old), b 5 ns (new), γ(2) 1.5 (12 s old), γ(3) 2.4 (12 s old)");
  EXPECT_THAT(KnownCosts{}.ToText(22), HasSubstr("assumed"));
}

TEST(TransferCostsTest, WhateverComesTheCostsAreValid) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    KnownCosts known;
    for (int look = 0; look < 4; ++look) {
      std::vector<TransferTime> times;
      for (int i = 0; i < 40; ++i) {
        times.push_back({uint64_t{1} << (random.Next() % 26),
                         1.0 + static_cast<double>(random.Next() % 5),
                         std::pow(10, -6 + 7 * random.Unit())});
        for (int copies = 0; copies < 3; ++copies) times.push_back(times.back());
      }
      known = ReadTransfers(known, times, look).known;
      ASSERT_TRUE(Validate(known.costs).ok()) << Validate(known.costs);
      ASSERT_TRUE(Validate(known.ForPlanning(4)).ok()) << Validate(known.ForPlanning(4));
    }
  }
}

}  // namespace
}  // namespace syncopate::cost
