#include "tools/command_line.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/launch_command.h"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Ran {
  int code;
  std::string out, err;
};

Ran RunWith(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "syncopate");
  CLI::App app("about", "syncopate");
  app.require_subcommand(1);
  app.set_version_flag("--version", "syncopate 1.2.3");
  int exit_code = kDone;
  AddLaunchCommand(app, exit_code);
  CLI::App* work = app.add_subcommand("work", "works");
  int amount = 0;
  work->add_option("--amount", amount);
  work->callback([&] { exit_code = amount; });
  CLI::App* prefix = app.add_subcommand("prefix", "runs a program");
  std::string value;
  prefix->add_option("-x", value);
  prefix->prefix_command();
  prefix->callback([&] { std::cout << absl::StrJoin(prefix->remaining(), "|"); });
  CLI::App* outer = app.add_subcommand("outer", "has commands of its own");
  CLI::App* inner = outer->add_subcommand("inner", "runs a program");
  inner->add_option("-x", value);
  inner->prefix_command();
  inner->callback([&] { std::cout << absl::StrJoin(inner->remaining(), "|"); });
  CaptureStdout();
  CaptureStderr();
  const int code =
      RunCommandLine(app, static_cast<int>(arguments.size()), arguments.data(), exit_code);
  return {code, GetCapturedStdout(), GetCapturedStderr()};
}

TEST(CommandLineTest, GivesTheExitCodeOfTheCommand) {
  EXPECT_EQ(RunWith({"work"}).code, 0);
  EXPECT_EQ(RunWith({"work", "--amount", "7"}).code, 7);
}

TEST(CommandLineTest, HelpAndVersionAreNoErrors) {
  for (const std::vector<const char*>& arguments :
       {std::vector<const char*>{}, {"--help"}, {"launch", "--help"}}) {
    const Ran ran = RunWith(arguments);
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr("Usage"));
    EXPECT_EQ(ran.err, "");
  }
  EXPECT_EQ(RunWith({"--version"}).out, "syncopate 1.2.3\n");
  EXPECT_THAT(RunWith({"launch", "--help"}).out, HasSubstr("Examples:"));
}

TEST(CommandLineTest, WrongUsageIsOneLineAndTwo) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{"nonsense"}, "syncopate: "},
      {{"--nonsense"}, "syncopate: "},
      {{"work", "--amount", "x"}, "syncopate work: "},
      {{"work", "--nonsense"}, "syncopate work: "},
      {{"launch", "--", "true"}, "syncopate launch: how many ranks?"},
      {{"launch", "-n", "0", "--", "true"}, "syncopate launch: -n: \"0\""},
      {{"launch", "-n", "-3", "--", "true"}, "syncopate launch: -n: \"-3\""},
      {{"launch", "-n", "129", "--", "true"}, "syncopate launch: -n: \"129\""},
      {{"launch", "-n", "two", "--", "true"}, "syncopate launch: -n: \"two\""},
      {{"launch", "-n", "2"}, "syncopate launch: no program"},
      {{"launch", "-n", "2", "--"}, "syncopate launch: no program"},
      {{"launch", "-n", "2", "--", ""}, "syncopate launch: no program"},
      {{"launch", "-n", "2", "--timeout", "soon", "--", "true"}, "syncopate launch: --timeout: "},
      {{"launch", "-n", "2", "--grace", "0", "--", "true"}, "syncopate launch: --grace: "},
      {{"launch", "-n", "2", "--nonsense", "--", "true"}, "syncopate launch: "},
  };
  for (const auto& [arguments, start] : cases) {
    const Ran ran = RunWith(arguments);
    EXPECT_EQ(ran.code, kBadUsage) << start;
    EXPECT_EQ(ran.out, "") << start;
    EXPECT_THAT(ran.err, StartsWith(start));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(CommandLineTest, AProgramKeepsItsArguments) {
  for (std::vector<const char*> before : std::vector<std::vector<const char*>>{
           {"prefix", "--"}, {"prefix"}, {"prefix", "-x", "--", "--"}, {"prefix", "-x=--"}}) {
    const std::vector<const char*> program = {"work", "--", "-x", "[a,b]", "", "--amount", "{}"};
    before.insert(before.end(), program.begin(), program.end());
    EXPECT_EQ(RunWith(before).out, "work|--|-x|[a,b]||--amount|{}") << before[1];
  }
}

TEST(CommandLineTest, AProgramKeepsItsArgumentsBelowACommandOfACommand) {
  EXPECT_EQ(RunWith({"outer", "inner", "--", "sh", "-c", "true"}).out, "sh|-c|true");
  EXPECT_EQ(RunWith({"outer", "inner", "-x", "1", "--", "sh", "--", "true"}).out, "sh|--|true");
  EXPECT_EQ(RunWith({"outer", "inner", "h0", "--", "sh", "-x"}).out, "h0|--|sh|-x");
}

TEST(CommandLineTest, AStatusBecomesOneLine) {
  CaptureStderr();
  EXPECT_EQ(Complain("plan", absl::InvalidArgumentError("bad\nfile")), kBadUsage);
  EXPECT_EQ(GetCapturedStderr(), "syncopate plan: bad file\n");
  CaptureStderr();
  EXPECT_EQ(Complain("plan", absl::UnavailableError("gone")), kFailed);
  EXPECT_EQ(GetCapturedStderr(), "syncopate plan: gone\n");
}

}  // namespace
}  // namespace syncopate::tools
