#include "sync/transfer_check.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::Movement;
using strategy::StartTransfer;

TEST(TransferCheckTest, SaysWhatIsWrongWithATransfer) {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 3; ++i) table.tensors.push_back({.name = "t", .elements = 16});
  const TensorLayout layout(table);
  const TransferPlace place{.rank = 1, .size = 4, .tensors = 3};
  const std::vector<std::pair<StartTransfer, std::string>> cases = {
      {{.last = 2}, ""},
      {{.last = 3}, "no such tensors"},
      {{.first = -1}, "no such tensors"},
      {{.first = 2, .last = 1}, "no such tensors"},
      {{.begin = 64, .end = 128}, ""},
      {{.begin = 1, .end = 5}, "1"},
      {{.end = uint64_t{1} << 40}, "1099511627776"},
      {{.movement = Movement::kPush, .target = 0}, ""},
      {{.movement = Movement::kPush, .target = 4}, "no such target"},
      {{.movement = Movement::kPull}, "no such target"},
      {{.movement = Movement::kPull, .target = 1}, "holds no parameters"},
      {{.movement = Movement::kExchange, .to = {0, 2}, .from = {{3, 0.5}}}, ""},
      {{.movement = Movement::kExchange}, ""},  // alone
      {{.movement = Movement::kExchange, .to = {1}}, "no such neighbours"},
      {{.movement = Movement::kExchange, .to = {0, 0}}, "no such neighbours"},
      {{.movement = Movement::kExchange, .from = {{0, 0.5}, {0, 0.5}}}, "no such neighbours"},
      {{.movement = Movement::kExchange, .from = {{4, 0.5}}}, "no such neighbours"}};
  for (const auto& [start, text] : cases) {
    const absl::Status status = CheckTransfer(start, place, layout);
    EXPECT_EQ(status.ok(), text.empty()) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(text));
  }
  TransferPlace server = place;
  server.has_store = true;
  EXPECT_TRUE(CheckTransfer({.movement = Movement::kPush, .target = 1}, server, layout).ok());
  server.serves = true;
  EXPECT_THAT(std::string(CheckTransfer({}, server, layout).message()),
              ::testing::HasSubstr("none of the training ranks"));
  EXPECT_TRUE(CheckTransfer({.members = {0, 1}}, server, layout).ok());
  EXPECT_TRUE(CheckTransfer({.movement = Movement::kExchange, .to = {0}}, server, layout).ok());
  TransferPlace still = place;
  still.moves_parameters = false;
  EXPECT_FALSE(CheckTransfer({.content = Content::kParameters}, still, layout).ok());
  EXPECT_TRUE(CheckTransfer({}, still, layout).ok());
}

}  // namespace
}  // namespace syncopate::sync
