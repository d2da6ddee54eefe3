// Somebody in the middle does harm to what two workers say to each other. After the handshake
// nothing proved who had said what, and all of it went through.
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/net/proxy_testing.h"
#include "transport/net/wire_testing.h"

namespace syncopate::transport::net {
namespace {

using ::testing::HasSubstr;

class HarmTest : public WireTest {
 protected:
  // Worker `from` sends frames to the other one through the proxy, which does harm to them: the
  // connection must end with an error that has these words.
  void ExpectFound(Harm harm, const std::string& words, int from) {
    Make(2);
    Proxy proxy(addresses_[0]);
    addresses_[0] = proxy.address();
    ConnectAll();
    const int to = 1 - from;
    // First some in peace.
    const std::string data = Noise(7, kFragmentBytes);
    wire(from).Send(to, Header(FrameType::kData, 0, data.size()), Bytes(data), 1);
    ASSERT_TRUE(Until([&] { return collector(to).frames.size() == 1; }));
    EXPECT_TRUE(collector(to).closed.empty());

    proxy.Do(harm, /*to_connector=*/to == 1);
    constexpr uint64_t kFrames = 40;
    for (uint64_t i = 1; i <= kFrames; ++i) {
      wire(from).Send(to, Header(FrameType::kData, i, data.size()), Bytes(data), i + 1);
    }
    Until(
        [&] {
          return collector(to).closed.contains(from) || collector(to).frames.size() > kFrames;
        },
        5 * kWireSecond);
    ASSERT_TRUE(proxy.done());
    ASSERT_TRUE(collector(to).closed.contains(from));
    EXPECT_THAT(std::string(collector(to).closed.at(from).message()), HasSubstr(words));
    // What came before is right, and nothing came twice.
    std::set<uint64_t> seen;
    for (const Collector::Frame& frame : collector(to).frames) {
      EXPECT_TRUE(frame.payload == data);
      EXPECT_TRUE(seen.insert(frame.header.sequence).second);
    }
    // The other end learns of it and gets all of its memory back.
    ASSERT_TRUE(Until([&] { return collector(from).closed.contains(to); }));
    ASSERT_TRUE(Until([&] { return collector(from).sent.size() == kFrames + 1; }));
  }
  void ExpectFoundBothWays(Harm harm, const std::string& words) {
    for (const int from : {0, 1}) {
      ExpectFound(harm, words, from);
      workers_.clear();
      addresses_.clear();
      ucx_addresses_.clear();
    }
  }
};

constexpr char kTampered[] = "TLS: what came was changed, left out, repeated or reordered";

TEST_P(HarmTest, AChangedBitWentThrough) { ExpectFoundBothWays(Harm::kFlip, kTampered); }
TEST_P(HarmTest, ARepeatedFrameWentThrough) { ExpectFoundBothWays(Harm::kReplay, kTampered); }
TEST_P(HarmTest, ADroppedFrameWasNotMissed) { ExpectFoundBothWays(Harm::kDrop, kTampered); }
TEST_P(HarmTest, ReorderedFramesWentThrough) { ExpectFoundBothWays(Harm::kReorder, kTampered); }
TEST_P(HarmTest, ACutLookedLikeAGoodEnd) {
  ExpectFoundBothWays(Harm::kCut, "TLS: the stream ended without a farewell");
}
TEST_P(HarmTest, SwappedLanesWentThrough) { ExpectFoundBothWays(Harm::kSwapLanes, kTampered); }

INSTANTIATE_TEST_SUITE_P(Tls, HarmTest, ::testing::Values("tls"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace syncopate::transport::net
