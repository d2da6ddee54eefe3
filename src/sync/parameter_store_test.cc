#include "sync/parameter_store.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace syncopate::sync {
namespace {

TEST(SgdStoreTest, StepsRangeByRangeAndReadsWhatItHolds) {
  std::vector<float> parameters = {1, 2, 3, 4};
  std::vector<std::byte> packed(sizeof(float) * 4);
  std::memcpy(packed.data(), parameters.data(), packed.size());
  SgdStore store(packed, 0.5);
  const TensorLayout::Range middle{.type = DataType::kFloat32, .offset = 4, .elements = 2};
  const float gradients[] = {2, 8};
  const auto* bytes = reinterpret_cast<const std::byte*>(gradients);
  ASSERT_TRUE(store.Apply(middle, bytes, 1).ok());
  ASSERT_TRUE(store.Apply(middle, bytes, 0.25).ok());
  float out[4] = {};
  ASSERT_TRUE(store
                  .Read({.type = DataType::kFloat32, .offset = 0, .elements = 4},
                        reinterpret_cast<std::byte*>(out))
                  .ok());
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 2 - 0.5f * 2 - 0.5f * 0.25f * 2);
  EXPECT_EQ(out[2], 3 - 0.5f * 8 - 0.5f * 0.25f * 8);
  EXPECT_EQ(out[3], 4);
}

TEST(SgdStoreTest, RefusesWhatItDoesNotHold) {
  SgdStore store(std::vector<std::byte>(16), 0.5);
  std::byte memory[64] = {};
  for (const TensorLayout::Range& range : std::vector<TensorLayout::Range>{
           {.type = DataType::kFloat32, .offset = 0, .elements = 5},
           {.type = DataType::kFloat32, .offset = 16, .elements = 1},
           {.type = DataType::kFloat32, .offset = 20, .elements = 1},
           {.type = DataType::kFloat32, .offset = 4, .elements = ~uint64_t{0} / 2},
           {.type = DataType::kInt32, .offset = 0, .elements = 1}}) {
    EXPECT_EQ(store.Read(range, memory).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store.Apply(range, memory, 1).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace syncopate::sync
