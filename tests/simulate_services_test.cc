// `syncopate simulate` with strategies that ask services, which their entries make: the same objects that
// jobs of these strategies run.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

nlohmann::json SimulatedWith(const std::string& strategy, const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      SYNCOPATE_BINARY, "simulate", "--strategy",   strategy, "--model", "resnet-50", "-n",    "4",
      "--costs",        "1ms,1ns",  "--iterations", "6",      "--delay", "1ms",       "--json"};
  words.insert(words.end(), more.begin(), more.end());
  Subprocess run(words);
  EXPECT_EQ(run.Wait(), 0) << run.err();
  return nlohmann::json::parse(run.out());
}

TEST(SimulateServicesSystemTest, TheSameOptionsGiveTheSameRun) {
  for (const std::string strategy : {"sample-asked", "sample-server"}) {
    const nlohmann::json once = SimulatedWith(strategy, {});
    EXPECT_EQ(once["iterations_min"], 6) << strategy;
    EXPECT_EQ(SimulatedWith(strategy, {})["digest"], once["digest"]) << strategy;
    EXPECT_NE(SimulatedWith(strategy, {"--seed", "1"})["digest"], once["digest"]) << strategy;
  }
}

TEST(SimulateServicesSystemTest, AnotherWorkerHostsWhenTheHostDies) {
  const nlohmann::json json =
      SimulatedWith("sample-asked", {"--event", "300ms:kill:0", "--detection", "500ms"});
  ASSERT_EQ(json["ended_early"].size(), 1u) << json;
  EXPECT_EQ(json["ended_early"][0]["rank"], 0);
  EXPECT_LT(json["iterations_min"], 6);
  EXPECT_EQ(json["iterations_max"], 6);
  EXPECT_GT(json["seconds"], 0.8);  // nobody was answered before they knew
}

}  // namespace
}  // namespace syncopate::testing
