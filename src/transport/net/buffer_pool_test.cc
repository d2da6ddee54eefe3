// What a pool of receive buffers keeps, it gives again, and nobody may touch it meanwhile.
#include "transport/net/buffer_pool.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

TEST(BufferPoolTest, WhatItKeepsIsForbiddenUntilItIsTakenAgain) {
  BufferPool pool;
  Buffer buffer = pool.Take(5000);
  ASSERT_GE(buffer.capacity, 5000u);
  volatile std::byte* const last = buffer.bytes.get() + buffer.capacity - 1;
  pool.Give(std::move(buffer));
#ifdef __SANITIZE_ADDRESS__
  EXPECT_DEATH(static_cast<void>(*last), "use-after-poison");
#else
  static_cast<void>(last);
#endif

  const Buffer again = pool.Take(6000);
  EXPECT_EQ(again.bytes.get() + again.capacity - 1, last);
  std::memset(again.bytes.get(), 1, again.capacity);
}

TEST(BufferPoolTest, BeyondItsLimitNothingIsKept) {
  BufferPool pool(4096);
  Buffer one = pool.Take(4096), two = pool.Take(4096);
  const std::byte* const first = one.bytes.get();
  pool.Give(std::move(one));
  pool.Give(std::move(two));  // freed: the sanitizer would report one that is lost
  const Buffer again = pool.Take(4096);
  EXPECT_EQ(again.bytes.get(), first);
}

}  // namespace
}  // namespace syncopate::transport::net
