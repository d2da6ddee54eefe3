#include "transport/net/send_queue.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::byte kPayload[4] = {};

FrameHeader Frame(FrameType type, int priority = 0) {
  FrameHeader header;
  header.type = type;
  header.priority = priority;
  header.payload_bytes = sizeof(kPayload);
  return header;
}

TEST(SendQueueTest, DataGoesByPriorityThenInOrder) {
  SendQueue queue;
  queue.Add(Frame(FrameType::kData, 1), kPayload, 1);
  queue.Add(Frame(FrameType::kData, 5), kPayload, 2);
  queue.Add(Frame(FrameType::kResult, 5), kPayload, 3);
  EXPECT_FALSE(queue.TakeControl().has_value());
  for (const uint64_t cookie : {2, 3, 1}) EXPECT_EQ(queue.TakeData()->cookie, cookie);
  EXPECT_FALSE(queue.TakeData().has_value());
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, ControlFramesHaveAQueueOfTheirOwn) {
  SendQueue queue;
  queue.Add(Frame(FrameType::kData), kPayload, 1);
  queue.Add(Frame(FrameType::kGate), kPayload, 2);
  EXPECT_EQ(queue.TakeControl()->cookie, 2u);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.TakeData()->cookie, 1u);
}

TEST(SendQueueTest, WithoutACookieThePayloadIsCopied) {
  SendQueue queue;
  std::byte payload[4] = {std::byte{7}, std::byte{7}, std::byte{7}, std::byte{7}};
  queue.Add(Frame(FrameType::kGate), payload, 0);
  queue.Add(Frame(FrameType::kData), payload, 9);
  std::memset(payload, 0, sizeof(payload));
  EXPECT_EQ(*static_cast<const char*>(queue.TakeControl()->bytes()), 7);
  EXPECT_EQ(queue.TakeData()->bytes(), payload);
}

TEST(SendQueueTest, WhatIsRemovedIsNotSent) {
  SendQueue queue;
  queue.Add(Frame(FrameType::kData), kPayload, 1);
  queue.Add(Frame(FrameType::kData), kPayload, 2);
  queue.Add(Frame(FrameType::kData), kPayload, 1);
  queue.Remove(1);
  EXPECT_EQ(queue.TakeData()->cookie, 2u);
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, ClearingTellsWhatWasWaitedFor) {
  SendQueue queue;
  queue.Add(Frame(FrameType::kGate), kPayload, 0);
  queue.Add(Frame(FrameType::kGate), kPayload, 3);
  queue.Add(Frame(FrameType::kData, 1), kPayload, 1);
  queue.Add(Frame(FrameType::kData, 2), kPayload, 2);
  EXPECT_THAT(queue.Clear(), ElementsAre(3, 2, 1));
  EXPECT_TRUE(queue.empty());
  EXPECT_THAT(queue.Clear(), IsEmpty());
}

}  // namespace
}  // namespace syncopate::transport::net
