#include "model/element_value.h"

#include <vector>

#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(ElementValueTest, SmallWholeNumbersAreExactInEveryType) {
  for (const DataType type : kDataTypes) {
    for (int value = -256; value <= 256; ++value) {
      std::byte bytes[8] = {};
      StoreElement(type, value, bytes);
      ASSERT_EQ(LoadElement(type, bytes), value) << Name(type);
    }
  }
}

TEST(ElementValueTest, AveragesAreNearWhereTheyCannotBeExact) {
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    std::byte bytes[8] = {};
    StoreElement(type, 17.0 / 3, bytes);
    EXPECT_NEAR(LoadElement(type, bytes), 17.0 / 3, 0.02) << Name(type);
  }
}

TEST(ElementValueTest, ReducesByTheWordsOfTheOperations) {
  const std::vector<double> values = {3, 1, 4};
  const std::vector<double> weights = {1, 2, 5};
  const auto reduced = [&](ReduceOp op, DataType type) {
    return ReducePlainly(op, type, values, weights);
  };
  EXPECT_EQ(reduced(ReduceOp::kSum, DataType::kInt32), 8);
  EXPECT_EQ(reduced(ReduceOp::kAverage, DataType::kInt64), 2);  // truncated
  EXPECT_DOUBLE_EQ(reduced(ReduceOp::kAverage, DataType::kFloat64), 8.0 / 3);
  EXPECT_DOUBLE_EQ(reduced(ReduceOp::kWeightedAverage, DataType::kFloat32), 25.0 / 8);
  EXPECT_EQ(reduced(ReduceOp::kMin, DataType::kFloat16), 1);
  EXPECT_EQ(reduced(ReduceOp::kMax, DataType::kFloat16), 4);
  EXPECT_EQ(reduced(ReduceOp::kProduct, DataType::kFloat32), 12);
}

}  // namespace
}  // namespace syncopate
