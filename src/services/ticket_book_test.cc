#include "services/ticket_book.h"

#include "gtest/gtest.h"
#include "services/open_tickets.h"

namespace syncopate::services {
namespace {

using Found = TicketBook::Found;

Answer AnswerTo(int rank, uint64_t ticket, bool kept = true) {
  return {.to = rank, .ticket = ticket, .bytes = absl::StrCat("answer ", ticket), .kept = kept};
}

TEST(TicketBookTest, ARequestIsSteppedOnceAndItsAnswerKept) {
  TicketBook book;
  EXPECT_EQ(book.Enter(3, 1, 0, {1}), Found::kNew);
  EXPECT_EQ(book.Enter(3, 1, 0, {1}), Found::kOpen);
  EXPECT_TRUE(book.Close(0, AnswerTo(3, 1)));
  EXPECT_FALSE(book.Close(0, AnswerTo(3, 1)));
  ASSERT_EQ(book.Enter(3, 1, 0, {1}), Found::kAnswered);
  EXPECT_EQ(book.kept().bytes, "answer 1");
  EXPECT_EQ(book.Enter(4, 1, 0, {1}), Found::kNew);  // another worker's
}

TEST(TicketBookTest, AnAnswerThatIsNotKeptIsSteppedAgain) {
  TicketBook book;
  EXPECT_EQ(book.Enter(3, 1, 0, {1}), Found::kNew);
  EXPECT_TRUE(book.Close(0, AnswerTo(3, 1, false)));
  EXPECT_EQ(book.Enter(3, 1, 0, {1}), Found::kNew);
}

TEST(TicketBookTest, AnAnswerIsLetGoWhenTheAskerHasIt) {
  TicketBook book;
  // Ticket 1 stays open for long; it must not hold up the others.
  EXPECT_EQ(book.Enter(0, 1, 0, {1}), Found::kNew);
  std::string first;
  book.AppendTo(first);
  for (uint64_t ticket = 2; ticket < 1000; ++ticket) {
    ASSERT_EQ(book.Enter(0, ticket, 0, {1, ticket}), Found::kNew);
    ASSERT_TRUE(book.Close(0, AnswerTo(0, ticket)));
  }
  std::string bytes;
  book.AppendTo(bytes);
  EXPECT_LE(bytes.size(), first.size() + 50);
  EXPECT_EQ(book.Enter(0, 1, 0, {1}), Found::kOpen);
  EXPECT_EQ(book.Enter(0, 1001, 0, {1001}), Found::kNew);
  EXPECT_EQ(book.Enter(0, 500, 0, {500, 1001}), Found::kOld);
}

TEST(TicketBookTest, AnswersOfOthersOrOfNobodyAreDropped) {
  TicketBook book;
  EXPECT_FALSE(book.Close(0, AnswerTo(0, 1)));
  EXPECT_EQ(book.Enter(0, 1, 2, {1}), Found::kNew);
  EXPECT_FALSE(book.Close(1, AnswerTo(0, 1)));  // another service
  EXPECT_FALSE(book.Close(2, AnswerTo(0, 2)));
  book.Forget(0);
  EXPECT_FALSE(book.Close(2, AnswerTo(0, 1)));
}

TEST(TicketBookTest, ItsBytesRoundTripAndBadOnesAreRefused) {
  TicketBook book;
  EXPECT_EQ(book.Enter(1, 1, 0, {1}), Found::kNew);
  EXPECT_EQ(book.Enter(1, 2, 3, {1, 2}), Found::kNew);
  EXPECT_TRUE(book.Close(3, AnswerTo(1, 2)));
  EXPECT_EQ(book.Enter(9, 4, 0, {4}), Found::kNew);
  std::string bytes, again;
  book.AppendTo(bytes);
  TicketBook copy;
  ByteReader reader(bytes);
  ASSERT_TRUE(copy.Load(reader).ok());
  EXPECT_TRUE(reader.AtEnd());
  copy.AppendTo(again);
  EXPECT_EQ(bytes, again);
  EXPECT_EQ(copy.Enter(1, 2, 3, {1, 2}), Found::kAnswered);
  for (size_t length = 0; length < bytes.size(); ++length) {
    ByteReader cut(absl::string_view(bytes).substr(0, length));
    EXPECT_FALSE(TicketBook().Load(cut).ok()) << length;
  }
}

TEST(OpenTicketsTest, NumbersGrowAndAreLimited) {
  OpenTickets tickets;
  for (uint64_t i = 1; i <= limits::kTicketsOpenMax; ++i) {
    ASSERT_EQ(*tickets.Open({.service = 0, .tag = i, .bytes = "x"}), i);
  }
  EXPECT_EQ(tickets.Open({}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(tickets.Close(7)->tag, 7u);
  EXPECT_FALSE(tickets.Close(7).has_value());
  EXPECT_EQ(*tickets.Open({}), limits::kTicketsOpenMax + 1);
  EXPECT_EQ(tickets.MessageOf(8).open.size(), limits::kTicketsOpenMax);
  EXPECT_EQ(tickets.Open({.bytes = std::string(limits::kServiceBytesMax + 1, 'x')}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::services
