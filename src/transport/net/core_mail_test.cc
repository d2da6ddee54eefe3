// What the core makes of mail that comes at a bad moment, or that no worker should send.
#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "gtest/gtest.h"
#include "transport/net/core.h"
#include "transport/net/core_testing.h"

namespace syncopate::transport::net {
namespace {

class CoreMailTest : public CoreTest {
 protected:
  std::vector<Mail> Take() {
    std::vector<Mail> mail;
    core_->TakeMail(mail);
    return mail;
  }
  static std::string Message(const std::string& bytes) {
    return Frame(Header(FrameType::kMessage), bytes);
  }
  // A part of a parcel.
  static std::string Part(uint64_t number, uint64_t offset, uint64_t total,
                          const std::string& bytes) {
    FrameHeader header = Header(FrameType::kParcel, number);
    header.offset = offset;
    header.total = total;
    return Bytes(header, bytes);
  }
  // How many frames of this type the worker has sent on the first lane.
  size_t CountSent(int peer, FrameType type) {
    const std::vector<FrameHeader> sent = Sent(peer);
    return static_cast<size_t>(std::count_if(
        sent.begin(), sent.end(), [&](const FrameHeader& header) { return header.type == type; }));
  }
};

// A header that breaks a limit ends the connection before memory is taken.
TEST_F(CoreMailTest, MailLongerThanItsLimitEndsTheConnection) {
  const std::string long_message(MailBytesMax(MailKind::kMessage) + 1, 'm');
  for (const std::string& bytes :
       {Message(long_message), Message(""), Part(0, 0, 10, ""),
        Part(0, 0, MailBytesMax(MailKind::kParcel) + 1, "part"), Part(0, 8, 10, "part"),
        Frame(Header(FrameType::kMessagesTaken), "x"),
        Frame(Header(FrameType::kParcelTaken), "x")}) {
    ends_.clear();
    Make(2, {1});
    Write(1, bytes);
    EXPECT_TRUE(core_->Left());
    for (const Mail& mail : Take()) EXPECT_EQ(mail.kind, MailKind::kLost);
  }
}

// Whoever keeps to what this worker has said it took never has so much under way.
TEST_F(CoreMailTest, MoreMessagesThanMayWaitAreDropped) {
  Make(2, {1});
  const std::string message(4096, 'm');
  constexpr size_t kFit = limits::kMailQueuedBytesMax / 4096;
  for (size_t i = 0; i < kFit + 3; ++i) Write(1, Message(message));
  EXPECT_EQ(core_->dropped().unexpected, 3u);
  EXPECT_EQ(Take().size(), kFit);
  EXPECT_GE(CountSent(1, FrameType::kMessagesTaken), 1u);
  Write(1, Message(message));
  EXPECT_EQ(Take().size(), 1u);
  // Short ones take memory, too.
  for (size_t i = 0; i < limits::kMailQueuedBytesMax / limits::kMailCostMin + 1; ++i) {
    Write(1, Message("m"));
  }
  EXPECT_EQ(core_->dropped().unexpected, 4u);
}

TEST_F(CoreMailTest, PartsOfAParcelMayOvertakeEachOther) {
  Make(2, {1});
  Write(1, Part(0, 4, 8, "efgh"), /*lane=*/1);
  EXPECT_TRUE(Take().empty());
  Write(1, Part(0, 0, 8, "abcd"));
  const std::vector<Mail> mail = Take();
  ASSERT_EQ(mail.size(), 1u);
  EXPECT_EQ(mail[0], (Mail{.from = 1, .kind = MailKind::kParcel, .bytes = "abcdefgh"}));
  EXPECT_EQ(CountSent(1, FrameType::kParcelTaken), 1u);
}

// The next parcel may come when the one before has been taken; one at a time takes memory.
TEST_F(CoreMailTest, ASecondParcelBeforeTheFirstIsTakenIsDropped) {
  Make(2, {1});
  Write(1, Part(0, 0, 4, "1st.") + Part(1, 0, 4, "2nd.") + Part(0, 0, 4, "dup."));
  EXPECT_EQ(core_->dropped().unexpected, 2u);
  ASSERT_EQ(Take().size(), 1u);
  Write(1, Part(1, 0, 8, "2nd.") + Part(1, 4, 9, "diff."));
  EXPECT_EQ(core_->dropped().unexpected, 3u) << "its total differs";
  Write(1, Part(1, 4, 8, "rest"));
  const std::vector<Mail> mail = Take();
  ASSERT_EQ(mail.size(), 1u);
  EXPECT_EQ(mail[0].bytes, "2nd.rest");
}

TEST_F(CoreMailTest, ReceiptsForWhatWasNotSentAreNotBelieved) {
  Make(2, {1});
  FrameHeader header = Header(FrameType::kMessagesTaken, 1000);
  Write(1, Bytes(header, ""));
  header.type = FrameType::kParcelTaken;
  for (const uint64_t number : {0, 1000}) {
    header.sequence = number;
    Write(1, Bytes(header, ""));
  }
  EXPECT_EQ(core_->dropped().unexpected, 3u);
  ASSERT_TRUE(core_->Post(1, MailKind::kParcel, "parcel").ok());
  header.sequence = 0;
  Write(1, Bytes(header, "") + Bytes(header, ""));
  EXPECT_EQ(core_->dropped().unexpected, 4u) << "only the first one counts";
}

// What is half here when its sender dies is given back, and the connection may be in the middle of it.
TEST_F(CoreMailTest, OfAParcelThatIsHalfHereNothingIsSeenWhenItsSenderIsLost) {
  Make(3, {1, 2});
  const std::string part = Part(0, 0, 1 << 20, std::string(1 << 19, 'p'));
  Write(1, Message("before"));
  Write(1, part.substr(0, part.size() / 2), /*lane=*/1);
  LossMessage verdict;
  verdict.known = 1;
  verdict.verdicts = {{.rank = 1, .cause = Cause::kSilent, .by = 2}};
  Write(2, Frame(Header(FrameType::kBeat), verdict));
  ASSERT_EQ(core_->losses().size(), 1u);
  Write(1, part.substr(part.size() / 2), /*lane=*/1);
  Write(1, Message("after"));
  const std::vector<Mail> mail = Take();
  ASSERT_EQ(mail.size(), 2u);
  EXPECT_EQ(mail[0].bytes, "before");
  EXPECT_EQ(mail[1].kind, MailKind::kLost);
  EXPECT_EQ(core_->Post(1, MailKind::kMessage, "hello").code(), absl::StatusCode::kUnavailable);
}

// Worker 2 heard that worker 1 left, and says so, before this worker has read what worker 1 sent last.
TEST_F(CoreMailTest, MailOfAWorkerThatLeftIsReadThoughAnotherTellsOfItFirst) {
  Make(3, {1, 2});
  Write(1, Message("before"));
  LossMessage verdict;
  verdict.known = 1;
  verdict.verdicts = {{.rank = 1, .cause = Cause::kLeft, .by = 2, .certain = true}};
  Write(2, Frame(Header(FrameType::kBeat), verdict));
  EXPECT_TRUE(core_->losses().empty());
  Write(1, Message("last"));
  Write(1, Frame(Header(FrameType::kBye), ""));
  Kill(1);
  const std::vector<Mail> mail = Take();
  ASSERT_EQ(mail.size(), 3u);
  EXPECT_EQ(mail[1].bytes, "last");
  EXPECT_EQ(mail[2].kind, MailKind::kLeft);
  ASSERT_EQ(core_->losses().size(), 1u);
  EXPECT_TRUE(core_->losses()[0].left);
}

// The end of its connections may have been lost on the way.
TEST_F(CoreMailTest, AWorkerThatLeftIsNotHeardOutForEver) {
  Make(3, {1, 2});
  core_->Tick(MonotonicClock().NowNs());
  LossMessage verdict;
  verdict.known = 1;
  verdict.verdicts = {{.rank = 1, .cause = Cause::kLeft, .by = 2, .certain = true}};
  Write(2, Frame(Header(FrameType::kBeat), verdict));
  EXPECT_TRUE(core_->losses().empty());
  core_->Tick(MonotonicClock().NowNs() + 1'000'000'000);
  EXPECT_EQ(core_->losses().size(), 1u);
  EXPECT_EQ(Take().size(), 1u);
}

// Those who left were heard out one after the other, and a death that came after them in the order of losses
// was told half a second later for each.
TEST_F(CoreMailTest, SeveralThatLeftAreHeardOutTogether) {
  Make(5, {1, 2, 3, 4});
  const int64_t begin_ns = MonotonicClock().NowNs();
  core_->Tick(begin_ns);
  LossMessage verdict;
  verdict.known = 3;
  verdict.verdicts = {{.rank = 1, .cause = Cause::kLeft, .by = 4, .certain = true},
                      {.rank = 2, .cause = Cause::kLeft, .by = 4, .certain = true},
                      {.rank = 3, .cause = Cause::kDied, .by = 4, .certain = true}};
  Write(4, Frame(Header(FrameType::kBeat), verdict));
  EXPECT_TRUE(core_->losses().empty());
  core_->Tick(begin_ns + 1'000'000'000);
  EXPECT_EQ(core_->losses().size(), 3u);
}

// Parcels wait in the sender's memory, not in the wire's.
TEST_F(CoreMailTest, ParcelsToAWorkerThatIsLostAreGivenBack) {
  Make(2, {1});
  ASSERT_TRUE(core_->Post(1, MailKind::kParcel, std::string(8 << 20, 'p')).ok());
  ASSERT_TRUE(core_->Post(1, MailKind::kParcel, std::string(8 << 20, 'q')).ok());
  Kill(1);
  Settle();
  std::vector<Mail> mail = Take();
  ASSERT_EQ(mail.size(), 1u);
  EXPECT_EQ(mail[0].kind, MailKind::kLost);
  EXPECT_EQ(core_->Post(1, MailKind::kParcel, "again").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace syncopate::transport::net
