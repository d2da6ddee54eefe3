#include "launch/agent_frames.h"

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

using ::testing::ElementsAre;

RemoteStart SomeStart() {
  return {.job = "j",
          .size = 8,
          .first_rank = 2,
          .ranks = 3,
          .grace_ns = 5,
          .host_timeout_ns = 7'000'000'000,
          .folder = "/f",
          .command = {"p", "", "a b\n"},
          .environment = {"A=1"}};
}

TEST(AgentFramesTest, FramesRoundTripInAnyPieces) {
  std::string bytes;
  AppendFrame(FrameKind::kOut, 3, std::string("a\0b", 3), bytes);
  AppendFrame(FrameKind::kDone, 0, "", bytes);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.Add(absl::string_view(bytes).substr(at, piece));
      while (true) {
        auto frame = reader.Next();
        ASSERT_TRUE(frame.ok());
        if (!frame->has_value()) break;
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(frames[0].kind, FrameKind::kOut);
    EXPECT_EQ(frames[0].rank, 3);
    EXPECT_EQ(frames[0].bytes, std::string("a\0b", 3));
    EXPECT_EQ(frames[1].kind, FrameKind::kDone);
  }
}

TEST(AgentFramesTest, RefusesWhatIsNoFrameBeforeItIsThere) {
  for (const std::string& header :
       {std::string(12, '\0'), std::string(12, '\xff'),
        std::string("\x07\0\0\0\0\0\0\0\xff\xff\xff\x7f", 12), std::string("bash: no job")}) {
    FrameReader reader;
    reader.Add(header);
    EXPECT_FALSE(reader.Next().ok());
  }
}

TEST(AgentFramesTest, StartsRoundTrip) {
  const auto start = DecodeStart(EncodeStart(SomeStart()));
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->job, "j");
  EXPECT_EQ(start->size, 8);
  EXPECT_EQ(start->first_rank, 2);
  EXPECT_EQ(start->ranks, 3);
  EXPECT_EQ(start->grace_ns, 5);
  EXPECT_EQ(start->host_timeout_ns, 7'000'000'000);
  EXPECT_EQ(start->folder, "/f");
  EXPECT_THAT(start->command, ElementsAre("p", "", "a b\n"));
  EXPECT_THAT(start->environment, ElementsAre("A=1"));
}

TEST(AgentFramesTest, RefusesImpossibleStarts) {
  RemoteStart start = SomeStart();
  start.ranks = 7;  // beyond the size
  EXPECT_FALSE(DecodeStart(EncodeStart(start)).ok());
  start = SomeStart();
  start.ranks = 0;
  EXPECT_FALSE(DecodeStart(EncodeStart(start)).ok());
  start = SomeStart();
  start.command.clear();
  EXPECT_FALSE(DecodeStart(EncodeStart(start)).ok());
  start = SomeStart();
  start.environment = {std::string("A\0B", 3)};
  EXPECT_FALSE(DecodeStart(EncodeStart(start)).ok());
}

TEST(AgentFramesTest, BrokenStartsAreErrors) {
  const std::string good = EncodeStart(SomeStart());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodeStart(absl::string_view(good).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeStart(good + "x").ok());
  for (uint64_t seed = 0; seed < 2000; ++seed) {  // must not crash or take much memory
    Random random(seed);
    std::string bad = good;
    bad[random.Below(bad.size())] = static_cast<char>(random.Next());
    (void)DecodeStart(bad).ok();
  }
}

}  // namespace
}  // namespace syncopate::launch
