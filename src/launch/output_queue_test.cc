#include "launch/output_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

TEST(OutputQueueTest, NeverBlocksAndLosesNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  OutputQueue queue(ends[1]);
  std::string expected;
  for (int i = 0; expected.size() <= OutputQueue::kBytesMax; ++i) {
    expected += std::to_string(i) + "\n";
  }
  queue.bytes() += expected;
  EXPECT_TRUE(queue.Full());
  std::string received;
  char buffer[10'000];
  while (received.size() < expected.size()) {  // the write would block if it filled the pipe
    ASSERT_EQ(queue.Write(), 0);
    const ssize_t count = read(ends[0], buffer, sizeof(buffer));
    ASSERT_GT(count, 0);
    received.append(buffer, static_cast<size_t>(count));
  }
  EXPECT_EQ(received, expected);
  EXPECT_TRUE(queue.Empty());
  close(ends[0]);
  close(ends[1]);
}

TEST(OutputQueueTest, ReportsABrokenPipeOnceAndDropsTheRest) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  OutputQueue queue(ends[1]);
  queue.bytes() += "text";
  EXPECT_EQ(queue.Write(), EPIPE);
  EXPECT_TRUE(queue.Empty());
  queue.bytes() += "more";
  EXPECT_EQ(queue.Write(), 0);
  EXPECT_TRUE(queue.Empty());
  close(ends[1]);
}

}  // namespace
}  // namespace syncopate::launch
