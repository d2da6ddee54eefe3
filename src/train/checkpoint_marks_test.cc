#include "train/checkpoint_marks.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Workers that tell one service what they do; it is loaded from its own bytes before every step.
class Tellers {
 public:
  explicit Tellers(int workers, int64_t noted = -1, int64_t previous = -1)
      : workers_(workers), service_(workers, noted, previous) {
    for (int rank = 0; rank < workers; ++rank) status[rank] = {};
    for (int rank = 0; rank < workers; ++rank) Tell(rank);
  }

  void Tell(int rank) {
    Step(ServiceAsked{rank, ++tickets_, EncodeStatus(status[rank], view[rank].version)});
  }
  void Pass(int rank, int64_t mark) {
    status[rank].passed = mark;
    Tell(rank);
  }
  void Write(int rank) {
    status[rank].written = view[rank].open;
    Tell(rank);
  }
  void Note(int rank) {
    status[rank].noted = view[rank].open;
    Tell(rank);
  }
  void End(int rank, int64_t end) {
    status[rank].end = end;
    Tell(rank);
  }
  void Lose(int rank) {
    status.erase(rank);
    view.erase(rank);
    Step(ServiceDeparted{rank, false});
  }
  // Host and standby are lost together; they were not among the workers.
  void Rebuild() {
    std::vector<ServiceReport> reports;
    for (const auto& [rank, each] : status) {
      reports.push_back({rank, EncodeReport(each, view[rank])});
    }
    service_ = CheckpointMarks(workers_, -1, -1);
    ASSERT_TRUE(service_.Rebuild({}, reports).ok());
    for (const auto& [rank, each] : status) Tell(rank);  // open requests are stepped again
  }
  void Step(const ServiceEvent& event) {
    CheckpointMarks copy(0, -1, -1);
    ASSERT_TRUE(copy.Load(service_.State()).ok());
    ASSERT_EQ(copy.State(), service_.State());
    service_ = copy;
    for (const ServiceAnswer& answer : service_.Step({}, event).answers) {
      ASSERT_EQ(answer.code, absl::StatusCode::kOk) << answer.bytes;
      const auto decoded = DecodeView(answer.bytes);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      if (!view.contains(answer.to) && !status.contains(answer.to)) continue;
      if (decoded->version > view[answer.to].version) view[answer.to] = *decoded;
    }
    // Whoever was answered asks again.
    for (const auto& [rank, each] : status) {
      const std::string request = EncodeStatus(each, view[rank].version);
      for (const ServiceAnswer& answer :
           service_.Step({}, ServiceAsked{rank, ++tickets_, request}).answers) {
        const auto decoded = DecodeView(answer.bytes);
        if (answer.to == rank && decoded->version > view[rank].version) view[rank] = *decoded;
      }
    }
  }

  std::map<int, CheckpointStatus> status;  // of live workers
  std::map<int, CheckpointView> view;      // that they know

 private:
  const int workers_;
  CheckpointMarks service_;
  uint64_t tickets_ = 0;
};

TEST(CheckpointMarksTest, ASetCountsWhenAllHaveWrittenAndTheFirstHasNotedIt) {
  Tellers tellers(3);
  EXPECT_EQ(tellers.view[1].open, -1);
  tellers.Pass(1, 20);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(tellers.view[rank].open, 20) << rank;
  tellers.Write(1);
  tellers.Pass(1, 40);  // it is quick: the next set waits for this one
  tellers.Write(0);
  EXPECT_EQ(tellers.view[2].open, 20);
  EXPECT_THAT(tellers.view[0].ranks, IsEmpty());
  tellers.Write(2);
  EXPECT_THAT(tellers.view[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(tellers.view[0].noted, -1);
  tellers.Note(0);
  EXPECT_EQ(tellers.view[2].noted, 20);
  EXPECT_EQ(tellers.view[2].open, 40);
  for (int rank = 0; rank < 3; ++rank) tellers.Write(rank);
  tellers.Note(0);
  EXPECT_EQ(tellers.view[1].noted, 40);
  EXPECT_EQ(tellers.view[1].previous, 20);
}

TEST(CheckpointMarksTest, LostWorkersHoldUpNothing) {
  Tellers tellers(4);
  tellers.Pass(0, 10);
  for (const int rank : {0, 1, 3}) tellers.Write(rank);
  EXPECT_THAT(tellers.view[0].ranks, IsEmpty());
  tellers.Lose(2);  // the only one that had not written
  EXPECT_THAT(tellers.view[0].ranks, ElementsAre(0, 1, 3));
  tellers.Lose(0);  // the one that was to note it
  EXPECT_THAT(tellers.view[1].ranks, ElementsAre(1, 3));
  tellers.Note(1);
  EXPECT_EQ(tellers.view[3].noted, 10);
}

TEST(CheckpointMarksTest, AtTheEndALastSetIsWrittenByAll) {
  Tellers tellers(2, /*noted=*/60, /*previous=*/40);
  EXPECT_EQ(tellers.view[0].noted, -1) << "nothing is new";
  tellers.End(0, 100);
  EXPECT_EQ(tellers.view[0].open, -1);
  tellers.Pass(1, 80);  // the one that has ended takes part
  EXPECT_EQ(tellers.view[0].open, 80);
  tellers.Write(0);
  tellers.Write(1);
  tellers.Note(0);
  EXPECT_EQ(tellers.view[0].previous, 60);
  EXPECT_FALSE(tellers.view[0].over);
  tellers.End(1, 99);
  EXPECT_EQ(tellers.view[1].open, 100);
  tellers.Write(0);
  tellers.Write(1);
  tellers.Note(0);
  EXPECT_TRUE(tellers.view[0].over);
  EXPECT_TRUE(tellers.view[1].over);
  EXPECT_EQ(tellers.view[1].noted, 100);
}

TEST(CheckpointMarksTest, NoLastSetWhereTheLastMarkWasTheEnd) {
  Tellers tellers(1);
  tellers.Pass(0, 40);
  tellers.Write(0);
  tellers.Note(0);
  tellers.End(0, 40);
  EXPECT_TRUE(tellers.view[0].over);
  EXPECT_EQ(tellers.view[0].noted, 40);
}

TEST(CheckpointMarksTest, WhatIsNoStatusIsRefused) {
  CheckpointMarks service(2, -1, -1);
  EXPECT_EQ(service.Step({}, ServiceAsked{0, 1, "nonsense"}).answers.at(0).code,
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(service.Rebuild({}, {{0, "nonsense"}}).ok());
  const std::string state = service.State();
  for (size_t length = 0; length < state.size(); ++length) {
    EXPECT_FALSE(CheckpointMarks(2, -1, -1).Load(state.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(DecodeView(EncodeView({}) + "x").ok());
}

// Workers at random speed that are lost at random, and services that are rebuilt: every set that counts was
// written by all that lived then, sets only grow, and all come to their end.
TEST(CheckpointMarksTest, EverySetIsWholeWhateverHappens) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int workers = 1 + static_cast<int>(random.Below(5));
    Tellers tellers(workers);
    std::map<int, int64_t> position;
    int64_t counted = -1;
    bool over = false;
    for (int i = 0; i < 20'000 && !over && !HasFatalFailure(); ++i) {
      auto at = tellers.status.begin();
      std::advance(at, static_cast<ptrdiff_t>(random.Below(tellers.status.size())));
      const int rank = at->first;
      if (tellers.status.size() > 1 && random.Below(200) == 0) {
        tellers.Lose(rank);
        continue;
      }
      if (random.Below(300) == 0) tellers.Rebuild();
      const CheckpointView& view = tellers.view[rank];
      if (view.open > tellers.status[rank].written) {
        tellers.Write(rank);
      } else if (!view.ranks.empty() && view.ranks.front() == rank &&
                 view.open > tellers.status[rank].noted) {
        for (const auto& [other, status] : tellers.status) {
          EXPECT_GE(status.written, view.open) << other;
        }
        EXPECT_GT(view.open, counted);
        counted = view.open;
        tellers.Note(rank);
      } else if (position[rank] < 60) {
        position[rank] += 1 + static_cast<int64_t>(random.Below(9));
        if (const int64_t mark = position[rank] / 10 * 10; mark > 0) tellers.Pass(rank, mark);
      } else if (tellers.status[rank].end < 0) {
        tellers.End(rank, position[rank]);
      }
      over = true;
      for (const auto& [each, unused] : tellers.status) over = over && tellers.view[each].over;
    }
    EXPECT_TRUE(over);
    EXPECT_GE(counted, 60);
  }
}

}  // namespace
}  // namespace syncopate::train
