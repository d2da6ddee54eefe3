// A live run's log, read back and played through the pure strategy: it decides the same.
#include "sync/decision_log.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/planners.h"
#include "strategy/options_json.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/assemble.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using ::testing::HasSubstr;

class NothingReplica : public Replica {
 public:
  void Pack(strategy::Content, int, double, std::byte* to) override { *to = std::byte{0}; }
  double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }
};

TensorTable LoggedTable() {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 5; ++i) {
    table.tensors.push_back(
        {.name = absl::StrCat("t", i), .elements = static_cast<uint64_t>(7 * i + 1)});
  }
  return table;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The value of a key that is a number or a flat text, without a JSON library.
std::string Field(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":");
  if (at == std::string::npos) return "";
  const size_t from = at + key.size() + 3;
  return line.substr(from, line.find_first_of(",}", from) - from);
}

void TrainWith(const std::string& strategy, const std::string& log, int workers, int iterations) {
  const TensorTable table = LoggedTable();
  worker::RunWorkers(workers, [&](Worker& worker) {
    auto file = DecisionLog::Open(log, worker.rank(), /*anew=*/false);
    ASSERT_TRUE(file.ok()) << file.status();
    NothingReplica replica;
    strategy::StrategyOptions values;
    values.schedule = std::make_shared<Schedule>(*schedule::MakeSchedule(
        "wfbp", table, {.a = 1e-5, .b = 1e-9, .gamma = {1, 1.5}, .source = ""}));
    auto synchronizer = MakeSynchronizer(worker, table, replica, strategy, values,
                                         {.first_iteration = 10, .witness = file->get()});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int i = 0; i < iterations; ++i) {
      ASSERT_TRUE((*synchronizer)->Begin(2, 0).ok());
      for (int t = 0; t < table.size(); ++t) ASSERT_TRUE((*synchronizer)->Need(t).ok());
      ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
      for (int t = table.size() - 1; t >= 0; --t) ASSERT_TRUE((*synchronizer)->Gradient(t).ok());
      ASSERT_TRUE((*synchronizer)->EndBackward().ok());
      if (i == 1) {
        values.schedule = std::make_shared<Schedule>(*schedule::MakeSchedule("none", table, {}));
        ASSERT_TRUE((*synchronizer)->SetSchedule(values.schedule).ok());
      }
    }
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    ASSERT_TRUE(worker.world().Barrier().ok());
    EXPECT_TRUE((*file)->status().ok());
  });
}

// Reads a log and asks fresh strategies, made from what the log says, what they decide.
void Replay(const std::string& log, int workers) {
  std::map<std::string, std::unique_ptr<strategy::Strategy>> machines;
  std::map<std::string, int> kinds;
  for (const std::string& line : LinesOf(log)) {
    const std::string kind = Field(line, "kind"), rank = Field(line, "rank");
    ++kinds[kind];
    if (kind == "\"job\"") {
      const size_t at = line.find("\"options\":") + 10;
      const auto options = strategy::ParseStrategyOptions(line.substr(at, line.size() - at - 1));
      ASSERT_TRUE(options.ok()) << options.status();
      const std::string name = Field(line, "strategy");
      auto machine = strategy::MakeStrategy(name.substr(1, name.size() - 2), *options);
      ASSERT_TRUE(machine.ok()) << machine.status();
      machines[rank] = *std::move(machine);
    }
    if (kind != "\"decision\"") continue;
    const absl::StatusOr<strategy::Decision> decision = strategy::ParseDecision(line);
    ASSERT_TRUE(decision.ok()) << decision.status() << ": " << line;
    std::vector<strategy::Command> commands;
    machines.at(rank)->Step(decision->now, decision->event, commands);
    EXPECT_TRUE(commands == decision->commands) << line;
  }
  EXPECT_EQ(machines.size(), static_cast<size_t>(workers));
  EXPECT_GT(kinds["\"transfer\""], 0);
  EXPECT_GT(kinds["\"update\""], 0);
  EXPECT_GT(kinds["\"decision\""], kinds["\"transfer\""]);
}

TEST(DecisionLogTest, BspDecidesTheSameWhenItsLogIsPlayed) {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  TrainWith("bsp", log, 3, 4);
  Replay(log, 3);
}

TEST(DecisionLogTest, GroupsThatChangeDecideTheSameWhenTheirLogIsPlayed) {
  static const absl::Status added =
      strategy::AddStrategy({.name = "log-test-groups",
                             .about = "for tests",
                             .lockstep = false,
                             .survives = true,
                             .moves = strategy::Moves::kParameters,
                             .make = [](const strategy::StrategyOptions& o)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<strategy::GroupAverage>(
                                   strategy::WorkerInfo{o.rank, o.size, o.table.size()});
                             }});  // once, however often the test runs
  ASSERT_TRUE(added.ok()) << added;
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  TrainWith("log-test-groups", log, 4, 5);
  Replay(log, 4);
}

TEST(DecisionLogTest, AppendsUnlessAnewAndTellsWhatItCannotWrite) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  for (const bool anew : {false, false, true}) {
    auto log = DecisionLog::Open(path, 3, anew);
    ASSERT_TRUE(log.ok()) << log.status();
    (*log)->Decided({.now = 1.5, .event = strategy::Drain{}, .commands = {}});
    EXPECT_TRUE((*log)->status().ok());
  }
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            R"({"kind":"decision","rank":3,"time":1.5,"event":{"kind":"drain"},"commands":[]})");
  const absl::Status missing = DecisionLog::Open(folder.path() + "/no/log", 0, true).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/no/log: No such file"));
  // A disk that is full.
  auto full = DecisionLog::Open("/dev/full", 0, false);
  ASSERT_TRUE(full.ok()) << full.status();
  (*full)->Decided({.now = 1, .event = strategy::Drain{}, .commands = {}});
  EXPECT_THAT(std::string((*full)->status().message()), HasSubstr("/dev/full: No space left"));
}

}  // namespace
}  // namespace syncopate::sync
