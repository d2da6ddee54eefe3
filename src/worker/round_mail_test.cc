#include "worker/round_mail.h"

#include <string>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;

void ExpectRoundTrip(const RoundMail& mail) {
  const absl::StatusOr<RoundMail> read = DecodeRoundMail(Encode(mail));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->lane, mail.lane);
  EXPECT_EQ(read->kind, mail.kind);
  EXPECT_EQ(read->round, mail.round);
  EXPECT_EQ(read->root, mail.root);
  EXPECT_EQ(read->what, mail.what);
  EXPECT_TRUE(read->text == mail.text);
}

std::string WhyRefused(const std::string& bytes) {
  const absl::Status status = DecodeRoundMail(bytes).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(RoundMailTest, MailComesBackAsItWas) {
  ExpectRoundTrip({.lane = RoundLane::kChunkTuner, .round = 7, .what = "traffic", .text = "x"});
  ExpectRoundTrip({.lane = RoundLane::kJob,
                   .round = UINT64_MAX,
                   .root = limits::kWorkersMax - 1,
                   .what = std::string(kRoundNameBytesMax, 'n'),
                   .text = std::string(100'000, 'z')});
  ExpectRoundTrip({.kind = RoundMail::Kind::kTaken, .round = 3});
  ExpectRoundTrip({.kind = RoundMail::Kind::kFault, .round = 3, .text = "too long"});
}

TEST(RoundMailTest, ATextOfTheLimitFitsAParcel) {
  const RoundMail mail = {.what = std::string(kRoundNameBytesMax, 'n'),
                          .text = std::string(kRoundTextBytesMax, 'x')};
  const std::string bytes = Encode(mail);
  EXPECT_LE(bytes.size(), limits::kParcelBytesMax);
  EXPECT_TRUE(DecodeRoundMail(bytes).ok());
  EXPECT_THAT(WhyRefused(bytes + "x"), HasSubstr("text is too long"));
}

TEST(RoundMailTest, WhatIsCutOffIsRefused) {
  const std::string text = Encode({.what = "plan", .text = ""});
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT(WhyRefused(text.substr(0, length)), HasSubstr("too short")) << length;
  }
}

TEST(RoundMailTest, WhatCannotBeIsRefused) {
  std::string bytes = Encode({.what = "plan", .text = "x"});
  std::string other = bytes;
  other[0] = static_cast<char>(kRoundLanes);
  EXPECT_THAT(WhyRefused(other), HasSubstr("no lane 2"));
  other = bytes;
  other[1] = 9;
  EXPECT_THAT(WhyRefused(other), HasSubstr("no kind 9"));
  other = bytes;
  other[11] = '\x7f';  // the root's high byte
  EXPECT_THAT(WhyRefused(other), HasSubstr("no root"));
  other = bytes;
  other[12] = '\xff';
  EXPECT_THAT(WhyRefused(other), HasSubstr("name is too long"));
  EXPECT_THAT(WhyRefused(Encode({.kind = RoundMail::Kind::kTaken}) + "x"),
              HasSubstr("follows its end"));
  EXPECT_THAT(WhyRefused(Encode({.kind = RoundMail::Kind::kFault,
                                 .text = std::string(kRoundFaultBytesMax + 1, 'x')})),
              HasSubstr("reason is too long"));
}

}  // namespace
}  // namespace syncopate::worker
