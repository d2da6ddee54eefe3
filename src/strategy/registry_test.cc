#include "strategy/registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/options_json.h"
#include "strategy/sample_strategies_testing.h"

namespace syncopate::strategy {
namespace {

using ::testing::HasSubstr;

StrategyOptions Options() {
  StrategyOptions options;
  options.rank = 1;
  options.size = 2;
  options.table.model = "two";
  options.table.tensors = {{.name = "a", .elements = 4}, {.name = "b", .elements = 5}};
  options.schedule =
      std::make_shared<const Schedule>(Schedule{.planner = "none", .transfers = {{0, 1, 0}}});
  return options;
}

TEST(StrategyRegistryTest, MakesWhatItsOptionsSay) {
  const auto strategy = MakeStrategy("bsp", Options());
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ((*strategy)->name(), "bsp");
  std::vector<Command> commands;
  (*strategy)->Step(0, IterationBegan{.samples = 3}, commands);
  (*strategy)->Step(0, BackwardEnded{}, commands);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0], Command(StartTransfer{.last = 1, .weight = 3, .priority = 2}));
}

TEST(StrategyRegistryTest, AnUnknownNameIsAnErrorThatNamesThoseThatExist) {
  const absl::Status status = MakeStrategy("bps", Options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            absl::StrCat("there is no strategy \"bps\"; there are: ", StrategyList()));
  EXPECT_THAT(StrategyNames(), ::testing::Contains("bsp"));
}

TEST(StrategyRegistryTest, OptionsThatAreMissingOrWrongAreNamed) {
  const auto why = [](const StrategyOptions& options) {
    const absl::Status status = MakeStrategy("bsp", options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  StrategyOptions options = Options();
  options.schedule = nullptr;
  EXPECT_THAT(why(options), HasSubstr("strategy bsp: it needs a schedule"));
  options = Options();
  options.table.tensors.pop_back();
  EXPECT_THAT(why(options), HasSubstr("strategy bsp: "));
  options = Options();
  options.rank = 2;
  EXPECT_THAT(why(options), HasSubstr("no such rank"));
  options = Options();
  options.placement = {0};
  EXPECT_THAT(why(options), HasSubstr("placement"));
  options = Options();
  options.roles = {Role::kTrains, Role::kServes, Role::kTrains};
  EXPECT_THAT(why(options), HasSubstr("roles"));
}

TEST(StrategyRegistryTest, OptionsComeBackFromTheirJson) {
  StrategyOptions options = Options();
  options.seed = 77;
  options.update_together = true;
  options.placement = {0, 1};
  options.roles = {Role::kServes, Role::kTrains};
  const std::string json = ToJson(options);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const absl::StatusOr<StrategyOptions> read = ParseStrategyOptions(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->size, 2);
  EXPECT_EQ(read->table, options.table);
  EXPECT_EQ(*read->schedule, *options.schedule);
  EXPECT_EQ(read->placement, options.placement);
  EXPECT_EQ(read->roles, options.roles);
  EXPECT_TRUE(read->update_together);
  for (const char* wrong :
       {"", "{}", R"({"rank":0,"size":1,"seed":1,"update_together":false,"table":3})"}) {
    EXPECT_FALSE(ParseStrategyOptions(wrong).ok()) << wrong;
  }
}

TEST(StrategyRegistryTest, AnEntryWithAServerSaysWhoServes) {
  StrategyEntry entry;
  EXPECT_THAT(entry.servers(), ::testing::IsEmpty());
  EXPECT_THAT(entry.RolesAmong(3), ::testing::IsEmpty());
  entry.name = "served";
  entry.server = 2;
  entry.make = [](const StrategyOptions& options) { return (*FindStrategy("bsp"))->make(options); };
  EXPECT_THAT(entry.servers(), ::testing::ElementsAre(2));
  EXPECT_THAT(entry.RolesAmong(3),
              ::testing::ElementsAre(Role::kTrains, Role::kTrains, Role::kServes));
  static const absl::Status added = AddStrategy(entry);  // once, however often the test runs
  ASSERT_TRUE(added.ok()) << added;
  StrategyOptions options = Options();
  const absl::Status status = MakeStrategy("served", options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("strategy served: rank 2 is its server, in a job of 2 workers"));
  options.size = 3;
  EXPECT_TRUE(MakeStrategy("served", options).ok());
}

TEST(StrategyRegistryTest, TheEntryOfBspSaysWhatItDoes) {
  const StrategyEntry& bsp = **FindStrategy("bsp");
  EXPECT_TRUE(bsp.lockstep);
  EXPECT_FALSE(bsp.survives);
  EXPECT_TRUE(bsp.moves_gradients());
  EXPECT_FALSE(bsp.moves_parameters());
  EXPECT_EQ(bsp.service, "");
  EXPECT_EQ(bsp.data, DataMode::kInStep);
  EXPECT_EQ(bsp.model, ModelIs::kParameters);
}

TEST(StrategyRegistryTest, AServerServesOrTrainsAsWell) {
  StrategyEntry entry = {.name = "served"};
  EXPECT_THAT(*entry.RolesOfLoops(1), ::testing::IsEmpty());
  entry.server = 1;
  EXPECT_THAT(*entry.RolesOfLoops(2), ::testing::IsEmpty());  // all train
  EXPECT_EQ(entry.RolesOfLoops(1).status().code(), absl::StatusCode::kInvalidArgument);
  entry.server_role = Role::kServes;
  EXPECT_THAT(*entry.RolesOfLoops(3),
              ::testing::ElementsAre(Role::kTrains, Role::kServes, Role::kTrains));
  entry.server = 0;
  EXPECT_THAT(std::string(entry.RolesOfLoops(1).status().message()), HasSubstr("does not train"));
}

TEST(StrategyRegistryTest, AStrategyFromElsewhereIsMadeByItsName) {
  const StrategyEntry entry{
      .name = "registry-test-groups",
      .about = "for tests",
      .lockstep = false,
      .survives = true,
      .moves = Moves::kParameters,
      .make = [](const StrategyOptions& options) -> absl::StatusOr<std::unique_ptr<Strategy>> {
        return std::make_unique<GroupAverage>(
            WorkerInfo{options.rank, options.size, options.table.size()});
      }};
  static const absl::Status added = AddStrategy(entry);  // once, however often the test runs
  ASSERT_TRUE(added.ok()) << added;
  EXPECT_TRUE(absl::IsAlreadyExists(AddStrategy(entry)));
  EXPECT_EQ((*MakeStrategy("registry-test-groups", Options()))->name(), "group-average");
  EXPECT_TRUE((*FindStrategy("registry-test-groups"))->moves_parameters());
  EXPECT_FALSE(AddStrategy({.name = "empty"}).ok());
  StrategyEntry both = entry;
  both.name = "registry-test-both";
  both.lockstep = true;
  const absl::Status refused = AddStrategy(both);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("registry-test-both: workers in lockstep cannot go on after a loss"));
  EXPECT_FALSE(FindStrategy("registry-test-both").ok());
}

}  // namespace
}  // namespace syncopate::strategy
