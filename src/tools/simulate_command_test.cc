#include "tools/simulate_command.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "nlohmann/json.hpp"
#include "schedule/timeline.h"
#include "sim/sample_services_testing.h"
#include "strategy/options_json.h"
#include "strategy/record.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;

SimulateArguments Small() {
  SimulateArguments arguments;
  arguments.model.model = "resnet-50";
  arguments.model.schedule = "wfbp";
  arguments.model.costs = "1ms,1ns";
  arguments.workers = "3";
  arguments.iterations = 4;
  return arguments;
}

class SimulateCommandTest : public ::testing::Test {
 protected:
  int Run(const SimulateArguments& arguments) {
    std::ostringstream out;
    const int code = RunSimulate(arguments, out);
    out_ = out.str();
    return code;
  }
  const TemporaryFolder folder_;
  std::string out_;
};

// Equal workers take what the timeline model predicts.
TEST_F(SimulateCommandTest, TakesTheTimeOfTheTimelineModel) {
  SimulateArguments arguments = Small();
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["workers"], 3);
  arguments.model.overlap_forward = true;
  const auto report = MakeScheduleReport(arguments.model);
  ASSERT_TRUE(report.ok()) << report.status();
  const double predicted = report->schedules.front().timeline.iteration_seconds;
  EXPECT_NEAR(json["iteration_seconds"]["p50"].get<double>(), predicted, 1e-6);
  EXPECT_GT(json["iteration_seconds"]["p50"], json["compute_seconds"]);
  arguments.json = false;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("bsp of resnet-50 on 3 workers, 4 iterations"));
}

// What the file says was decided is what fresh strategies decide that are told the same.
TEST_F(SimulateCommandTest, TheLogPlaysAgain) {
  SimulateArguments arguments = Small();
  arguments.jitter = "0.5";
  arguments.log = absl::StrCat(folder_.path(), "/log");
  ASSERT_EQ(Run(arguments), kDone);
  const auto text = ReadFile(arguments.log, uint64_t{1} << 30);
  ASSERT_TRUE(text.ok()) << text.status();
  std::map<int, std::unique_ptr<strategy::Strategy>> machines;
  std::map<std::string, int> kinds;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto json = nlohmann::json::parse(line);
    const std::string kind = json["kind"];
    const int rank = json["rank"];
    ++kinds[kind];
    if (kind == "job") {
      const auto options = strategy::ParseStrategyOptions(json["options"].dump());
      ASSERT_TRUE(options.ok()) << options.status();
      EXPECT_EQ(options->rank, rank);
      auto machine = strategy::MakeStrategy(json["strategy"].get<std::string>(), *options);
      ASSERT_TRUE(machine.ok()) << machine.status();
      machines[rank] = *std::move(machine);
    }
    if (kind != "decision") continue;
    const auto decision = strategy::ParseDecision(line);
    ASSERT_TRUE(decision.ok()) << decision.status();
    std::vector<strategy::Command> commands;
    machines.at(rank)->Step(decision->now, decision->event, commands);
    ASSERT_TRUE(commands == decision->commands) << line;
  }
  const auto report = MakeScheduleReport(arguments.model);
  ASSERT_TRUE(report.ok());
  const int transfers = static_cast<int>(report->schedules.front().schedule.transfers.size());
  EXPECT_EQ(kinds["job"], 3);
  EXPECT_EQ(kinds["transfer"], 3 * 4 * transfers);
  EXPECT_GE(kinds["update"], 3 * 4);
}

TEST_F(SimulateCommandTest, ANetworkSaysWhatTransfersCost) {
  const auto seconds = [&](double bandwidth) {
    const std::string path = absl::StrCat(folder_.path(), "/net.json");
    EXPECT_TRUE(WriteFile(path, ToJson(StarTopology(4, bandwidth, 50e-6))).ok());
    SimulateArguments arguments = Small();
    arguments.model.costs = "";
    arguments.topology = path;
    arguments.workers = "";  // those of the network
    arguments.json = true;
    EXPECT_EQ(Run(arguments), kDone);
    const auto json = nlohmann::json::parse(out_);
    EXPECT_EQ(json["workers"], 4);
    return json["iteration_seconds"]["p50"].get<double>();
  };
  EXPECT_GT(seconds(1e8), 2 * seconds(1e10));
}

// Every byte of a ring or a tree crosses links, and the figures say which and how many.
TEST_F(SimulateCommandTest, SaysWhatTheNetworkCarried) {
  const std::string path = absl::StrCat(folder_.path(), "/net.json");
  ASSERT_TRUE(WriteFile(path, ToJson(TwoRackTopology(2, 1e9, 1e8, 50e-6))).ok());
  SimulateArguments arguments = Small();
  arguments.model.costs = "";
  arguments.topology = path;
  arguments.workers = "4";
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["iterations_min"], 4);
  EXPECT_EQ(json["iterations_mean"], 4);
  EXPECT_EQ(json["iterations_max"], 4);
  EXPECT_GT(json["waiting_share"], 0.1);
  EXPECT_LT(json["waiting_share"], 1);
  const auto report = MakeScheduleReport(Small().model);
  ASSERT_TRUE(report.ok());
  const double bytes = static_cast<double>(report->table.bytes()) * 4;
  double most = 0;
  for (const auto& [link, crossed] : json["bytes_by_link"].items()) {
    most = std::max(most, crossed.get<double>());
  }
  EXPECT_GE(most, bytes * 0.99);  // each rack needs the other's half at least
  EXPECT_LE(most, bytes * 4);
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_EQ(nlohmann::json::parse(out_)["digest"], json["digest"]);
  arguments.seed = 1;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_NE(nlohmann::json::parse(out_)["digest"], json["digest"]);
  arguments.json = false;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("busiest links"));
}

TEST_F(SimulateCommandTest, SeveralCountsMakeATable) {
  SimulateArguments arguments = Small();
  arguments.workers = "2,4,8";
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("samples/s"));
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[2]["workers"], 8);
  EXPECT_NEAR(json[2]["samples_per_second"].get<double>(),
              4 * json[0]["samples_per_second"].get<double>(), 1);  // by costs all are alike
}

// A slow worker holds up the others, and the picture shows whom.
TEST_F(SimulateCommandTest, DrawsWhoWaits) {
  SimulateArguments arguments = Small();
  arguments.model.costs = "1e-6,1e-12";  // so that they wait for nothing else
  arguments.pace.slow = {"1:2"};
  arguments.json = true;
  arguments.svg = absl::StrCat(folder_.path(), "/run.svg");
  ASSERT_EQ(Run(arguments), kDone);
  const auto slow = nlohmann::json::parse(out_);
  arguments.pace = {};
  ASSERT_EQ(Run(arguments), kDone);
  const auto even = nlohmann::json::parse(out_);
  EXPECT_GT(slow["waiting_share"], 1.5 * even["waiting_share"].get<double>());
  EXPECT_GT(slow["seconds"], 1.5 * even["seconds"].get<double>());
  const auto text = ReadFile(arguments.svg, uint64_t{1} << 24);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("worker 2"));
  EXPECT_THAT(*text, HasSubstr("waits for"));
}

// BSP cannot do without a worker: whoever is told that one died ends, and says which.
TEST_F(SimulateCommandTest, SaysWhoEndsEarlyAndWhen) {
  SimulateArguments arguments = Small();
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto whole = nlohmann::json::parse(out_);
  EXPECT_TRUE(whole["ended_early"].empty());
  const double half = whole["seconds"].get<double>() / 2;
  arguments.events = {absl::StrCat(half, "s:kill:1")};
  arguments.detection = "20ms";
  ASSERT_EQ(Run(arguments), kDone);
  const auto broken = nlohmann::json::parse(out_);
  ASSERT_EQ(broken["ended_early"].size(), 3u);
  EXPECT_EQ(broken["ended_early"][0]["rank"], 1);
  EXPECT_NEAR(broken["ended_early"][0]["seconds"].get<double>(), half, 1e-4);
  EXPECT_NEAR(broken["ended_early"][2]["seconds"].get<double>(), half + 0.02, 1e-4);
  EXPECT_THAT(broken["ended_early"][2]["why"].get<std::string>(), HasSubstr("worker 1"));
  EXPECT_LT(broken["iterations_max"], 4);
  arguments.json = false;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("ended early    worker 1 at"));
}

TEST_F(SimulateCommandTest, SlownessComesAndGoes) {
  SimulateArguments arguments = Small();
  arguments.model.costs = "1e-6,1e-12";
  arguments.json = true;
  const auto seconds = [&](const std::vector<std::string>& events) {
    arguments.events = events;
    EXPECT_EQ(Run(arguments), kDone);
    return nlohmann::json::parse(out_)["seconds"].get<double>();
  };
  const double even = seconds({}), iteration = even / 4;
  const std::string from = absl::StrCat(iteration, "s:slow:2:3x"),
                    until = absl::StrCat(4 * iteration, "s:slow:2:1x");
  // From the second iteration on; or in one only, which takes three times as long.
  EXPECT_NEAR(seconds({from}), (1 + 3 * 3) * iteration, 0.1 * iteration);
  EXPECT_NEAR(seconds({from, until}), (1 + 3 + 2) * iteration, 0.1 * iteration);
}

// A pace is a line by samples.
TEST_F(SimulateCommandTest, APaceSaysHowLongABatchTakes) {
  SimulateArguments arguments = Small();
  arguments.model.costs = "1e-6,1e-12";
  arguments.pace.pace = {"500ms,64"};
  arguments.samples = 32;
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_NEAR(nlohmann::json::parse(out_)["iteration_seconds"]["p50"].get<double>(), 1, 1e-3);
}

// A host with a quota of half a core takes twice as long to compute, one with two cores no less than with one,
// and a bystander is no worker. A pace that is slower hides it.
TEST_F(SimulateCommandTest, QuotasOfALabsHostsCount) {
  const auto p50 = [&](const std::string& quota, const std::string& pace) {
    const std::string path = absl::StrCat(folder_.path(), "/quotas.toml");
    const std::string text = absl::StrCat(
        "[lab]\nname = \"quotas\"\n[[switch]]\nname = \"s\"\n"
        "[[host]]\nname = \"idle\"\nswitch = \"s\"\nbystander = true\ncores = 0.1\n"
        "[[host]]\nname = \"big\"\nswitch = \"s\"\ncores = 2\n"
        "[[host]]\nname = \"small\"\nswitch = \"s\"\n",
        quota);
    EXPECT_TRUE(WriteFile(path, text).ok());
    SimulateArguments arguments = Small();
    arguments.model.costs = "";
    arguments.model.scale_bytes = "0.0001";  // so that computing is nearly all
    arguments.lab = path;
    arguments.workers = "";
    if (!pace.empty()) arguments.pace.pace = {pace};
    arguments.json = true;
    EXPECT_EQ(Run(arguments), kDone);
    const auto json = nlohmann::json::parse(out_);
    EXPECT_EQ(json["workers"], 2);
    return json["iteration_seconds"]["p50"].get<double>() / json["compute_seconds"].get<double>();
  };
  const double whole = p50("", "");
  EXPECT_LT(whole, 1.5);
  EXPECT_NEAR(p50("cores = 0.5\n", ""), whole + 1, 0.1);
  EXPECT_NEAR(p50("cores = 0.25\n", ""), whole + 3, 0.2);
  const double paced = p50("", "10s,32");
  EXPECT_NEAR(p50("cores = 0.5\n", "10s,32") / paced, 1, 1e-3);
}

// A lab's links make up for pauses, those of a topology do not. The same lab gives the same digest.
TEST_F(SimulateCommandTest, ShapersOfALabMakeUpForPauses) {
  const std::string path = absl::StrCat(folder_.path(), "/shaped.toml");
  const auto set_lab = [&](const std::string& flow) {
    EXPECT_TRUE(WriteFile(path, absl::StrCat("[lab]\nname = \"shaped\"\nnic = \"200mbit\"\n"
                                             "[[switch]]\nname = \"s\"\n"
                                             "[[host]]\nname = \"h\"\ncount = 3\n"
                                             "switch = \"s\"\n",
                                             flow))
                    .ok());
  };
  SimulateArguments arguments = Small();
  arguments.model.costs = "";
  arguments.model.scale_bytes = "0.02";
  arguments.json = true;
  arguments.lab = path;
  const auto run = [&]() {
    EXPECT_EQ(Run(arguments), kDone);
    return nlohmann::json::parse(out_);
  };
  set_lab("");
  const auto network = NetworkOf(arguments);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->buckets.size(), network->topology->capacities.size());
  const auto in_lab = run();
  EXPECT_EQ(run()["digest"], in_lab["digest"]);
  arguments.lab = "";
  arguments.topology = absl::StrCat(folder_.path(), "/network.json");
  ASSERT_TRUE(WriteFile(arguments.topology, ToJson(*network->topology)).ok());
  const auto on_topology = run();
  EXPECT_NE(on_topology["digest"], in_lab["digest"]);
  const double seconds = in_lab["seconds"], without = on_topology["seconds"];
  EXPECT_LT(seconds, 0.99 * without);
  EXPECT_GT(seconds, 0.5 * without);
  // Traffic in the background takes what the pauses leave.
  set_lab("[[flow]]\nfrom = \"h0\"\nto = \"h1\"\n");
  arguments.topology = "";
  arguments.lab = path;
  EXPECT_EQ(NetworkOf(arguments)->buckets.size(), network->buckets.size() - 2);
}

// A strategy that goes on without workers, and with those who come later.
TEST_F(SimulateCommandTest, WorkersComeAndGo) {
  static const absl::Status added =
      strategy::AddStrategy({.name = "simulated-groups",
                             .about = "neighbours average their parameters",
                             .lockstep = false,
                             .survives = true,
                             .moves = strategy::Moves::kParameters,
                             .make = [](const strategy::StrategyOptions& options)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<strategy::GroupAverage>(strategy::WorkerInfo{
                                   options.rank, options.size, options.table.size()});
                             }});
  ASSERT_TRUE(added.ok()) << added;
  SimulateArguments arguments = Small();
  arguments.strategy = "simulated-groups";
  arguments.workers = "4";
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const double half = nlohmann::json::parse(out_)["seconds"].get<double>() / 2;
  arguments.events = {absl::StrCat(half, "s:kill:1"), absl::StrCat(half, "s:leave:2")};
  arguments.delay = "100us";
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  ASSERT_EQ(json["ended_early"].size(), 1u) << out_;  // who leaves in good order has not failed
  EXPECT_EQ(json["ended_early"][0]["rank"], 1);
  EXPECT_EQ(json["iterations_max"], 4);
  EXPECT_LT(json["iterations_min"], 4);
}

// A service says with whom parameters are averaged.
strategy::StrategyEntry AskedEntry(const std::string& name) {
  return {.name = name,
          .about = "averages with whom a service says",
          .lockstep = false,
          .survives = true,
          .moves = strategy::Moves::kParameters,
          .service = strategy::AskedGroups::kService,
          .make_service =
              [](const strategy::StrategyOptions& options) {
                return std::make_unique<sim::LateGroups>(options.size);
              },
          .sends = true,
          .make = [](const strategy::StrategyOptions& options)
              -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
            return std::make_unique<strategy::AskedGroups>(
                strategy::WorkerInfo{options.rank, options.size, options.table.size()});
          }};
}

// The service of the strategy's entry answers, and goes on with the next worker when its host dies.
TEST_F(SimulateCommandTest, AskedServicesAnswer) {
  static const absl::Status added = strategy::AddStrategy(AskedEntry("simulated-asked"));
  ASSERT_TRUE(added.ok()) << added;
  SimulateArguments arguments = Small();
  arguments.strategy = "simulated-asked";
  arguments.workers = "4";
  arguments.iterations = 8;
  arguments.delay = "10ms";
  arguments.json = true;
  ASSERT_EQ(Run(arguments), kDone);
  const auto whole = nlohmann::json::parse(out_);
  EXPECT_EQ(whole["iterations_min"], 8);
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_EQ(nlohmann::json::parse(out_)["digest"], whole["digest"]);
  // Worker 0 hosts it. The others wait for their answers until they know that it died.
  arguments.events = {absl::StrCat(whole["seconds"].get<double>() / 2, "s:kill:0")};
  arguments.detection = "20s";
  arguments.log = absl::StrCat(folder_.path(), "/log");
  ASSERT_EQ(Run(arguments), kDone);
  const auto json = nlohmann::json::parse(out_);
  ASSERT_EQ(json["ended_early"].size(), 1u) << out_;
  EXPECT_EQ(json["ended_early"][0]["rank"], 0);
  EXPECT_EQ(json["iterations_max"], 8);
  EXPECT_GT(json["seconds"], 20);
  EXPECT_GT(json["waiting_share"], whole["waiting_share"]);
  // Each of the three has asked 8 times and was answered as often.
  const auto text = ReadFile(arguments.log, uint64_t{1} << 30);
  ASSERT_TRUE(text.ok()) << text.status();
  std::map<int, int> asked, answered;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto entry = nlohmann::json::parse(line);
    if (entry["kind"] != "decision") continue;
    answered[entry["rank"]] += entry["event"]["kind"] == "answered";
    for (const auto& command : entry["commands"]) {
      asked[entry["rank"]] += command["kind"] == "ask-service";
    }
  }
  for (const int rank : {1, 2, 3}) {
    EXPECT_EQ(asked[rank], 8) << rank;
    EXPECT_EQ(answered[rank], 8) << rank;
  }
}

// Rank 0 holds the parameters, and trains as well or does not.
strategy::StrategyEntry ServedEntry(const std::string& name, strategy::Role server) {
  return {.name = name,
          .about = "pushes to rank 0 and pulls from it",
          .lockstep = false,
          .survives = true,
          .moves = strategy::Moves::kBoth,
          .service = strategy::PermittedServer::kService,
          .make_service =
              [](const strategy::StrategyOptions&) { return std::make_unique<sim::LateTurns>(); },
          .server = 0,
          .server_role = server,
          .make = [](const strategy::StrategyOptions& options)
              -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
            return std::make_unique<strategy::PermittedServer>(
                strategy::WorkerInfo{options.rank, options.size, options.table.size()});
          }};
}

// What is pushed and pulled crosses the links of the server's device.
TEST_F(SimulateCommandTest, AServerServesOnItsDevice) {
  static const absl::Status added = [] {
    const absl::Status status =
        strategy::AddStrategy(ServedEntry("simulated-served", strategy::Role::kTrains));
    return status.ok()
               ? strategy::AddStrategy(ServedEntry("simulated-server", strategy::Role::kServes))
               : status;
  }();
  ASSERT_TRUE(added.ok()) << added;
  const std::string path = absl::StrCat(folder_.path(), "/net.json");
  const Topology star = StarTopology(4, 1e9, 50e-6);
  ASSERT_TRUE(WriteFile(path, ToJson(star)).ok());
  SimulateArguments arguments = Small();
  arguments.model.costs = "";
  arguments.topology = path;
  arguments.workers = "4";
  arguments.json = true;
  const auto report = MakeScheduleReport(Small().model);
  ASSERT_TRUE(report.ok());
  const double bytes = static_cast<double>(report->table.bytes());
  for (const bool trains : {true, false}) {
    arguments.strategy = trains ? "simulated-served" : "simulated-server";
    ASSERT_EQ(Run(arguments), kDone);
    const auto json = nlohmann::json::parse(out_);
    EXPECT_EQ(json["servers"].size(), trains ? 0u : 1u);
    EXPECT_EQ(json["iterations_min"], 4);
    EXPECT_EQ(json["iterations_mean"], 4);
    const int server = Devices(star)[0];
    double in = 0, out = 0;
    for (const Topology::Link& link : star.links) {
      if (link.to == server) in += json["bytes_by_link"][link.id].get<double>();
      if (link.from == server) out += json["bytes_by_link"][link.id].get<double>();
    }
    // Of three others in four iterations; what a worker pushes to itself crosses nothing.
    EXPECT_NEAR(in, 3 * 4 * bytes, 0.01 * bytes);
    EXPECT_NEAR(out, 3 * 4 * bytes, 0.01 * bytes);
    ASSERT_EQ(Run(arguments), kDone);
    EXPECT_EQ(nlohmann::json::parse(out_)["digest"], json["digest"]);
  }
  // Whoever serves may die, which ends the others.
  arguments.events = {"1s:kill:0"};
  ASSERT_EQ(Run(arguments), kDone);
  const auto broken = nlohmann::json::parse(out_);
  ASSERT_EQ(broken["ended_early"].size(), 4u) << out_;
  EXPECT_EQ(broken["ended_early"][0]["rank"], 0);
  EXPECT_THAT(broken["ended_early"][3]["why"].get<std::string>(), HasSubstr("worker 0 died"));
  arguments.events = {};
  arguments.json = false;
  ASSERT_EQ(Run(arguments), kDone);
  EXPECT_THAT(out_, HasSubstr("serving only   worker 0\n"));
  testing::internal::CaptureStderr();
  arguments.workers = "1";
  EXPECT_EQ(Run(arguments), kBadUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("too few"));
}

TEST_F(SimulateCommandTest, RefusesWhatItCannotDo) {
  const auto refuses = [&](const std::function<void(SimulateArguments&)>& change,
                           const std::string& text) {
    SimulateArguments arguments = Small();
    change(arguments);
    testing::internal::CaptureStderr();
    EXPECT_EQ(Run(arguments), kBadUsage) << text;
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(text));
    EXPECT_EQ(out_, "");
  };
  refuses([](auto& a) { a.strategy = "none"; }, "there is no strategy \"none\"");
  strategy::StrategyEntry unmade = AskedEntry("simulated-unmade");
  unmade.make_service = nullptr;
  static const absl::Status added = strategy::AddStrategy(unmade);
  ASSERT_TRUE(added.ok()) << added;
  refuses([](auto& a) { a.strategy = "simulated-unmade"; }, "does not say how that is made");
  refuses([](auto& a) { a.workers = ""; }, "say how many workers");
  refuses([](auto& a) { a.workers = "3,none"; }, "--workers");
  refuses([](auto& a) { a.workers = "3,0"; }, "--workers");
  refuses([](auto& a) { a.model.model = ""; }, "say for which tensors");
  refuses([](auto& a) { a.model.model = "resnet-5"; }, "--model");
  refuses([](auto& a) { a.model.schedule = "nothing"; }, "--schedule");
  refuses([](auto& a) { a.jitter = "much"; }, "--jitter");
  refuses(
      [](auto& a) {
        a.topology = "/no/such/file";
        a.model.costs = "";
      },
      "/no/such/file");
  refuses([](auto& a) { a.topology = "/no/such/file"; }, "all say what transfers cost");
  refuses([](auto& a) { a.pace.slow = {"3:1"}; }, "--slow 3:1");
  refuses(
      [](auto& a) {
        a.model.costs = "";
        a.lab = "/no/such/lab.toml";
      },
      "/no/such/lab.toml");
  refuses([&](auto& a) { a.workers = "2,3", a.svg = folder_.path() + "/svg"; }, "one run");
  refuses([](auto& a) { a.log = "/no/such/folder/log"; }, "--log");
  refuses([](auto& a) { a.events = {"1s:kill:3"}; }, "--event 1s:kill:3");
  refuses([](auto& a) { a.events = {"1s:join:1"}; }, "nobody can join");
  refuses([](auto& a) { a.detection = "soon"; }, "--detection");
  refuses([](auto& a) { a.delay = "1"; }, "--delay");
}

}  // namespace
}  // namespace syncopate::tools
