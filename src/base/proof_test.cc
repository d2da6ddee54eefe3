#include "base/proof.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProofTest, OnlyTheSameKeyAndTextProve) {
  const std::string proof = ProofText("join").Add("a").AddNumber(3).ProofBy("key");
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(ProofText("join").Add("a").AddNumber(3).IsProvedBy("key", proof));
  EXPECT_FALSE(ProofText("join").Add("a").AddNumber(3).IsProvedBy("kez", proof));
  EXPECT_FALSE(ProofText("join").Add("a").AddNumber(4).IsProvedBy("key", proof));
  EXPECT_FALSE(ProofText("hello").Add("a").AddNumber(3).IsProvedBy("key", proof));
  EXPECT_FALSE(ProofText("join").Add("a").AddNumber(3).IsProvedBy("key", ""));
  EXPECT_FALSE(ProofText("join").Add("a").AddNumber(3).IsProvedBy("key", proof.substr(1)));
}

TEST(ProofTest, FieldsDoNotRunIntoEachOther) {
  EXPECT_NE(ProofText("p").Add("ab").Add("c").ProofBy("k"),
            ProofText("p").Add("a").Add("bc").ProofBy("k"));
}

// Computed with Python's hmac module: the field's length in eight bytes, then the field.
TEST(ProofTest, IsHmacSha256) {
  EXPECT_EQ(FormatKey(ProofText("Hi There").ProofBy(std::string(20, '\x0b'))),
            "7f576cd063ed3e3615e6bf957fc801d0f4d8cf70bc1a604ab2ba1d06c8732e2e");
}

TEST(ProofTest, RandomBytesDiffer) {
  const auto one = RandomBytes(kKeyBytes), other = RandomBytes(kKeyBytes);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->size(), kKeyBytes);
  EXPECT_NE(*one, *other);
}

TEST(ProofTest, KeysRoundTripAndErrorsKeepTheSecret) {
  const std::string key = "0123456789abcdef0123456789ABCDEF";
  const auto back = ParseKey(FormatKey(key));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, key);
  for (const std::string& bad : {std::string(), std::string("secret"), std::string(64, 'g')}) {
    const auto parsed = ParseKey(bad);
    ASSERT_FALSE(parsed.ok());
    if (bad.empty()) continue;
    EXPECT_THAT(std::string(parsed.status().message()), Not(HasSubstr(bad)));
  }
}

}  // namespace
}  // namespace syncopate
