#include "tools/reproduce_command.h"

#include <sstream>

#include "base/clock.h"
#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"
#include "tools/reproduce/forest_time.h"

namespace syncopate::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Says 10 ms overlapped and 12.5 ms separate to every setting.
absl::StatusOr<reproduce::ForestTime> FixedTime(const Topology&, absl::Span<const int>,
                                                const std::vector<int>&, bool separate, uint64_t) {
  reproduce::ForestTime time;
  time.seconds = separate ? 0.0125 : 0.01;
  time.bound_seconds = 0.00998;
  return time;
}

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome Reproduce(const ReproduceForestArguments& arguments,
                  const reproduce::ForestTimer& timer = FixedTime,
                  ProgressOptions::Style style = ProgressOptions::Style::kSilent) {
  std::ostringstream out, err;
  const ManualClock clock;
  Progress progress("syncopate reproduce forest", {.style = style, .thread = false}, clock, err);
  const int code = RunReproduceForest(arguments, timer, progress, out, err);
  return {code, out.str(), err.str()};
}

TEST(ReproduceCommandTest, TablesOfAllFigures) {
  const Outcome outcome = Reproduce({});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.err, IsEmpty());
  for (const char* part :
       {"Figure 4: ", "Figure 5: ", "Figure 6: ", "Figure 7: ", "2.9, 2.1, 1.2 times less", "18.3",
        "1.44", "up to 30 %", "found      up to 20 %", "(2G,3G,4H,6,2G,3G,4H,6)", "assumed"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(ReproduceCommandTest, JsonOfOneFigure) {
  ReproduceForestArguments arguments;
  arguments.figures = {4};
  arguments.json = true;
  const Outcome outcome = Reproduce(arguments);
  ASSERT_EQ(outcome.code, kDone) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["network"], "gpu-pairs");
  ASSERT_EQ(json["figures"].size(), 1u);
  const nlohmann::json& rows = json["figures"][0]["rows"];
  ASSERT_EQ(rows.size(), 24u);
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["baselines"].size(), 8u);
    EXPECT_EQ(row["forest_seconds"], 0.01);
    double best = 1e9;
    for (const nlohmann::json& baseline : row["baselines"]) {
      if (baseline["in_paper"]) best = std::min<double>(best, baseline["staged_seconds"]);
    }
    EXPECT_NEAR(row["ratio"], best / 0.01, 1e-9);
    EXPECT_LE(row["ratio_overlapped"], row["ratio"]);
  }
}

TEST(ReproduceCommandTest, PictureOfAFigure) {
  ReproduceForestArguments arguments;
  arguments.figures = {7};
  arguments.svg = ::testing::TempDir() + "reproduce_command_test.svg";
  ASSERT_EQ(Reproduce(arguments).code, kDone);
  const absl::StatusOr<std::string> svg = ReadFile(arguments.svg, 1 << 20);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr("-20 %"));
  EXPECT_THAT(*svg, HasSubstr("100 Gb/s between machines"));
}

TEST(ReproduceCommandTest, BadInput) {
  ReproduceForestArguments arguments;
  arguments.figures = {3};
  Outcome outcome = Reproduce(arguments);
  EXPECT_EQ(outcome.code, kBadUsage);
  EXPECT_EQ(outcome.err,
            "syncopate reproduce forest: --figure: there is no figure 3; choose 4, 5, 6 or 7\n");
  arguments = {};
  arguments.network = std::string("mesh");
  outcome = Reproduce(arguments);
  EXPECT_EQ(outcome.code, kBadUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--network: \"mesh\" is not a network; choose gpu-pairs"));
  arguments = {};
  arguments.inside = std::string("nvlink");
  outcome = Reproduce(arguments);
  EXPECT_EQ(outcome.code, kBadUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--inside: \"nvlink\" is not a network"));
}

TEST(ReproduceCommandTest, AFailureNamesItsSetting) {
  ReproduceForestArguments arguments;
  arguments.figures = {5};
  const Outcome outcome = Reproduce(arguments, [](const Topology&, absl::Span<const int>,
                                                  const std::vector<int>&, bool, uint64_t) {
    return absl::StatusOr<reproduce::ForestTime>(absl::InternalError("the solver gave up"));
  });
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("figure 5, 4x4 at 10 Gb/s 4,4,4,4: the solver gave up"));
}

TEST(ReproduceCommandTest, ProgressIsOneLineThatGoesAway) {
  ReproduceForestArguments arguments;
  arguments.figures = {6};
  const Outcome outcome = Reproduce(arguments, FixedTime, ProgressOptions::Style::kRedrawn);
  EXPECT_THAT(outcome.err,
              StartsWith("syncopate reproduce forest: about 1 min 20 s (10 settings)\n"));
  EXPECT_THAT(outcome.err, ContainsRegex("30 %.*: figure 6, 8x8 at 100 Gb/s 4,4"));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.rfind('\n'));
  EXPECT_EQ(outcome.err.substr(outcome.err.size() - 4), "\r\033[K");
}

// What the planner itself finds where it can be worked out by hand: with one rate everywhere a
// one-hop tree for each worker is best, and no relay helps two GPUs between which all links are
// used.
TEST(ReproduceCommandTest, ThePlannerFindsKnownOptima) {
  const reproduce::ForestTimer timer = reproduce::MakeForestTimer(MonotonicClock());
  const double bytes = static_cast<double>(reproduce::kModelBytes);
  const auto find = [&](const plan::PaperCluster& cluster, const std::vector<std::string>& codes) {
    const Topology topology = *plan::PaperTopology(cluster);
    return timer(topology, *PlaceInOrder(topology, cluster.machines * cluster.gpus),
                 plan::MakeActiveSet(cluster, codes)->workers, false, reproduce::kModelBytes);
  };
  const auto even =
      find(plan::MakePaperCluster(2, 4, plan::BetweenNetwork::kGpuPairs, 100), {"4", "4"});
  ASSERT_TRUE(even.ok()) << even.status();
  EXPECT_NEAR(even->seconds, 2 * bytes / 8 / 12.5e9, 0.006 * even->seconds);
  // A worker's links carry 3 x 100 + 12 x 10 Gb/s; it sends and receives all of its data once.
  const auto two =
      find(plan::MakePaperCluster(4, 4, plan::BetweenNetwork::kGpuPairs, 10), {"1", "1", "0", "0"});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_NEAR(two->seconds, bytes / (420e9 / 8), 0.006 * two->seconds);
}

TEST(ReproduceAscWfbpTest, TablesHavePublishedAndFoundBesideEachOther) {
  std::ostringstream out, err;
  EXPECT_EQ(RunReproduceAscWfbp({}, out, err), kDone);
  EXPECT_THAT(err.str(), IsEmpty());
  for (const char* part :
       {"Table IV", "resnet-152        467", "densenet-201      604", "inception-v4      449",
        "bert-base         206", "0.956", "1.062", "start-up by WFBP", "docs/asc-wfbp.md"}) {
    EXPECT_THAT(out.str(), HasSubstr(part));
  }
}

TEST(ReproduceAscWfbpTest, JsonHasItAll) {
  std::ostringstream out, err;
  EXPECT_EQ(RunReproduceAscWfbp({.json = true}, out, err), kDone);
  const nlohmann::json json = nlohmann::json::parse(out.str(), nullptr, false);
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["models"].size(), 4u);
  for (const auto& model : json["models"]) {
    const auto& seconds = model["model_seconds"];
    EXPECT_LT(seconds["asc-wfbp"].get<double>(), seconds["mg-wfbp"].get<double>());
    EXPECT_LT(seconds["mg-wfbp"].get<double>(), seconds["wfbp"].get<double>());
    EXPECT_LE(seconds["search"].get<double>(), seconds["asc-wfbp"].get<double>());
    EXPECT_LE(seconds["search"].get<double>(), seconds["bucket"].get<double>());
    EXPECT_GE(seconds["search"].get<double>(), seconds["bound"].get<double>() * (1 - 1e-9));
  }
  EXPECT_EQ(json["models"][0]["published"]["asc-wfbp"], 0.524);
}

}  // namespace
}  // namespace syncopate::tools
