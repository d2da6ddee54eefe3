#include "train/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/random.h"
#include "train/data/augment.h"

namespace syncopate::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SamplerTest, WorkersTogetherTakeTheBatchOfOne) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const int workers = static_cast<int>(random.Between(1, 8));
    const int64_t samples = random.Between(workers * 4, 300);
    Sampler alone(samples, seed);
    std::vector<Sampler> each(static_cast<size_t>(workers), Sampler(samples, seed));
    for (int iteration = 0; iteration < 40; ++iteration) {
      // Uneven, and other ones each time.
      std::vector<int64_t> sizes;
      for (int w = 0; w < workers; ++w) sizes.push_back(random.Between(w == 0 ? 1 : 0, 4));
      const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
      const auto expected = alone.Next({all}, 0);
      ASSERT_TRUE(expected.ok()) << expected.status();
      std::vector<int64_t> together;
      for (int w = 0; w < workers; ++w) {
        const auto batch = each[static_cast<size_t>(w)].Next(sizes, w);
        ASSERT_TRUE(batch.ok()) << batch.status();
        EXPECT_EQ(batch->epoch, expected->epoch);
        together.insert(together.end(), batch->samples.begin(), batch->samples.end());
      }
      ASSERT_EQ(together, expected->samples) << "seed " << seed << " iteration " << iteration;
    }
  }
}

TEST(SamplerTest, AnEpochTakesEachSampleOnce) {
  Sampler sampler(100, 3);
  std::vector<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> order;
    for (int i = 0; i < 10; ++i) {
      const auto batch = sampler.Next({10}, 0);
      EXPECT_EQ(batch->epoch, epoch);
      order.insert(order.end(), batch->samples.begin(), batch->samples.end());
    }
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 100u);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(Sampler(100, 4).Next({100}, 0)->samples, orders[0]);
}

TEST(SamplerTest, WhatDoesNotFillABatchIsLeftOut) {
  Sampler sampler(10, 1);
  EXPECT_EQ(sampler.BatchesInEpoch(4), 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sampler.Next({4}, 0)->epoch, i / 2);
}

TEST(SamplerTest, GoesOnFromAPosition) {
  Sampler first(50, 9);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(first.Next({3, 5}, 1).ok());
  Sampler second(50, 9);
  ASSERT_TRUE(second.SetPosition(first.position()).ok());
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(first.Next({3, 5}, 1)->samples, second.Next({3, 5}, 1)->samples);
  }
  EXPECT_FALSE(second.SetPosition({0, 51}).ok());
  EXPECT_FALSE(second.SetPosition({-1, 0}).ok());
}

TEST(SamplerTest, RefusesBatchesThatCannotBe) {
  Sampler sampler(10, 1);
  EXPECT_THAT(sampler.Next({6, 5}, 0).status().message(), HasSubstr("worker 1"));
  EXPECT_FALSE(sampler.Next({-1, 5}, 0).ok());
  EXPECT_FALSE(sampler.Next({0, 0}, 0).ok());
  EXPECT_FALSE(sampler.Next({1}, 1).ok());
  EXPECT_FALSE(sampler.Next({INT64_MAX, INT64_MAX}, 0).ok());
  EXPECT_EQ(sampler.position(), SamplerPosition{});
}

TEST(AugmentTest, DependsOnSeedEpochAndSampleOnly) {
  const std::vector<int64_t> shape{1, 8, 8};
  std::vector<uint8_t> image(64), one(64), two(64);
  std::iota(image.begin(), image.end(), 1);
  std::set<std::vector<uint8_t>> seen;
  for (int64_t sample = 0; sample < 100; ++sample) {
    AugmentImage(kFlipAndCrop, shape, 1, 2, sample, image, absl::MakeSpan(one));
    AugmentImage(kFlipAndCrop, shape, 1, 2, sample, image, absl::MakeSpan(two));
    EXPECT_EQ(one, two);
    seen.insert(one);
  }
  EXPECT_GT(seen.size(), 50u);  // of 162
  AugmentImage(kFlipAndCrop, shape, 1, 3, 99, image, absl::MakeSpan(two));
  EXPECT_NE(one, two);
}

TEST(AugmentTest, FlipMirrorsHalfOfTheImages) {
  const std::vector<uint8_t> image{1, 2, 3, 4, 5, 6};
  int flipped = 0;
  for (int64_t sample = 0; sample < 200; ++sample) {
    std::vector<uint8_t> out(6);
    AugmentImage({true, 0}, {{1, 2, 3}}, 1, 0, sample, image, absl::MakeSpan(out));
    if (out == image) continue;
    ++flipped;
    EXPECT_THAT(out, ElementsAre(3, 2, 1, 6, 5, 4));
  }
  EXPECT_GT(flipped, 60);
  EXPECT_LT(flipped, 140);
}

TEST(AugmentTest, NothingAskedNothingChanged) {
  const std::vector<uint8_t> image{1, 2, 3, 4};
  std::vector<uint8_t> out(4);
  AugmentImage({}, {{1, 2, 2}}, 1, 0, 0, image, absl::MakeSpan(out));
  EXPECT_EQ(out, image);
}

}  // namespace
}  // namespace syncopate::train
