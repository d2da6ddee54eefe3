#include "pattern.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace syncopate::peers {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;

// What a right implementation of `request` makes of the ranks' buffers, for float32 and moves.
void Execute(const tools::bench::RunRequest& request, Buffers& buffers) {
  const size_t size = buffers.size();
  const size_t block = request.bytes / size;
  const Buffers before = buffers;
  std::vector<float> sum(request.bytes / sizeof(float), 0);
  for (const auto& buffer : before) {
    for (size_t i = 0; i < sum.size(); ++i) {
      float value;
      std::memcpy(&value, &buffer[i * sizeof(float)], sizeof(value));
      sum[i] += value;
    }
  }
  const auto* summed = reinterpret_cast<const std::byte*>(sum.data());
  for (size_t r = 0; r < size; ++r) {
    switch (request.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
      case Collective::kReduceScatter:
        std::memcpy(buffers[r].data(), summed, request.bytes);
        break;
      case Collective::kBroadcast:
      case Collective::kScatter:
        buffers[r] = before[kRoot];
        break;
      case Collective::kAllGather:
      case Collective::kGather:
        for (size_t b = 0; b < size; ++b) {
          std::memcpy(&buffers[r][b * block], &before[b][b * block], block);
        }
        break;
      case Collective::kAllToAll:
        for (size_t b = 0; b < size; ++b) {
          std::memcpy(&buffers[r][b * block], &before[b][r * block], block);
        }
        break;
      case Collective::kSendReceive:
        if (static_cast<int>(r) == Target(static_cast<int>(size))) buffers[r] = before[kRoot];
        break;
      case Collective::kBarrier:
        break;
    }
  }
}

uint64_t WrongOnAllRanks(const tools::bench::RunRequest& request, const Pattern& pattern,
                         const Buffers& buffers) {
  uint64_t wrong = 0;
  for (size_t r = 0; r < buffers.size(); ++r) {
    const std::byte* whole = buffers[r].data();
    wrong += pattern.CountWrong(static_cast<int>(r), whole,
                                whole + r * (request.bytes / buffers.size()));
  }
  return wrong;
}

class PatternTest : public ::testing::TestWithParam<Collective> {};

TEST_P(PatternTest, AcceptsTheRightResultAndOnlyThat) {
  tools::bench::RunRequest request;
  request.collective = GetParam();
  for (const int size : {1, 2, 3, 8, 20}) {
    request.bytes = static_cast<uint64_t>(size) * 700 * sizeof(float);
    const Pattern pattern(request, size, 5);
    Buffers buffers(static_cast<size_t>(size), std::vector<std::byte>(request.bytes));
    for (int r = 0; r < size; ++r) pattern.Fill(r, buffers[static_cast<size_t>(r)].data());
    const Buffers untouched = buffers;
    Execute(request, buffers);
    EXPECT_EQ(WrongOnAllRanks(request, pattern, buffers), 0u) << size;
    if (size > 1 && request.collective != Collective::kBarrier) {
      EXPECT_GT(WrongOnAllRanks(request, pattern, untouched), 0u) << size;
    }
    const Pattern other(request, size, 6);
    if (request.collective != Collective::kBarrier) {
      EXPECT_GT(WrongOnAllRanks(request, other, buffers), 0u) << "salt has no effect";
      // The first element of the root's own block is part of every collective's result there,
      // except that send-receive delivers to the target.
      const auto at = static_cast<size_t>(
          request.collective == Collective::kSendReceive ? Target(size) : kRoot);
      buffers[at][0] ^= std::byte{1};
      EXPECT_EQ(WrongOnAllRanks(request, pattern, buffers), 1u) << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PatternTest, ::testing::ValuesIn(kCollectives),
                         [](const ::testing::TestParamInfo<Collective>& parameter) {
                           std::string name;
                           for (char c : Name(parameter.param)) {
                             if (c != '-') name.push_back(c);
                           }
                           return name;
                         });

// Contributions of two ranks, found by asking for their patterns; the result of every reduction in
// every type must be representable, or honest implementations would be called wrong.
TEST(PatternReductionTest, EveryTypeAndReductionIsExactOrWithinItsTolerance) {
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : kReduceOps) {
      if (op == ReduceOp::kWeightedAverage && !IsFloating(type)) continue;
      tools::bench::RunRequest request;
      request.type = type;
      request.op = op;
      request.bytes = 3000 * SizeOf(type);
      const Pattern pattern(request, 1, 0);  // one rank: every reduction is the identity
      std::vector<std::byte> data(request.bytes);
      pattern.Fill(0, data.data());
      EXPECT_EQ(pattern.CountWrong(0, data.data(), data.data()), 0u)
          << Name(type) << " " << Name(op);
      data[request.bytes - 1] ^= std::byte{0x40};  // the exponent, or a high digit
      EXPECT_EQ(pattern.CountWrong(0, data.data(), data.data()), 1u)
          << Name(type) << " " << Name(op);
    }
  }
}

TEST(PatternReductionTest, OnlyActiveRanksAreReducedAndTheOthersKeepTheirs) {
  tools::bench::RunRequest request;
  request.type = DataType::kInt64;
  request.bytes = 2000 * sizeof(int64_t);
  request.active = {0, 2};
  const Pattern pattern(request, 3, 0);
  std::vector<std::vector<int64_t>> data(3, std::vector<int64_t>(2000));
  const auto bytes = [&](size_t rank) { return reinterpret_cast<std::byte*>(data[rank].data()); };
  for (size_t rank = 0; rank < 3; ++rank) pattern.Fill(static_cast<int>(rank), bytes(rank));
  EXPECT_EQ(pattern.CountWrong(1, bytes(1), nullptr), 0u) << "it is not active";
  EXPECT_GT(pattern.CountWrong(0, bytes(0), nullptr), 0u) << "nothing was added yet";
  for (size_t i = 0; i < 2000; ++i) data[0][i] += data[2][i];
  EXPECT_EQ(pattern.CountWrong(0, bytes(0), nullptr), 0u);
  EXPECT_GT(pattern.CountWrong(1, bytes(0), nullptr), 0u) << "it should not have the result";
}

TEST(PatternReductionTest, SixteenBitValuesAreTheNumbersThatTheyStandFor) {
  tools::bench::RunRequest half;
  half.type = DataType::kFloat16;
  half.bytes = 1021 * 2;
  tools::bench::RunRequest brain = half;
  brain.type = DataType::kBFloat16;
  tools::bench::RunRequest whole = half;
  whole.type = DataType::kInt32;
  whole.bytes = 1021 * 4;
  std::vector<uint16_t> halves(1021), brains(1021);
  std::vector<int32_t> wholes(1021);
  Pattern(half, 2, 0).Fill(1, reinterpret_cast<std::byte*>(halves.data()));
  Pattern(brain, 2, 0).Fill(1, reinterpret_cast<std::byte*>(brains.data()));
  Pattern(whole, 2, 0).Fill(1, reinterpret_cast<std::byte*>(wholes.data()));
  // 0 1 2 3 4 ... in each format, by the book.
  constexpr uint16_t kHalf[] = {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400};
  constexpr uint16_t kBrain[] = {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080};
  int seen = 0;
  for (size_t i = 0; i < wholes.size(); ++i) {
    if (wholes[i] > 4) continue;
    ++seen;
    EXPECT_EQ(halves[i], kHalf[wholes[i]]);
    EXPECT_EQ(brains[i], kBrain[wholes[i]]);
  }
  EXPECT_GT(seen, 100);
}

TEST(FillNeutralTest, IsOneForProductsAndZeroElsewhere) {
  tools::bench::RunRequest request;
  request.bytes = 8;
  float data[2] = {5, 5};
  FillNeutral(request, reinterpret_cast<std::byte*>(data));
  EXPECT_EQ(data[1], 0);
  request.op = ReduceOp::kProduct;
  FillNeutral(request, reinterpret_cast<std::byte*>(data));
  EXPECT_EQ(data[1], 1);
}

}  // namespace
}  // namespace syncopate::peers
