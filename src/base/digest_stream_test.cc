#include "base/digest_stream.h"

#include <string>

#include "base/random.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(DigestStreamTest, PiecesHaveTheDigestOfTheWhole) {
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    DigestStream stream;
    std::string whole;
    for (uint64_t pieces = random.Below(20); pieces > 0; --pieces) {
      const std::string piece(random.Below(3000), static_cast<char>(random.Below(256)));
      stream.Add(piece);
      whole += piece;
      ASSERT_EQ(stream.Get(), DigestOf(absl::string_view(whole)));
    }
    EXPECT_EQ(stream.Get(), DigestOf(absl::string_view(whole)));
  }
}

}  // namespace
}  // namespace syncopate
