#include "fold.h"

#include <vector>

#include "gtest/gtest.h"

namespace syncopate::peers {
namespace {

template <typename T>
void ExpectFold(DataType type, ReduceOp op, T a, T b, T c, T expected) {
  const FoldLoop fold = FindFold(type, op);
  ASSERT_NE(fold, nullptr);
  for (const uint64_t elements : {0, 1, 31, 32, 33, 1000}) {
    // One guard element behind each buffer.
    std::vector<T> x(elements + 1, a), y(elements + 1, b), z(elements + 1, c), apart(elements + 1);
    std::byte* from[] = {reinterpret_cast<std::byte*>(x.data()),
                         reinterpret_cast<std::byte*>(y.data()),
                         reinterpret_cast<std::byte*>(z.data())};
    std::byte* to[] = {from[1], reinterpret_cast<std::byte*>(apart.data())};
    fold(from, 3, to, 2, elements);
    for (uint64_t i = 0; i < elements; ++i) {
      ASSERT_EQ(y[i], expected) << Name(type) << " " << Name(op) << " at " << i;
      ASSERT_EQ(apart[i], expected);
      ASSERT_EQ(x[i], a);
    }
    EXPECT_EQ(y[elements], b);
    EXPECT_EQ(apart[elements], T{});
  }
}

template <typename T>
void ExpectFolds(DataType type) {
  ExpectFold<T>(type, ReduceOp::kSum, 2, 7, 5, 14);
  ExpectFold<T>(type, ReduceOp::kMin, 2, 7, 5, 2);
  ExpectFold<T>(type, ReduceOp::kMax, 2, 7, 5, 7);
  ExpectFold<T>(type, ReduceOp::kProduct, 2, 7, 5, 70);
}

TEST(FoldTest, ReducesIntoOneOfItsSourcesAndElsewhere) {
  ExpectFolds<float>(DataType::kFloat32);
  ExpectFolds<double>(DataType::kFloat64);
  ExpectFolds<int32_t>(DataType::kInt32);
  ExpectFolds<int64_t>(DataType::kInt64);
}

TEST(FoldTest, SaysWhatItCannotDo) {
  EXPECT_EQ(FindFold(DataType::kFloat16, ReduceOp::kSum), nullptr);
  EXPECT_EQ(FindFold(DataType::kFloat32, ReduceOp::kAverage), nullptr);
}

}  // namespace
}  // namespace syncopate::peers
