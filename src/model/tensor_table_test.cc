#include "model/tensor_table.h"

#include <limits>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorTable SampleTable() {
  return {"tiny",
          {{"a.weight", 100, DataType::kFloat32, 1e-3, 0.1 + 0.2},
           {"a.bias", 10, DataType::kFloat16, 0, 0},
           {"b \"quoted\"", 7, DataType::kFloat64, 1.0 / 3, 0.25}}};
}

TEST(TensorTableTest, SumsItsTensors) {
  const TensorTable table = SampleTable();
  EXPECT_EQ(table.size(), 3);
  EXPECT_EQ(table.elements(), 117u);
  EXPECT_EQ(table.bytes(), 400u + 20u + 56u);
  EXPECT_DOUBLE_EQ(table.backward_seconds(), 0.55);
  EXPECT_DOUBLE_EQ(table.forward_seconds(), 1e-3 + 1.0 / 3);
}

TEST(TensorTableTest, JsonRoundTripsBitForBit) {
  const absl::StatusOr<TensorTable> back = ParseTensorTable(ToJson(SampleTable()));
  ASSERT_EQ(std::string(back.status().message()), "");
  EXPECT_EQ(*back, SampleTable());
  EXPECT_EQ(DigestOf(*back), DigestOf(SampleTable()));
}

TEST(TensorTableTest, ADigestSeesEveryField) {
  TensorTable other = SampleTable();
  other.tensors[2].backward_seconds += 1e-12;
  EXPECT_FALSE(DigestOf(other) == DigestOf(SampleTable()));
  other = SampleTable();
  other.tensors[1].type = DataType::kBFloat16;
  EXPECT_FALSE(DigestOf(other) == DigestOf(SampleTable()));
}

TEST(TensorTableTest, ReadsTimesWithUnitsAndTakesFloat32ForGranted) {
  const absl::StatusOr<TensorTable> table = ParseTensorTable(
      R"({"model":"m","tensors":[{"name":"w","elements":5,"forward_seconds":"1ms","backward_seconds":2}]})");
  ASSERT_EQ(std::string(table.status().message()), "");
  EXPECT_EQ(table->tensors[0], (TensorInfo{"w", 5, DataType::kFloat32, 1e-3, 2}));
}

TEST(TensorTableTest, RefusesWhatIsWrongWithItsPlace) {
  const auto fault = [](const std::string& json) {
    return std::string(ParseTensorTable(json).status().message());
  };
  const std::string good = ToJson(SampleTable());
  EXPECT_THAT(fault(absl::StrReplaceAll(good, {{"a.bias", "a.weight"}})),
              HasSubstr("tensors[1].name: \"a.weight\" is also the name of an earlier one"));
  EXPECT_THAT(fault(absl::StrReplaceAll(good, {{"\"elements\":10,", "\"elements\":0,"}})),
              HasSubstr("tensors[1].elements: there are none"));
  EXPECT_THAT(fault(absl::StrReplaceAll(good, {{"0.25", "-0.25"}})),
              HasSubstr("tensors[2].backward_seconds: -0.25 is not a number of seconds"));
  EXPECT_THAT(fault(absl::StrReplaceAll(good, {{"float16", "float17"}})),
              HasSubstr("tensors[1].type: "));
  EXPECT_THAT(fault(absl::StrReplaceAll(good, {{"tiny\"", "tiny\", \"extra\": 1"}})),
              HasSubstr("unknown key \"extra\""));
  EXPECT_THAT(fault(R"({"model": "m", "tensors": []})"), HasSubstr("tensors: there is none"));
  EXPECT_THAT(fault("{"), HasSubstr("not JSON"));
}

TEST(TensorTableTest, RefusesATimeThatIsNoNumber) {
  TensorTable table = SampleTable();
  table.tensors[0].forward_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(std::string(Validate(table).message()), HasSubstr("tensors[0].forward_seconds"));
}

TEST(TensorTableTest, GradientsAreReadyFromTheLastToTheFirst) {
  TensorTable table = SampleTable();
  table.tensors[0].backward_seconds = 0.5;
  EXPECT_THAT(ReadyTimes(table), ElementsAre(0.75, 0.25, 0.25));
}

TEST(TensorTableTest, ScalesBytesAndTimes) {
  const TensorTable scaled = Scaled(SampleTable(), 0.05, 3);
  EXPECT_EQ(scaled.tensors[0].elements, 5u);
  EXPECT_EQ(scaled.tensors[1].elements, 1u) << "rounded up from a half";
  EXPECT_EQ(scaled.tensors[2].elements, 1u) << "at least one";
  EXPECT_DOUBLE_EQ(scaled.tensors[2].backward_seconds, 0.75);
  EXPECT_EQ(Scaled(SampleTable(), 1, 1), SampleTable());
}

}  // namespace
}  // namespace syncopate
