// `syncopate bench` as a user runs it: its rows, and that nothing is left behind however it ends.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

bool HasLine(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class BenchTest : public ::testing::Test {
 protected:
  // Starts `syncopate bench` with these words.
  void Start(const std::vector<std::string>& words, const std::string& progress = "off") {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "bench"};
    command.insert(command.end(), words.begin(), words.end());
    process_.emplace(command,
                     Subprocess::Options{.environment = {absl::StrCat("MARK=", marker_),
                                                         absl::StrCat("TMPDIR=", folder_),
                                                         "SYNCOPATE_PROGRESS=" + progress}});
  }

  // A benchmark that has printed its first row and is far from the end of its second.
  void StartLong(const std::string& timeout) {
    Start({"allreduce", "-n", "3", "-b", "64", "-e", "16M", "-f", "1000000", "--iters", "2",
           "--rounds", "1000", "--peers-only", "--against", "memory-limit", "--json", "--timeout",
           timeout});
    ASSERT_TRUE(process_->ReadUntil([&] { return process_->Count("\n") == 1; }));
  }

  // One process of the contestant.
  pid_t FindRank() {
    for (const pid_t pid : MarkedProcesses(marker_)) {
      std::string name;
      std::ifstream(absl::StrCat("/proc/", pid, "/comm")) >> name;
      if (name.find("bench_memory") == 0) return pid;
    }
    ADD_FAILURE() << "there is no rank";
    return -1;
  }

  void ExpectNothingLeft() {
    EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }

  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override {
    process_.reset();
    std::filesystem::remove_all(folder_);
  }

  const std::string marker_ = UniqueMarker();
  // Where the command makes its own folders; tests beside this one have others.
  const std::string folder_ = absl::StrCat("/dev/shm/bench-test-", marker_);
  std::optional<Subprocess> process_;
};

TEST_F(BenchTest, SomeAreActive) {
  Start({"allreduce", "-n", "4", "--active", "0,2-3", "-o", "avg", "-b", "64K", "-e", "64K",
         "--iters", "3", "--rounds", "1", "--json"});
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  const std::vector<std::string> lines = Lines(process_->out());
  ASSERT_THAT(lines, SizeIs(1)) << process_->out();
  const auto row = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(row.at("active"), nlohmann::json({0, 2, 3}));
  EXPECT_EQ(row.at("wrong"), 0);
  ExpectNothingLeft();
}

TEST_F(BenchTest, PrintsOneObjectPerSizeAndContestant) {
  Start({"allreduce", "-n", "3", "-b", "4K", "-e", "64K", "-f", "16", "--iters", "4", "--rounds",
         "2", "--against", "memory-limit", "--json"});
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  EXPECT_EQ(process_->err(), "");
  const std::vector<std::string> lines = Lines(process_->out());
  ASSERT_THAT(lines, SizeIs(4)) << process_->out();
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto row = nlohmann::json::parse(lines[i]);
    EXPECT_EQ(row.at("workers"), 3);
    EXPECT_EQ(row.at("bytes"), i < 2 ? 4096 : 65536);
    EXPECT_EQ(row.at("contestant"), i % 2 == 0 ? "syncopate" : "memory-limit");
    EXPECT_EQ(row.at("wrong"), 0);
    EXPECT_EQ(row.at("rounds"), 2);
    EXPECT_GT(row.at("p50_us"), 0);
    EXPECT_GE(row.at("p99_us"), row.at("p50_us"));
    EXPECT_GT(row.at("busbw_GBps"), row.at("algbw_GBps"));
    EXPECT_EQ(row.contains("ratio"), i % 2 == 1);
  }
  ExpectNothingLeft();
}

// Without a terminal it says beforehand how long it will take, then every so often how far it is;
// what it prints for programs has nothing of that.
TEST_F(BenchTest, SaysHowLongItTakesAndHowFarItIs) {
  Start({"allreduce", "-n", "2", "-b", "4K", "-e", "4M", "-f", "1024", "--iters", "5", "--rounds",
         "1000", "--json"},
        "100ms");
  ASSERT_TRUE(
      process_->ReadUntil([&] { return HasLine(process_->err(), " left: 4 KiB, round "); }));
  ASSERT_EQ(kill(process_->pid(), SIGINT), 0);
  process_->Wait();
  const std::vector<std::string> said = Lines(process_->err());
  EXPECT_THAT(said[0], AllOf(StartsWith("syncopate bench: about "),
                             EndsWith("(1 contestant, 2 sizes, 1000 rounds)")));
  for (const std::string& line : said) EXPECT_THAT(line, StartsWith("syncopate bench: "));
  for (const std::string& line : Lines(process_->out())) {
    EXPECT_EQ(nlohmann::json::parse(line).at("contestant"), "syncopate");
  }
  ExpectNothingLeft();
}

TEST_F(BenchTest, RefusesAPeriodThatIsNone) {
  Start({"allreduce", "-n", "2"}, "often");
  EXPECT_EQ(process_->Wait(), 2);
  EXPECT_THAT(process_->err(), HasSubstr("SYNCOPATE_PROGRESS: \"often\" is neither a time"));
}

TEST_F(BenchTest, EveryCollectiveIsRightInEveryTypeAndMemory) {
  for (const std::string collective :
       {"allreduce", "broadcast", "reduce", "allgather", "reducescatter", "gather", "scatter",
        "alltoall", "barrier", "sendrecv"}) {
    for (const std::string memory : {"arena", "heap"}) {
      const std::string type = memory == "arena" ? "float32" : "bfloat16";
      const std::string op = memory == "arena" ? "sum" : "avg";
      Start({collective, "-n", "3", "-b", "12K", "-e", "12K", "--iters", "2", "--rounds", "1", "-d",
             type, "-o", op, "--memory", memory, "-c", "2"});
      EXPECT_EQ(process_->Wait(), 0) << collective << " " << memory << ": " << process_->err();
    }
  }
  ExpectNothingLeft();
}

TEST_F(BenchTest, WrongUsageIsOneLineAndCode2) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"jump"},
      {"allreduce", "-n", "0"},
      {"allreduce", "-b", "2M", "-e", "1M"},
      {"allreduce", "--against", "nccl"},
      {"allreduce", "--nonsense"},
      {"allreduce", "--drivers", "/nonexistent"},
  };
  for (const auto& words : wrong) {
    Start(words);
    EXPECT_EQ(process_->Wait(), 2) << process_->err();
    EXPECT_THAT(Lines(process_->err()), SizeIs(1)) << process_->err();
    EXPECT_THAT(process_->err(), HasSubstr("syncopate bench: "));
  }
  ExpectNothingLeft();
}

TEST_F(BenchTest, AKilledRankIsNamedAndTheRestEnds) {
  StartLong("60s");
  ASSERT_EQ(kill(FindRank(), SIGKILL), 0);
  EXPECT_EQ(process_->Wait(), 1);
  EXPECT_THAT(process_->err(), AllOf(HasSubstr("memory-limit at 16 MiB"), HasSubstr("rank")));
  ExpectNothingLeft();
}

TEST_F(BenchTest, AStoppedRankIsNoticedAtTheDeadline) {
  StartLong("3s");
  ASSERT_EQ(kill(FindRank(), SIGSTOP), 0);
  EXPECT_EQ(process_->Wait(), 1);
  EXPECT_THAT(process_->err(), HasSubstr("memory-limit at 16 MiB"));
  ExpectNothingLeft();
}

TEST_F(BenchTest, CtrlCLeavesNothingBehind) {
  StartLong("60s");
  ASSERT_EQ(kill(process_->pid(), SIGINT), 0);
  EXPECT_EQ(process_->Wait(), 128 + SIGINT);
  EXPECT_EQ(process_->err(), "syncopate bench: interrupted\n");
  ExpectNothingLeft();
}

TEST_F(BenchTest, ContestantsDieWithACommandThatIsKilled) {
  StartLong("60s");
  ASSERT_EQ(kill(process_->pid(), SIGKILL), 0);
  EXPECT_EQ(process_->Wait(), 128 + SIGKILL);
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  // The folder goes with the next benchmark.
  Start({"barrier", "-n", "1", "--iters", "1", "--rounds", "1", "--peers-only", "--against",
         "memory-limit"});
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  ExpectNothingLeft();
}

}  // namespace
}  // namespace syncopate::testing
