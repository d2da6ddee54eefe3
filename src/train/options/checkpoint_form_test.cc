#include "train/options/checkpoint_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"

namespace syncopate::train {
namespace {

using ::testing::ElementsAre;

std::string Text(const std::string& text) {
  std::string out;
  Append(out, static_cast<uint32_t>(text.size()));
  return out + text;
}

// A file with one tensor.
std::string File(uint8_t type, const std::vector<int64_t>& extents, const std::string& bytes) {
  std::string out(kCheckpointMagic);
  Append(out, kCheckpointVersion);
  out += Text("mlp") + Text("config");
  for (const int64_t number : {5, 1, 32}) Append(out, number);
  out += Text("generator") + Text("course") + Text("strategy") + Text("service");
  Append(out, uint32_t{1});
  out += Text("weight");
  Append(out, type);
  Append(out, static_cast<uint8_t>(extents.size()));
  for (const int64_t extent : extents) Append(out, extent);
  out += bytes;
  const Digest digest = DigestOf(out);
  Append(out, digest.high);
  Append(out, digest.low);
  return out;
}

TEST(CheckpointFormTest, SaysWhatIsWhere) {
  const std::string file = File(0, {2, 1}, "12345678");
  const auto form = DecodeCheckpoint(file);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->model, "mlp");
  EXPECT_EQ(form->iteration, 5);
  EXPECT_EQ(form->course, "course");
  EXPECT_EQ(form->strategy, "strategy");
  EXPECT_EQ(form->service, "service");
  ASSERT_EQ(form->tensors.size(), 1u);
  EXPECT_EQ(form->tensors[0].name, "weight");
  EXPECT_THAT(form->tensors[0].extents, ElementsAre(2, 1));
  EXPECT_EQ(form->tensors[0].bytes, "12345678");
}

TEST(CheckpointFormTest, ExtentsMustFitWhatIsThere) {
  EXPECT_TRUE(DecodeCheckpoint(File(0, {0, 7}, "")).ok());
  for (const std::vector<int64_t>& extents :
       {std::vector<int64_t>{3}, {-1}, {INT64_MAX}, {1 << 30, 1 << 30, 1 << 30}}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeCheckpoint(File(0, extents, "12345678")).status()));
  }
}

// The zero hid the product of the others, which overflowed where the tensor was made.
TEST(CheckpointFormTest, HugeExtentsBesideAZeroAreDamage) {
  EXPECT_TRUE(absl::IsDataLoss(DecodeCheckpoint(File(0, {0, INT64_MAX, INT64_MAX}, "")).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeCheckpoint(File(0, {0, int64_t{1} << 40}, "")).status()));
}

}  // namespace
}  // namespace syncopate::train
