#include "services/service_message.h"

#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agreement_message.h"
#include "services/fields.h"
#include "services/sample_message.h"

namespace syncopate::services {
namespace {

using ::testing::HasSubstr;

// Every message reads back to the same bytes; every other length of them is refused.
template <typename Message>
void ExpectRoundTrip(const Message& message, std::string (*encode)(const Message&),
                     absl::StatusOr<Message> (*decode)(absl::string_view)) {
  const std::string bytes = encode(message);
  const absl::StatusOr<Message> read = decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(encode(*read), bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode(absl::string_view(bytes).substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(decode(bytes + "x").ok());
}

std::vector<ServiceMessage> Messages() {
  const RequestMessage request = {.ticket = 7, .open = {3, 7}, .service = 2, .bytes = "request"};
  const Change change = {.kind = Change::Kind::kJoined, .rank = 5, .order = 2, .may_host = true};
  return {
      {4, request},
      {4, AnswerMessage{7, absl::StatusCode::kNotFound, "nothing"}},
      {4, EventMessage{1, -5, LoggedRequest{3, request}}},
      {4, EventMessage{2, 5, change}},
      {4, EventMessage{3, 6, LoggedTick{1}}},
      {4, AckMessage{3, 0x1234}},
      {4, StateMessage{"state"}},
      {4, ReportWantedMessage{}},
      {4, ReportMessage{{"one", "", "three"}}},
      {4, LeavingMessage{}},
      {4, MayLeaveMessage{}},
      {4, EndedMessage{absl::StatusCode::kUnavailable, "why"}},
  };
}

TEST(ServiceMessageTest, EveryMessageRoundTrips) {
  for (const ServiceMessage& message : Messages()) {
    SCOPED_TRACE(std::string(NameOf(message)));
    ExpectRoundTrip(message, EncodeMessage, DecodeMessage);
  }
}

TEST(ServiceMessageTest, BytesThatChangedAreReadOrRefusedWithoutHarm) {
  Random random(1);
  for (const ServiceMessage& message : Messages()) {
    const std::string good = EncodeMessage(message);
    for (int i = 0; i < 2000; ++i) {
      std::string bytes = good;
      for (int k = 0; k < 3; ++k)
        bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
      const auto read = DecodeMessage(bytes);
      if (!read.ok()) continue;
      EXPECT_TRUE(DecodeMessage(EncodeMessage(*read)).ok());
    }
  }
}

TEST(ServiceMessageTest, BadRequestsAreRefused) {
  const auto refused = [](RequestMessage request) {
    return !DecodeMessage(EncodeMessage({1, std::move(request)})).ok();
  };
  EXPECT_TRUE(refused({.ticket = 1, .open = {}, .bytes = ""}));      // it does not wait for it
  EXPECT_TRUE(refused({.ticket = 1, .open = {2}, .bytes = ""}));     // the same
  EXPECT_TRUE(refused({.ticket = 1, .open = {2, 1}, .bytes = ""}));  // not in order
  EXPECT_TRUE(refused({.ticket = 0, .open = {0}, .bytes = ""}));     // tickets begin with 1
  std::vector<uint64_t> many;
  for (uint64_t i = 1; i <= limits::kTicketsOpenMax + 1; ++i) many.push_back(i);
  EXPECT_TRUE(refused({.ticket = 1, .open = many, .bytes = ""}));
  many.pop_back();
  EXPECT_FALSE(refused({.ticket = 1, .open = many, .bytes = ""}));
}

TEST(ServiceMessageTest, ALengthBeyondItsLimitTakesNoMemory) {
  std::string bytes = EncodeMessage({1, StateMessage{""}});
  bytes.replace(bytes.size() - 4, 4, std::string(4, '\xff'));
  const auto read = DecodeMessage(bytes);
  EXPECT_THAT(read.status().message(), HasSubstr("state"));
  EXPECT_THAT(DecodeMessage(std::string(9, '\x7f')).status().message(), HasSubstr("type 127"));
}

const ValueTitle kTitle = {.kind = "schedule",
                           .version = 3,
                           .scale = Scale::kSamples,
                           .unit = 128,
                           .further = 3,
                           .digest = {1, 2},
                           .bytes = 5};

TEST(AgreementMessageTest, EveryMessageRoundTrips) {
  const std::vector<AgreementRequest> requests = {Propose{kTitle, "value"}, Listen{{1, 2}},
                                                  Position{{1, 2}, 99, {1, 2}, "fault"},
                                                  Fetch{"schedule", 3}};
  for (const auto& request : requests) ExpectRoundTrip(request, EncodeRequest, DecodeRequest);
  const std::vector<AgreementAnswer> answers = {
      Settled{{1, 2}, 100}, Question{{1, 2}, kTitle, "value"},
      Outcome{{1, 2}, true, 100, kTitle, ""}, Welcome{{1, 2}, {{kTitle, 7}, {kTitle, 8}}},
      Value{kTitle, "value"}};
  for (const auto& answer : answers) ExpectRoundTrip(answer, EncodeAnswer, DecodeAnswer);
  ExpectRoundTrip(AgreementReport{{{kTitle, true, 9, "value"}, {kTitle, false, 0, ""}}},
                  EncodeReport, DecodeReport);
}

TEST(AgreementMessageTest, BadTitlesAreRefused) {
  const auto refused = [](void (*change)(ValueTitle&)) {
    ValueTitle title = kTitle;
    change(title);
    return !DecodeRequest(EncodeRequest(Propose{title, "value"})).ok();
  };
  EXPECT_FALSE(refused([](ValueTitle&) {}));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.kind.clear(); }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.kind = "a\nb"; }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.kind = std::string(65, 'k'); }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.version = 0; }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.unit = 0; }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.unit = UINT64_MAX; }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.further = 0; }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.further = 65; }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.scale = static_cast<Scale>(3); }));
  EXPECT_TRUE(refused([](ValueTitle& title) { title.bytes = 6; }));  // it has 5
  EXPECT_FALSE(
      DecodeRequest(EncodeRequest(Position{.round = {}, .position = -1, .digest = {}, .fault = ""}))
          .ok());
}

TEST(SampleMessageTest, EveryMessageRoundTrips) {
  const std::vector<SampleRequest> requests = {NextRequest{8, {{1, 2}, {1, 3}}}, SummaryRequest{}};
  for (const auto& request : requests) {
    ExpectRoundTrip(request, EncodeSampleRequest, DecodeSampleRequest);
  }
  const std::vector<SampleAnswer> answers = {
      GrantAnswer{{{{1, 2}, 0, {4, 4}}, {{1, 3}, 0, {9, 1}}}, 0, false},
      SummaryAnswer{{1, {{{0, 2}}, {}}}, 3}};
  for (const auto& answer : answers)
    ExpectRoundTrip(answer, EncodeSampleAnswer, DecodeSampleAnswer);
  ExpectRoundTrip(SampleReport{1, {{1, {{0, 4}, {8, 4}}}}, {{{1, 3}, 1, {4, 4}}}},
                  EncodeSampleReport, DecodeSampleReport);
}

TEST(SampleMessageTest, ManyOrEmptyRangesAreRefused) {
  EXPECT_FALSE(
      DecodeSampleRequest(EncodeSampleRequest(NextRequest{1, std::vector<ServiceId>(65)})).ok());
  EXPECT_FALSE(
      DecodeSampleAnswer(EncodeSampleAnswer(GrantAnswer{{{{1, 2}, 0, {4, 0}}}, 0, false})).ok());
  EXPECT_FALSE(
      DecodeSampleReport(EncodeSampleReport(SampleReport{0, {{0, {{4, 4}, {2, 1}}}}, {}})).ok());
}

// A truth is 0 or 1; anything else would be written otherwise than it was read.
TEST(ServiceMessageTest, ATruthThatIsNeitherIsRefused) {
  const Change change = {.kind = Change::Kind::kJoined, .rank = 5, .order = 2, .may_host = true};
  std::string bytes = EncodeMessage({4, EventMessage{2, 5, change}});
  ASSERT_EQ(bytes.back(), 1);
  bytes.back() = 2;
  EXPECT_FALSE(DecodeMessage(bytes).ok());
}

}  // namespace
}  // namespace syncopate::services
