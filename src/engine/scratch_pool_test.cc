// What a pool of scratch memory keeps, it gives again, and nobody may touch it meanwhile.
#include "engine/scratch_pool.h"

#include <cstddef>
#include <cstring>
#include <memory>

#include "gtest/gtest.h"
#include "transport/loop/loop_transport.h"

namespace syncopate::engine {
namespace {

TEST(ScratchPoolTest, WhatItKeepsIsForbiddenUntilItIsTakenAgain) {
  transport::LoopNetwork network(1, 1);
  const std::unique_ptr<transport::Transport> transport = network.Attach(0);
  ScratchPool pool(*transport);
  constexpr size_t kBytes = 4096;
  const absl::StatusOr<std::byte*> block = pool.Take(kBytes);
  ASSERT_TRUE(block.ok()) << block.status();
  volatile std::byte* const last = *block + kBytes - 1;
  pool.Give(*block, kBytes);
#ifdef __SANITIZE_ADDRESS__
  EXPECT_DEATH(static_cast<void>(*last), "use-after-poison");
#else
  static_cast<void>(last);
#endif

  const absl::StatusOr<std::byte*> again = pool.Take(kBytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *block);
  std::memset(*again, 1, kBytes);
  pool.Give(*again, kBytes);
}

}  // namespace
}  // namespace syncopate::engine
