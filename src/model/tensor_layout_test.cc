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

TEST(TensorLayoutTest, BytesAreCutByTypeAndNameTheTensorsThatTheyTouch) {
  const TensorLayout layout(TableOf({{DataType::kFloat32, 20},
                                     {DataType::kFloat64, 2},
                                     {DataType::kFloat32, 4},
                                     {DataType::kFloat64, 3}}));
  const uint64_t doubles = layout.Offset(1);
  EXPECT_THAT(*layout.RangesOfBytes(0, layout.bytes()),
              ElementsAre(Range{DataType::kFloat32, 0, 24}, Range{DataType::kFloat64, doubles, 5}));
  EXPECT_THAT(layout.TensorsIn(0, layout.bytes()), ElementsAre(0, 1, 2, 3));
  // The second half of the first tensor, and one double.
  EXPECT_THAT(*layout.RangesOfBytes(40, 80), ElementsAre(Range{DataType::kFloat32, 40, 10}));
  EXPECT_THAT(layout.TensorsIn(40, 80), ElementsAre(0));
  EXPECT_THAT(layout.TensorsIn(76, 84), ElementsAre(0, 2));
  EXPECT_THAT(*layout.RangesOfBytes(84, doubles + 8),
              ElementsAre(Range{DataType::kFloat32, 84, 3}, Range{DataType::kFloat64, doubles, 1}));
  EXPECT_THAT(layout.TensorsIn(84, doubles + 8), ElementsAre(1, 2));
  // What lies between two sections is of no tensor.
  EXPECT_THAT(*layout.RangesOfBytes(96, 128), ElementsAre());
  EXPECT_THAT(layout.TensorsIn(96, 128), ElementsAre());
}

TEST(TensorLayoutTest, BytesThatAreNotThereOrCutAnElementAreRefused) {
  const TensorLayout layout(TableOf({{DataType::kFloat32, 4}, {DataType::kFloat64, 2}}));
  for (const auto& [begin, end] :
       {std::pair{0u, 0u}, {8u, 4u}, {0u, 200u}, {2u, 8u}, {0u, 6u}, {0u, 68u}}) {
    EXPECT_EQ(layout.RangesOfBytes(begin, end).status().code(), absl::StatusCode::kInvalidArgument)
        << begin << " to " << end;
  }
}

}  // namespace
}  // namespace syncopate
