// What the core makes of bytes that come at a bad moment, or that no worker should send.
#include "transport/net/core.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
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

// Results that another member provides were once read straight into the caller's memory.
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
  ASSERT_TRUE(group.operations.at(0)->results.contains(1)) << "nothing of the result has come";
  core_->End(group, 0);
  memory.assign(memory.size(), 'n');
  Write(1, result.substr(result.size() / 2), /*lane=*/1);
  EXPECT_TRUE(memory == std::string(memory.size(), 'n'));
}

// The thread that reads from the network may do so while another one works on the data of the
// operation, which had looked a moment before whether it may.
TEST_F(CoreTest, AResultIsNotWrittenIntoDataThatIsBeingWorkedOn) {
  Make(2, {1});
  NetGroup& group = Open({1, 0});  // worker 1 is the arbiter
  std::string memory(kFragmentBytes, 'm');
  NetOperation& operation = Begin(group, {.sequence = 0,
                                          .ending = Ending::kShared,
                                          .data = reinterpret_cast<std::byte*>(memory.data()),
                                          .data_bytes = memory.size()});
  ASSERT_FALSE(group.gates->Held(0)) << "it may work";
  const GateMessage query = {
      .kind = GateMessage::Kind::kQuery, .round = 1, .items = {{.sequence = 0}}, .ranks = {1, 0}};
  const GateMessage decision = {
      .kind = GateMessage::Kind::kDecision,
      .round = 1,
      .items = {{.sequence = 0, .start = 1, .finish = 1, .provider = 0, .not_finished = {1}}}};
  Write(1, Frame(Header(FrameType::kGate), query));
  Write(1, Frame(Header(FrameType::kGate), decision));
  Write(1, Frame(Header(FrameType::kResult), std::string(kFragmentBytes, 'r')), /*lane=*/1);
  EXPECT_TRUE(memory == std::string(kFragmentBytes, 'm'));
  EXPECT_TRUE(core_->TakeResult(group, operation));
  EXPECT_TRUE(memory == std::string(kFragmentBytes, 'r'));
}

// ---- a worker that is out of the job

// Where nothing comes to a worker any more, it gives up after 3 s and says so. But without
// acknowledgements its kernel sends nothing new, so the others heard of it seconds later, when what the
// kernel had sent before was old, too. To end a connection at once needs no acknowledgement.
TEST_F(CoreTest, AWorkerThatGivesUpEndsItsConnectionsWithoutWaitingForAnswers) {
  Make(3, {1, 2});
  const int64_t begin_ns = MonotonicClock().NowNs();
  int64_t gave_up_ns = 0;
  for (int64_t at_ns = begin_ns; at_ns < begin_ns + 4'000'000'000; at_ns += 50'000'000) {
    core_->Tick(at_ns);
    if (gave_up_ns == 0 && !core_->losses().empty()) gave_up_ns = at_ns;
    if (gave_up_ns == 0 || at_ns < gave_up_ns + 200'000'000) {
      ASSERT_FALSE(core_->Left()) << "its last words have no time";
    }
  }
  ASSERT_NE(gave_up_ns, 0) << "it has not given up";
  for (const int peer : {1, 2}) {
    char buffer[4096];
    ssize_t got = 0;
    const int end = ends_[static_cast<size_t>(peer)].front().get();
    while ((got = recv(end, buffer, sizeof(buffer), 0)) > 0) {
    }
    EXPECT_EQ(got, 0) << "the connection with worker " << peer << " has not ended";
  }
}

// ---- frames that no worker of ours sends

// The length of a payload was not compared with a message of no bytes, whose buffer it overran.
TEST_F(CoreTest, APayloadOfAMessageWithoutBytesEndsTheConnection) {
  Make(2, {1});
  NetGroup& group = Open({0, 1});
  Begin(group, {.sequence = 0, .data_bytes = 4096});
  Write(1, Bytes(Header(FrameType::kData), std::string(4096, 'p')));
  EXPECT_TRUE(core_->Left());
}

// They threw out of the thread that read them.
TEST_F(CoreTest, ResultsOfUnknownGroupsAndOperationsAreDropped) {
  Make(2, {1});
  NetGroup& group = Open({0, 1});
  NetOperation& operation = Begin(group, {.sequence = 0, .data_bytes = 4});
  FrameHeader unknown = Header(FrameType::kResult);
  unknown.group = kGroup + 1;
  Write(1, Frame(unknown, ""));
  Write(1, Frame(Header(FrameType::kResult, 17), ""));
  Write(1, Frame(Header(FrameType::kResult, 0), ""));
  Write(1, Frame(Header(FrameType::kData), "data"));
  EXPECT_EQ(Came(group, operation, 1, 0, 4), "data");
}

// The bytes of the message before it were read a second time.
TEST_F(CoreTest, AControlFrameWithoutPayloadDoesNotRepeatTheOneBefore) {
  Make(2, {1});
  NetGroup& group = Open({1, 0});
  Begin(group, {.sequence = 0});
  const GateMessage query = {
      .kind = GateMessage::Kind::kQuery, .round = 1, .items = {{.sequence = 0}}, .ranks = {1, 0}};
  const auto answers = [&] {
    const std::vector<FrameHeader> sent = Sent(1);
    return std::count_if(sent.begin(), sent.end(),
                         [](const FrameHeader& header) { return header.type == FrameType::kGate; });
  };
  Write(1, Frame(Header(FrameType::kGate), query));
  EXPECT_EQ(answers(), 1);
  Write(1, Frame(Header(FrameType::kGate), ""));
  EXPECT_EQ(answers(), 0);
}

// Two control frames were read into one string, which the second moved under the first.
TEST_F(CoreTest, AControlFrameBesideTheFirstLaneEndsTheConnection) {
  Make(2, {1});
  const std::string beat = Frame(Header(FrameType::kBeat), std::string(400, 'b'));
  Write(1, beat.substr(0, 100));
  Write(1, Frame(Header(FrameType::kGate), std::string(100'000, 'g')), /*lane=*/1);
  EXPECT_TRUE(core_->Left());
}

// The engine looks the member up to name it.
TEST_F(CoreTest, AnOddMemberThatTheGroupDoesNotHaveIsNotBelieved) {
  for (const int32_t odd : {2, 1'000'000}) {
    Make(2, {1});
    NetGroup& group = Open({1, 0});
    Begin(group, {.sequence = 0});
    const GateMessage decision = {
        .kind = GateMessage::Kind::kDecision,
        .round = 1,
        .items = {{.sequence = 0, .start = 2, .finish = 2, .digest_odd = 1, .member_odd = odd}}};
    Write(1, Frame(Header(FrameType::kGate), decision));
    const auto oddity = group.gates->OddityOf(0);
    EXPECT_FALSE(oddity.has_value()) << oddity->member;
  }
}

// Memory was taken for whatever length a frame named; what it belongs to was compared later.
TEST_F(CoreTest, DigestsAreComparedBeforeMemoryIsTaken) {
  Make(2, {1});
  NetGroup& group = Open({0, 1});
  const std::vector<uint64_t> incoming = {0, 1000};
  Begin(group, {.sequence = 0, .incoming = &incoming, .data_bytes = 1000});
  FrameHeader header = Header(FrameType::kData);
  header.digest = kDigest + 1;
  header.total = kMessageBytesMax;
  Write(1, Bytes(header, "of a much larger call"));
  // It is the other's call that differs, and the group goes on: an error that shows both digests.
  ASSERT_TRUE(group.gates->OddityOf(0).has_value());
  EXPECT_EQ(group.gates->OddityOf(0)->member, 1);
  EXPECT_EQ(group.gates->OddityOf(0)->digest, kDigest + 1);
  EXPECT_FALSE(core_->Left());
}

TEST_F(CoreTest, MessagesLongerThanTheOperationSaysTakeNoMemory) {
  Make(3, {1, 2});
  NetGroup& group = Open({0, 1});
  const std::vector<uint64_t> incoming = {0, 1000};
  NetOperation& operation =
      Begin(group, {.sequence = 0, .incoming = &incoming, .data_bytes = 1000});
  FrameHeader header = Header(FrameType::kData);
  header.step = 1;
  header.total = kMessageBytesMax;
  Write(1, Bytes(header, "too long"));
  header.step = 2;
  header.sequence = 1;  // which is not begun
  Write(1, Bytes(header, "too early"));
  Write(2, Frame(Header(FrameType::kData), "from one that is not a member"));
  const std::string data(1000, 'd');
  Write(1, Frame(Header(FrameType::kData), data));
  EXPECT_EQ(Came(group, operation, 1, 0, data.size()), data);
  EXPECT_EQ(operation.incoming.size(), 1u);
}

// ---- early data of operations that are never begun

// It counted against what a peer may make this worker keep for ever, and in the end data that was
// wanted was dropped.
TEST_F(CoreTest, EarlyDataOfClosedGroupsIsGivenBack) {
  Make(2, {1});
  FrameHeader early = Header(FrameType::kData);
  early.total = kFragmentBytes;  // of which only one byte comes
  for (uint64_t key = 100; key < 2300; ++key) {
    Open({0, 1}, key);
    early.group = key;
    early.sequence = 0;
    Write(1, Bytes(early, "e"));
    core_->CloseGroup(key);
    early.sequence = 1;
    Write(1, Bytes(early, "e"));
  }
  NetGroup& group = Open({0, 1});
  Write(1, Frame(Header(FrameType::kData), "wanted"));
  EXPECT_EQ(Came(group, Begin(group, {.data_bytes = 6}), 1, 0, 6), "wanted");
}

TEST_F(CoreTest, EarlyDataOfGroupsThatLoseAMemberIsGivenBack) {
  Make(3, {1, 2});
  FrameHeader early = Header(FrameType::kData);
  early.total = kFragmentBytes;
  // 256 MiB, as much as is kept for one peer.
  for (early.group = 100; early.group < 2148; ++early.group) {
    Open({0, 1, 2}, early.group);
    Write(1, Bytes(early, "e"));
  }
  Kill(2);
  LossMessage agreed;
  agreed.proposals = {{.rank = 2, .cause = Cause::kDied, .by = 0, .certain = true}};
  Write(1, Frame(Header(FrameType::kBeat), agreed));
  ASSERT_EQ(core_->losses().size(), 1u);
  NetGroup& group = Open({0, 1});
  Write(1, Frame(Header(FrameType::kData), "wanted"));
  EXPECT_EQ(Came(group, Begin(group, {.data_bytes = 6}), 1, 0, 6), "wanted");
}

TEST_F(CoreTest, ALossSaysWhatThisWorkerSawOfTampering) {
  Make(3, {1, 2});
  Open({0, 1, 2});
  core_->Closed(2, absl::DataLossError("TLS: what came was changed"));
  LossMessage agreed;
  agreed.proposals = {{.rank = 2, .cause = Cause::kDied, .by = 0, .certain = true}};
  Write(1, Frame(Header(FrameType::kBeat), agreed));
  ASSERT_EQ(core_->losses().size(), 1u);
  EXPECT_NE(core_->losses()[0].cause.find("(TLS: what came was changed)"), std::string::npos)
      << core_->losses()[0].cause;
}

TEST_F(CoreTest, FramesThatNobodyCanUseAreCountedByTheReason) {
  Make(3, {1, 2});
  Open({0, 1, 2});
  Open({0, 1}, kGroup + 1);
  core_->CloseGroup(kGroup + 1);
  FrameHeader foreign = Header(FrameType::kData);
  foreign.job = kJob + 1;
  Write(1, Frame(foreign, "of an earlier incarnation"));
  FrameHeader closed = Header(FrameType::kOpen);
  closed.group = kGroup + 1;
  Write(1, Frame(closed, ""));
  LossMessage verdict;
  verdict.known = 1;
  verdict.verdicts = {{.rank = 2, .cause = Cause::kSilent, .by = 1}};
  Write(1, Frame(Header(FrameType::kBeat), verdict));
  ASSERT_EQ(core_->losses().size(), 1u);
  Write(2, Frame(Header(FrameType::kData), "of one that was stopped and wakes"));
  FrameHeader old = Header(FrameType::kData);
  Write(1, Frame(old, "by one that has not heard of it yet"));
  old.losses_known = 1;
  Write(1, Frame(old, "by one that has"));
  old.type = FrameType::kResult;
  Write(1, Frame(old, "for an operation that is not here"));
  const DroppedFrames& dropped = core_->dropped();
  EXPECT_EQ(dropped.other_jobs, 1u);
  EXPECT_EQ(dropped.lost_workers, 1u);
  EXPECT_EQ(dropped.before_losses, 1u);
  EXPECT_EQ(dropped.closed_groups, 3u);
  EXPECT_EQ(Describe(dropped),
            "1 of lost workers, 1 of other jobs, 3 of closed groups, 1 from before a loss");
}

// ---- many members

// What was decided did not fit into one control frame, and the members waited for ever.
TEST_F(CoreTest, ADecisionAboutManyOperationsOfManyMembersArrives) {
  constexpr int kMembers = 1100;
  constexpr uint64_t kOperations = 64;
  Make(kMembers, {1});
  std::vector<int> members(kMembers);
  std::iota(members.begin(), members.end(), 0);
  std::swap(members[0], members[1]);  // worker 1 is the arbiter
  NetGroup& group = Open(members);
  GateProtocol arbiter({members.begin(), members.end()}, 0);
  for (uint64_t sequence = 0; sequence < kOperations; ++sequence) {
    Begin(group, {.sequence = sequence});
    arbiter.Open(sequence, GateProtocol::Mode::kAwaited, {.digest = kDigest}, false);
  }
  // The worker hears what the arbiter says, and all members answer its queries, until it has decided.
  arbiter.Lose(kMembers - 1);
  for (bool decided = false; !decided;) {
    const std::vector<GateProtocol::Outgoing> said = arbiter.TakeMessages();
    ASSERT_FALSE(said.empty());
    for (const GateProtocol::Outgoing& outgoing : said) {
      if (outgoing.to == 1) Write(1, Frame(Header(FrameType::kGate), outgoing.message));
    }
    decided = said.back().message.kind == GateMessage::Kind::kDecision;
    for (int member = 1; !decided && member < kMembers - 1; ++member) {
      arbiter.Receive(
          member,
          {.kind = GateMessage::Kind::kReport, .all = true, .round = said.back().message.round});
    }
  }
  for (uint64_t sequence = 0; sequence < kOperations; ++sequence) {
    EXPECT_EQ(group.gates->State(sequence, Gate::kFinish), GateState::kBroken) << sequence;
  }
}

// ---- groups that are closed

// Of each group that a worker had let go, all was kept, up to 8192 of them.
TEST_F(CoreTest, OfClosedGroupsOnlyTheKeysAreKept) {
  Make(2, {1});
  for (uint64_t key = 1; key <= 100; ++key) {
    NetGroup& group = Open({0, 1}, key);
    Begin(group, {.sequence = 0, .ending = Ending::kShared});
    ASSERT_TRUE(group.gates->Enter(0, Gate::kFinish, /*prompt=*/true));
    FrameHeader header = Header(FrameType::kGate);
    header.group = key;
    Write(1, Frame(header, GateMessage{.kind = GateMessage::Kind::kEnter,
                                       .gate = Gate::kFinish,
                                       .items = {{.sequence = 0}}}));
    ASSERT_EQ(group.gates->State(0, Gate::kFinish), GateState::kPassed);
    core_->End(group, 0);
    core_->CloseGroup(key);
  }
  EXPECT_EQ(core_->groups(), 0u);
  EXPECT_EQ(core_->OpenGroup(50, {0, 1}).code(), absl::StatusCode::kAlreadyExists);
  // What comes late makes nothing.
  const uint64_t before = core_->dropped().closed_groups;
  FrameHeader late = Header(FrameType::kData, 1);
  late.group = 50;
  Write(1, Frame(late, "late"));
  EXPECT_GT(core_->dropped().closed_groups, before);
  EXPECT_EQ(core_->groups(), 0u);
}

// A member that has not heard that an operation passed may ask one that has closed the group since.
TEST_F(CoreTest, AClosedGroupStillTellsWhatHasPassed) {
  Make(3, {1, 2});
  NetGroup& group = Open({1, 0, 2});  // worker 1 is the arbiter
  Begin(group, {.sequence = 0, .ending = Ending::kShared});
  ASSERT_TRUE(group.gates->Enter(0, Gate::kFinish, /*prompt=*/true));
  Write(1, Frame(Header(FrameType::kGate), GateMessage{.kind = GateMessage::Kind::kPassed,
                                                       .gate = Gate::kFinish,
                                                       .items = {{.sequence = 0}}}));
  core_->End(group, 0);
  core_->CloseGroup(kGroup);
  ASSERT_EQ(core_->groups(), 0u);
  Sent(1);
  // Operation 0 has passed here; operation 1 was never begun.
  Write(1, Frame(Header(FrameType::kGate), GateMessage{.kind = GateMessage::Kind::kQuery,
                                                       .round = 9,
                                                       .items = {{.sequence = 0}, {.sequence = 1}},
                                                       .ranks = {1, 0, 2}}));
  std::optional<GateMessage> report;
  for (const auto& [header, payload] : SentFrames(1)) {
    if (header.type != FrameType::kGate) continue;
    absl::StatusOr<GateMessage> message = DecodeGateMessage(payload);
    ASSERT_TRUE(message.ok());
    if (message->kind == GateMessage::Kind::kReport) report = *std::move(message);
  }
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->items.size(), 2u);
  EXPECT_EQ(report->items[0].finish, static_cast<uint8_t>(GateState::kPassed));
  EXPECT_TRUE(report->items[0].entered_finish);
  EXPECT_NE(report->items[1].finish, static_cast<uint8_t>(GateState::kPassed));
  EXPECT_FALSE(report->items[1].entered_start);
}

// A group that is asked for was among those at work again each time, and going through these wrote into memory
// that was given back meanwhile: after deaths, when many ask, workers ended with a broken heap.
TEST_F(CoreTest, AClosedGroupMayBeAskedForAgainAndAgain) {
  Make(3, {1, 2});
  uint64_t asked = 0, answered = 0;
  for (uint64_t key = 10; key < 50; ++key) {
    core_->Renounce(key);
    FrameHeader header = Header(FrameType::kGate);
    header.group = key;
    const auto ask = [&](uint64_t round, std::vector<GateMessage::Item> items) {
      Write(1, Frame(header, GateMessage{.kind = GateMessage::Kind::kQuery,
                                         .round = round,
                                         .items = std::move(items),
                                         .ranks = {1, 0, 2}}));
      ++asked;
    };
    for (uint64_t round = 1; round < key; ++round) {
      ask(round, {});
      ASSERT_EQ(core_->groups(), key - 10) << "all is said, and only the key is kept";
    }
    ask(key, {{.sequence = 0}});  // this one is kept: the operation is to be decided
    ASSERT_EQ(core_->groups(), key - 9);
    core_->Tick(MonotonicClock().NowNs());
    for (const auto& [sent, payload] : SentFrames(1)) {
      if (sent.type == FrameType::kGate && sent.group == key) ++answered;
    }
  }
  EXPECT_EQ(answered, asked);
}

TEST_F(CoreTest, WhatHasComeForAGroupThatIsNotMadeIsDropped) {
  Make(2, {1});
  Write(1, Frame(Header(FrameType::kData), "early"));
  ASSERT_EQ(core_->groups(), 1u);
  core_->Renounce(kGroup);
  EXPECT_EQ(core_->groups(), 0u);
  Write(1, Frame(Header(FrameType::kData, 1), "more"));
  EXPECT_EQ(core_->groups(), 0u);
  EXPECT_GT(core_->dropped().closed_groups, 0u);
}

}  // namespace
}  // namespace syncopate::transport::net
