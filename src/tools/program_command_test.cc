#include "tools/program_command.h"

#include <unistd.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Two workers exchange their data and add what comes.
constexpr char kPair[] = R"(syncopate program 1
collective all-reduce
workers 2
active 0-1
data 100
scratch 100
worker 0
  0: send data 0 to 1
  1: receive scratch 0 from 1
  2: reduce data 0 from scratch 0 after 0 1
worker 1
  0: send data 0 to 0
  1: receive scratch 0 from 0
  2: reduce data 0 from scratch 0 after 0 1
end
)";

class ProgramCommandTest : public ::testing::Test {
 protected:
  // Runs the check on a file of this text; what it prints and complains stays in out_ and err_.
  int Check(const std::string& text, bool json = false) {
    return WithFile(text, [&](const std::string& file, std::ostream& out) {
      return RunProgramCheck({.file = file, .json = json}, out);
    });
  }
  int Run(const std::string& text, ProgramRunArguments arguments = {}) {
    return WithFile(text, [&](const std::string& file, std::ostream& out) {
      arguments.file = file;
      return RunProgramRun(arguments, out);
    });
  }

  template <typename Command>
  int WithFile(const std::string& text, const Command& command) {
    const std::string file = absl::StrCat(::testing::TempDir(), "/program_", getpid(), ".txt");
    EXPECT_TRUE(WriteFile(file, text).ok());
    std::ostringstream out;
    ::testing::internal::CaptureStderr();
    const int code = command(file, out);
    err_ = ::testing::internal::GetCapturedStderr();
    out_ = out.str();
    unlink(file.c_str());
    return code;
  }

  std::string out_, err_;
};

TEST_F(ProgramCommandTest, AProgramIsProvedAndDescribed) {
  ASSERT_EQ(Check(kPair), kDone) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("proved      all-reduce of 100 elements among 2 workers"),
                          HasSubstr("steps       6\n"), HasSubstr("rounds      1\n"),
                          HasSubstr("100 sent by the worker that sends most, 200 in all")));
  ASSERT_EQ(Check(kPair, /*json=*/true), kDone);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["collective"], "all-reduce");
  EXPECT_EQ(json["rounds"], 1);
  EXPECT_EQ(json["steps"], 6);
}

TEST_F(ProgramCommandTest, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_EQ(Check(absl::StrReplaceAll(kPair, {{"workers 2", "workers two"}})), kBadUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("syncopate program check: "), HasSubstr("line 3")));
  EXPECT_EQ(out_, "");
  // Well-formed, but worker 1 ends without the data of worker 0.
  EXPECT_EQ(Check(absl::StrReplaceAll(
                kPair, {{"  2: reduce data 0 from scratch 0 after 0 1\nend", "end"}})),
            kBadUsage);
  EXPECT_THAT(err_, HasSubstr("worker 1"));
}

TEST_F(ProgramCommandTest, AFileThatIsNotThereIsBadUsage) {
  std::ostringstream out;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunProgramCheck({.file = "/nowhere/program.txt"}, out), kBadUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("/nowhere/program.txt"));
}

TEST_F(ProgramCommandTest, ARunComparesEveryElementWithAReference) {
  ASSERT_EQ(Run(kPair), kDone) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("ran         all-reduce of 100 float32 among 2 workers"),
                          HasSubstr("result      right: every element is what all-reduce promises"),
                          // Two messages of 400 bytes; both workers have 100 elements to compare.
                          ContainsRegex("all +2 +800 B +200 +0\n")));
  ASSERT_EQ(Run(kPair, {.type = "bfloat16", .op = "avg", .seed = 3, .json = true}), kDone) << err_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["type"], "bfloat16");
  EXPECT_EQ(json["messages"], 2);
  EXPECT_EQ(json["bytes"], 400);
  EXPECT_EQ(json["checked"], 200);
  EXPECT_EQ(json["right"], true);
  EXPECT_EQ(json["by_worker"].size(), 2);
}

TEST_F(ProgramCommandTest, ARunRefusesWhatTheCheckRefuses) {
  EXPECT_EQ(Run(absl::StrReplaceAll(kPair, {{"workers 2", "workers two"}})), kBadUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("syncopate program run: "), HasSubstr("line 3")));
  EXPECT_EQ(Run(absl::StrReplaceAll(kPair, {{" after 0 1\nend", "\nend"}})), kBadUsage);
  EXPECT_THAT(err_, HasSubstr("worker 1, step 2"));
  EXPECT_EQ(out_, "");
}

TEST_F(ProgramCommandTest, ARunRefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(Run(kPair, {.type = "float31"}), kBadUsage);
  EXPECT_THAT(err_, HasSubstr("--type: "));
  EXPECT_EQ(Run(kPair, {.type = "int32", .op = "wavg"}), kBadUsage);
  EXPECT_THAT(err_, HasSubstr("wavg needs a floating type"));
  const std::string broadcast = R"(syncopate program 1
collective broadcast
workers 2
active 0-1
root 0
data 10
worker 0
  0: send data 0 to 1
worker 1
  0: receive data 0 from 0
end
)";
  EXPECT_EQ(Run(broadcast, {.op = "sum"}), kBadUsage);
  EXPECT_THAT(err_, HasSubstr("broadcast adds nothing up"));
  EXPECT_EQ(Run(broadcast), kDone) << err_;
  // 2^40 elements are refused before there is memory for them.
  EXPECT_EQ(Run(absl::StrReplaceAll(broadcast, {{"data 10", "data 1099511627776"}})), kFailed);
  EXPECT_THAT(err_, HasSubstr("more than the 1 GiB of a run"));
}

}  // namespace
}  // namespace syncopate::tools
