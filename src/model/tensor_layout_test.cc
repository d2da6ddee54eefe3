#include "model/tensor_layout.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::ElementsAre;
using Range = TensorLayout::Range;

TensorTable TableOf(std::vector<std::pair<DataType, uint64_t>> tensors) {
  TensorTable table;
  for (const auto& [type, elements] : tensors) {
    TensorInfo info;
    info.type = type;
    info.elements = elements;
    table.tensors.push_back(info);
  }
  return table;
}

TEST(TensorLayoutTest, TensorsOfOneTypeFollowEachOtherWithoutGaps) {
  const TensorLayout layout(
      TableOf({{DataType::kFloat32, 3}, {DataType::kFloat32, 5}, {DataType::kFloat32, 1}}));
  EXPECT_EQ(layout.Offset(0), 0u);
  EXPECT_EQ(layout.Offset(1), 12u);
  EXPECT_EQ(layout.Offset(2), 32u);
  EXPECT_EQ(layout.bytes(), 64u);
  EXPECT_THAT(layout.Ranges(0, 2), ElementsAre(Range{DataType::kFloat32, 0, 9}));
  EXPECT_THAT(layout.Ranges(1, 1), ElementsAre(Range{DataType::kFloat32, 12, 5}));
}

TEST(TensorLayoutTest, ARunOfMixedTypesIsOneRangeOfEach) {
  const TensorLayout layout(TableOf({{DataType::kFloat32, 20},
                                     {DataType::kFloat64, 2},
                                     {DataType::kFloat32, 4},
                                     {DataType::kFloat64, 3}}));
  // Sections begin on cache lines: 24 floats take 96 bytes, so two lines.
  const uint64_t floats = layout.Offset(0);
  const uint64_t doubles = layout.Offset(1);
  EXPECT_EQ(floats % 64, 0u);
  EXPECT_EQ(doubles % 64, 0u);
  EXPECT_EQ(layout.Offset(2), floats + 80);
  EXPECT_EQ(layout.Offset(3), doubles + 16);
  EXPECT_EQ(layout.bytes(), 128u + 64u);
  EXPECT_THAT(layout.Ranges(1, 2),
              ::testing::UnorderedElementsAre(Range{DataType::kFloat32, floats + 80, 4},
                                              Range{DataType::kFloat64, doubles, 2}));
  EXPECT_THAT(layout.Ranges(1, 3),
              ::testing::UnorderedElementsAre(Range{DataType::kFloat32, floats + 80, 4},
                                              Range{DataType::kFloat64, doubles, 5}));
}

}  // namespace
}  // namespace syncopate
