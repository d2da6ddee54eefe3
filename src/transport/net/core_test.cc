// What the core makes of bytes that come at a bad moment, or that no worker should send.
#include "transport/net/core.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "transport/net/core_testing.h"

namespace syncopate::transport::net {
namespace {

// ---- memory that is given back while a frame is being read

// A connection was in the middle of a frame when its operation ended. Its buffer went to the next
// operation, and the rest of the frame over what had come for that.
TEST_F(CoreTest, TheRestOfAStaleFrameDoesNotOverwriteTheNextOperation) {
  Make(2, {1});
  NetGroup& group = Open({0, 1});
  Begin(group, {.sequence = 0, .data_bytes = kFragmentBytes});
  const std::string stale = Frame(Header(FrameType::kData, 0), std::string(kFragmentBytes, 's'));
  Write(1, stale.substr(0, stale.size() / 2), /*lane=*/1);
  core_->End(group, 0);
  NetOperation& next = Begin(group, {.sequence = 1, .data_bytes = kFragmentBytes});
  const std::string fresh(kFragmentBytes, 'f');
  Write(1, Frame(Header(FrameType::kData, 1), fresh));
  Write(1, stale.substr(stale.size() / 2), /*lane=*/1);
  EXPECT_TRUE(Came(group, next, 1, 0, kFragmentBytes) == fresh);
}

// Large buffers are not kept but freed: reading into one failed, and the peer was cut off.
TEST_F(CoreTest, TheRestOfALargeStaleFrameDoesNotCutThePeerOff) {
  Make(2, {1});
  NetGroup& group = Open({0, 1});
  constexpr uint64_t kLarge = uint64_t{128} << 20;
  Begin(group, {.sequence = 0, .data_bytes = kLarge});
  FrameHeader header = Header(FrameType::kData, 0);
  header.total = kLarge;
  const std::string stale = Bytes(header, std::string(kPayloadBytesMax, 's'));
  Write(1, stale.substr(0, stale.size() / 2), /*lane=*/1);
  core_->End(group, 0);
  Write(1, stale.substr(stale.size() / 2), /*lane=*/1);
  EXPECT_FALSE(core_->Left());
  NetOperation& next = Begin(group, {.sequence = 1, .data_bytes = 4});
  Write(1, Frame(Header(FrameType::kData, 1), "next"), /*lane=*/1);
  EXPECT_EQ(Came(group, next, 1, 0, 4), "next");
}

// A result that another member provides is read straight into the caller's memory.
TEST_F(CoreTest, TheRestOfAResultIsNotWrittenIntoMemoryThatTheCallerHasBack) {
  Make(2, {1});
  NetGroup& group = Open({1, 0});  // worker 1 is the arbiter
  std::string memory(kFragmentBytes, 'm');
  Begin(group, {.sequence = 0,
                .ending = Ending::kShared,
                .data = reinterpret_cast<std::byte*>(memory.data()),
                .data_bytes = memory.size()});
  const GateMessage query = {
      .kind = GateMessage::Kind::kQuery, .round = 1, .items = {{.sequence = 0}}, .ranks = {1, 0}};
  Write(1, Frame(Header(FrameType::kGate), query));
  ASSERT_TRUE(group.gates->Held(0));
  const std::string result = Frame(Header(FrameType::kResult), std::string(kFragmentBytes, 'r'));
  Write(1, result.substr(0, result.size() / 2), /*lane=*/1);
  ASSERT_EQ(memory.front(), 'r') << "nothing of the result has come";
  core_->End(group, 0);
  memory.assign(memory.size(), 'n');
  Write(1, result.substr(result.size() / 2), /*lane=*/1);
  EXPECT_TRUE(memory == std::string(memory.size(), 'n'));
}

}  // namespace
}  // namespace syncopate::transport::net
