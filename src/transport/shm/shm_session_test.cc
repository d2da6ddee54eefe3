// Sessions in shared memory that only show themselves after very many.
#include "transport/shm/shm_session.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::shm {
namespace {

// A flag is up when it holds the generation of its session. The generation that followed 2^32 - 1
// was 0, which is what flags hold that nobody has raised yet.
TEST(ShmSessionTest, UntouchedFlagsStayDownAfterFourBillionSessions) {
  std::unique_ptr<Peers> peers[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      peers[rank] = *Peers::Meet({.job = "generations-" + std::to_string(getpid()),
                                  .rank = rank,
                                  .size = 2,
                                  .arena_bytes = 1 << 20},
                                 MonotonicClock());
    });
  }
  for (std::thread& thread : threads) thread.join();
  SessionContext contexts[2] = {{.peers = *peers[0]}, {.peers = *peers[1]}};
  std::unique_ptr<ShmGroupPort> ports[2];
  std::unique_ptr<Session> sessions[2];
  for (int rank = 0; rank < 2; ++rank) {
    contexts[rank].generation = 0xffffffff;
    ports[rank] = *ShmGroupPort::Make(contexts[rank], 77, {0, 1});
    sessions[rank] = *ports[rank]->Open(
        {.sequence = 0, .data = *peers[rank]->arena().Allocate(64), .data_bytes = 64, .steps = 4});
  }
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(sessions[rank]->Enter(Gate::kStart, rank));
  }
  const Extent where = {Space::kData, 0, 8};
  EXPECT_EQ(sessions[1]->Arrived(0, 3, where), nullptr);
  EXPECT_FALSE(sessions[0]->Consumed(1, 3, 2));
  sessions[0]->Offer(3, 1, nullptr, where);
  EXPECT_NE(sessions[1]->Arrived(0, 3, where), nullptr);
  sessions[1]->Consume(2, 0, 3);
  EXPECT_TRUE(sessions[0]->Consumed(1, 3, 2));
}

}  // namespace
}  // namespace syncopate::transport::shm
