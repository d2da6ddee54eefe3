#include "sync/serve_request.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace syncopate::sync {
namespace {

TEST(ServeRequestTest, RoundTrips) {
  for (const bool push : {false, true}) {
    const ServeRequest request{.push = push,
                               .first = 2,
                               .last = 7,
                               .begin = 64,
                               .end = uint64_t{1} << 40,
                               .weight = 0.3,
                               .share = 0.25,
                               .group = 9,
                               .version = 3};
    const auto read = DecodeServeRequest(Encode(request));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, request);
  }
}

TEST(ServeRequestTest, WhatIsCutOffLongerOrNoNumberIsRefused) {
  const std::string good = Encode({.push = true, .last = 1});
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_EQ(DecodeServeRequest(good.substr(0, bytes)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bytes;
  }
  EXPECT_FALSE(DecodeServeRequest(good + '\0').ok());
  EXPECT_FALSE(DecodeServeRequest('\3' + good.substr(1)).ok());
  EXPECT_FALSE(
      DecodeServeRequest(Encode({.weight = std::numeric_limits<double>::infinity()})).ok());
  EXPECT_FALSE(DecodeServeRequest(Encode({.share = std::nan("")})).ok());
  EXPECT_FALSE(DecodeServeRequest(Encode({.share = -0.5})).ok());
}

TEST(ServeRequestTest, MovesOnlyWhatTheLayoutHas) {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 3; ++i) table.tensors.push_back({.name = "t", .elements = 16});
  const TensorLayout layout(table);
  const auto whole = RangesOf({.first = 0, .last = 2}, layout, 3);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->size(), 1u);
  EXPECT_EQ(whole->front().elements, 48u);
  EXPECT_TRUE(RangesOf({.begin = 64, .end = 128}, layout, 3).ok());
  for (const ServeRequest& bad : std::vector<ServeRequest>{{.first = 0, .last = 3},
                                                           {.first = 2, .last = 1},
                                                           {.first = ~0u, .last = ~0u},
                                                           {.begin = 2, .end = 64},
                                                           {.begin = 0, .end = ~uint64_t{0}}}) {
    EXPECT_EQ(RangesOf(bad, layout, 3).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace syncopate::sync
