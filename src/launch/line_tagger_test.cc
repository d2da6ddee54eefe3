#include "launch/line_tagger.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

constexpr size_t kMax = LineTagger::kLineBytesMax;

std::string Tagged(const std::string& tag, const std::vector<std::string>& pieces) {
  LineTagger tagger(tag);
  std::string out;
  for (const std::string& piece : pieces) tagger.Add(piece, out);
  tagger.Finish(out);
  return out;
}

TEST(LineTaggerTest, TagsEachLineOnce) {
  EXPECT_EQ(Tagged("[3] ", {"a\nb\n"}), "[3] a\n[3] b\n");
  EXPECT_EQ(Tagged("[3] ", {"\n\n"}), "[3] \n[3] \n");
  EXPECT_EQ(Tagged("[3] ", {}), "");
}

TEST(LineTaggerTest, HoldsALineUntilItIsComplete) {
  LineTagger tagger("[0] ");
  std::string out;
  tagger.Add("hel", out);
  EXPECT_EQ(out, "");
  tagger.Add("lo\nwor", out);
  EXPECT_EQ(out, "[0] hello\n");
  tagger.Finish(out);
  EXPECT_EQ(out, "[0] hello\n[0] wor\n");
  tagger.Finish(out);
  EXPECT_EQ(out, "[0] hello\n[0] wor\n");
}

TEST(LineTaggerTest, BreaksALineThatIsTooLong) {
  const std::string full(kMax, 'x');
  EXPECT_EQ(Tagged("[1] ", {full + "yz\n"}), absl::StrCat("[1] ", full, "\n[1] yz\n"));
  EXPECT_EQ(Tagged("[1] ", {full, "\n"}), absl::StrCat("[1] ", full, "\n[1] \n"));
  EXPECT_EQ(Tagged("[1] ", {full + "\n"}), absl::StrCat("[1] ", full, "\n"));
}

TEST(LineTaggerTest, KeepsTheBytesWithoutATag) {
  const std::string text = absl::StrCat("a\n\n", std::string(3 * kMax + 5, 'x'), "\nno newline");
  Random random(7);
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t length = static_cast<size_t>(random.Between(1, 50'000));
    pieces.push_back(text.substr(at, length));
    at += length;
  }
  EXPECT_EQ(Tagged("", pieces), text);
}

}  // namespace
}  // namespace syncopate::launch
