// The life of a transfer, on real collectives among threads: started, ended call by call, applied
// tensor by tensor, forgotten; and one that fails.
#include "sync/live_transfers.h"

#include <cstring>
#include <string>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/status.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::StartTransfer;

// Two types of elements, so that a transfer of all needs two calls.
TensorTable TransferTable() {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 4; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i),
                             .elements = 100,
                             .type = i == 3 ? DataType::kFloat64 : DataType::kFloat32});
  }
  return table;
}

// Every element is the rank of the worker.
class RankReplica : public Replica {
 public:
  RankReplica(const TensorTable& table, int rank) : table_(table), rank_(rank) {}
  void Pack(Content, int tensor, double, std::byte* to) override {
    const TensorInfo& info = table_.tensors[static_cast<size_t>(tensor)];
    for (uint64_t i = 0; i < info.elements; ++i) {
      if (info.type == DataType::kFloat64) {
        const double value = rank_;
        std::memcpy(to + i * sizeof(value), &value, sizeof(value));
      } else {
        const float value = static_cast<float>(rank_);
        std::memcpy(to + i * sizeof(value), &value, sizeof(value));
      }
    }
  }
  double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }

 private:
  const TensorTable& table_;
  const int rank_;
};

// A worker's transfers with all that they need, without a strategy or a thread of their own.
struct Bench {
  explicit Bench(Worker& worker)
      : replica(table, worker.rank()),
        values(worker, table, replica),
        transfers(worker, values, inbox, MonotonicClock(), {}) {}

  void Start(const StartTransfer& start, int64_t iteration = 0) {
    ASSERT_TRUE(values.Allocate(start.content).ok());
    values.PackParameters(start);
    transfers.Start(start, {.iteration = iteration});
  }
  // Takes notes of calls until a transfer has ended.
  LiveTransfers::Transfer WaitForEnd() {
    for (;;) {
      EXPECT_TRUE(inbox.Wait(MonotonicClock().NowNs() + 60'000'000'000));
      for (const TransferInbox::Item& item : inbox.Take()) {
        ++calls;
        if (auto ended = transfers.CallEnded(std::get<EndedCall>(item))) return *ended;
      }
    }
  }

  const TensorTable table = TransferTable();
  RankReplica replica;
  PackedValues values;
  TransferInbox inbox{MonotonicClock(), [] {}};
  LiveTransfers transfers;
  int calls = 0;
};

TEST(LiveTransfersTest, ATransferEndsWithItsLastCallAndIsForgottenWithItsLastTensor) {
  worker::RunWorkers(2, [](Worker& worker) {
    Bench bench(worker);
    const StartTransfer start{.transfer = 9, .content = Content::kParameters, .last = 3};
    bench.Start(start, 5);
    EXPECT_EQ(bench.transfers.Of(2), 9);
    EXPECT_EQ(bench.transfers.BroughtBy(9), nullptr);
    const LiveTransfers::Transfer ended = bench.WaitForEnd();
    EXPECT_EQ(bench.calls, 2);  // one for each type
    EXPECT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_EQ(ended.start, start);
    EXPECT_EQ(ended.iteration, 5);
    EXPECT_EQ(ended.bytes, 3u * 400 + 800);
    EXPECT_GE(ended.end_ns, ended.begin_ns);
    const float* const mean = reinterpret_cast<float*>(bench.values.At(Content::kParameters));
    EXPECT_EQ(mean[0], 0.5f);
    EXPECT_EQ(mean[299], 0.5f);

    ASSERT_NE(bench.transfers.BroughtBy(9), nullptr);
    bench.transfers.Applied(Content::kGradients, {0, 1, 2, 3});  // not what it brought
    bench.transfers.Applied(Content::kParameters, {0, 2, 3});
    EXPECT_NE(bench.transfers.BroughtBy(9), nullptr);
    EXPECT_EQ(bench.transfers.Of(1), 9);
    bench.transfers.Applied(Content::kParameters, {1});
    EXPECT_EQ(bench.transfers.BroughtBy(9), nullptr);
    EXPECT_EQ(bench.transfers.Of(1), -1);

    const std::vector<EndedTransfer> list = bench.transfers.TakeEnded();
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].first, 0);
    EXPECT_EQ(list[0].last, 3);
    EXPECT_EQ(list[0].bytes, ended.bytes);
    EXPECT_TRUE(bench.transfers.TakeEnded().empty());
    EXPECT_EQ(bench.transfers.bytes_sent(), ended.bytes);
  });
}

TEST(LiveTransfersTest, ATransferWhoseMemberIsGoneFailsAndTheOthersGoOn) {
  worker::RunWorkers(3, [](Worker& worker) {
    ASSERT_TRUE(worker.world().Barrier().ok());  // all have come
    if (worker.rank() == 2) return;              // it leaves
    Bench bench(worker);
    bench.Start({.transfer = 1, .content = Content::kParameters, .last = 2});
    const LiveTransfers::Transfer failed = bench.WaitForEnd();
    EXPECT_FALSE(failed.status.ok());
    EXPECT_EQ(GetSuspect(failed.status), 2) << failed.status;
    EXPECT_EQ(bench.transfers.Of(1), -1);
    EXPECT_TRUE(bench.transfers.TakeEnded().empty());
    EXPECT_TRUE(bench.transfers.Lose(2));
    EXPECT_FALSE(bench.transfers.Lose(2));  // it was known
    // All that are left.
    bench.Start({.transfer = 2, .content = Content::kParameters, .last = 2});
    const LiveTransfers::Transfer ended = bench.WaitForEnd();
    EXPECT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_EQ(*reinterpret_cast<float*>(bench.values.At(Content::kParameters)), 0.5f);
  });
}

TEST(LiveTransfersTest, ACallThatIsRefusedIsToldAsTheEndOfItsTransfer) {
  worker::RunWorkers(1, [](Worker& worker) {
    Bench bench(worker);
    bench.Start({.transfer = 1, .content = Content::kParameters, .members = {0, 7}});
    const LiveTransfers::Transfer failed = bench.WaitForEnd();
    EXPECT_EQ(failed.status.code(), absl::StatusCode::kInvalidArgument) << failed.status;
    EXPECT_THAT(std::string(failed.status.message()), ::testing::HasSubstr("7 is not a rank"));
    EXPECT_EQ(bench.transfers.BroughtBy(1), nullptr);
  });
}

}  // namespace
}  // namespace syncopate::sync
