#include "sync/weighted_sum.h"

#include <vector>

#include "gtest/gtest.h"
#include "model/element_value.h"
#include "syncopate/data_type.h"

namespace syncopate::sync {
namespace {

// Whole numbers and halves, which all types hold exactly, over more than one block.
TEST(WeightedSumTest, IsThatOfPlainArithmeticInEveryFloatingType) {
  constexpr uint64_t kElements = 2500;
  for (const DataType type :
       {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBFloat16}) {
    const size_t size = SizeOf(type);
    alignas(8) std::vector<std::byte> a(kElements * size), b(kElements * size), c(kElements * size);
    for (uint64_t i = 0; i < kElements; ++i) {
      StoreElement(type, static_cast<double>(i % 16), a.data() + i * size);
      StoreElement(type, static_cast<double>(i % 7), b.data() + i * size);
      StoreElement(type, static_cast<double>(i % 5), c.data() + i * size);
    }
    // The result takes the place of one of the terms.
    WeightedSum(type, kElements, {{0.5, a.data()}, {2, b.data()}, {-1, c.data()}}, b.data());
    for (uint64_t i = 0; i < kElements; ++i) {
      const double expected = 0.5 * static_cast<double>(i % 16) + 2 * static_cast<double>(i % 7) -
                              static_cast<double>(i % 5);
      ASSERT_EQ(LoadElement(type, b.data() + i * size), expected) << Name(type) << " " << i;
      ASSERT_EQ(LoadElement(type, a.data() + i * size), static_cast<double>(i % 16));
    }
  }
}

TEST(WeightedSumTest, RoundsSmallTypesOnceAndToTheNearest) {
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    // Among numbers of this size the type holds every second one only.
    const double large = type == DataType::kFloat16 ? 2048 : 256;
    std::byte a[2], b[2], out[2];
    StoreElement(type, large, a);
    StoreElement(type, 1, b);
    WeightedSum(type, 1, {{1, a}, {1, b}}, out);
    EXPECT_EQ(LoadElement(type, out), large) << Name(type);  // halves go to the even one
    WeightedSum(type, 1, {{1, a}, {3, b}}, out);
    EXPECT_EQ(LoadElement(type, out), large + 4) << Name(type);
    // Rounded after each term it would stay at `large`.
    WeightedSum(type, 1, {{1, a}, {1, b}, {1, b}}, out);
    EXPECT_EQ(LoadElement(type, out), large + 2) << Name(type);
  }
}

}  // namespace
}  // namespace syncopate::sync
