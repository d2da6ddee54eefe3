#include "tools/command_line.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/launch_command.h"
#include "tools/usage_message.h"

namespace syncopate::tools {
namespace {

using ::testing::EndsWith;
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

template <typename Value>
CLI::Option* Add(CLI::App& command, const std::string& name, const std::string& help) {
  return command.add_option_function<Value>(
      name, [](const Value&) {}, help);
}

void AddOptionsOfManyKinds(CLI::App& work, bool& quick) {
  Add<int>(work, "-n,--many", "how many")->check(WholeNumberFrom(1));
  Add<int>(work, "--few", "how few")->check(WholeNumber(1, 8));
  Add<uint64_t>(work, "--seed", "of all");
  Add<double>(work, "--rate", "how fast");
  Add<int>(work, "--hidden", "not for users")->group("");
  CLI::Option* left = Add<int>(work, "--left", "on the left");
  Add<int>(work, "-r,--right", "on the right")->excludes(left);
  Add<int>(work, "--under", "under what is on the left")->needs(left);
  work.add_flag("--quick", quick, "without a check");
}

void AddRequired(CLI::App& need) {
  Add<std::string>(need, "file", "what to read")->required();
  Add<std::string>(need, "--to", "where to")->required();
}

Ran RunWith(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "syncopate");
  CLI::App app("about", "syncopate");
  app.require_subcommand(1);
  app.set_version_flag("--version", "syncopate 1.2.3");
  int exit_code = kDone;
  AddLaunchCommand(app, exit_code);
  CLI::App* work = app.add_subcommand("work", "works");
  int amount = 0;
  work->add_option("--amount", amount, "how much");
  bool quick = false;
  AddOptionsOfManyKinds(*work, quick);
  AddRequired(*app.add_subcommand("need", "needs options"));
  CLI::App* group = app.add_subcommand("group", "has commands of its own, and needs one");
  group->require_subcommand(1);
  group->add_subcommand("first", "one");
  group->add_subcommand("second", "another");
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
  EXPECT_EQ(RunWith({"work", "--amount", "7", "--seed", "18446744073709551615"}).code, 7);
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

// What the library finds wrong, in our words: the whole line.
TEST(CommandLineTest, WrongUsageSaysWhatIsPossible) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      // Words that there are not.
      {{"wrok"}, ": there is no command \"wrok\"; did you mean syncopate work? syncopate"},
      {{"nonsense"}, ": there is no command \"nonsense\"; syncopate"},
      {{"inner"}, ": there is no command \"inner\"; did you mean syncopate outer inner? syncopate"},
      {{"--verison"}, ": there is no option --verison; did you mean --version? syncopate"},
      {{"--nonsense", "work"}, " work: there is no option --nonsense; syncopate"},
      {{"group"}, " group: which command? first, second; syncopate group"},
      {{"group", "frist"},
       " group: there is no command \"frist\"; did you mean syncopate group first? syncopate "
       "group"},
      {{"work", "--amuont", "3"},
       " work: there is no option --amuont; did you mean --amount? syncopate work"},
      {{"work", "--amuont=3"},
       " work: there is no option --amuont; did you mean --amount? syncopate work"},
      {{"work", "-amount", "3"},
       " work: there is no option -amount; did you mean --amount? syncopate work"},
      {{"work", "--am", "3"}, " work: there is no option --am; syncopate work"},
      {{"work", "--amo", "3"},
       " work: there is no option --amo; did you mean --amount? syncopate work"},
      {{"work", "-N", "3"}, " work: there is no option -N; did you mean -n? syncopate work"},
      {{"work", "-z"}, " work: there is no option -z; syncopate work"},
      {{"work", "--hiden"}, " work: there is no option --hiden; syncopate work"},
      {{"work", "amount", "3"},
       " work: \"amount\" is not expected: the command takes options only; did you mean --amount? "
       "syncopate work"},
      {{"work", "--quick", "yes"},
       " work: \"yes\" is not expected: --quick takes no value; syncopate work"},
      {{"need", "--to", "x", "file", "second"},
       " need: \"second\" is not expected: the command takes no argument but \"file\"; syncopate "
       "need"},
      {{"launch", "-n", "2", "--no-tags", "--", "true"},
       " launch: there is no option --no-tags; did you mean --no-tag? syncopate launch"},
      // Values.
      {{"work", "--amount"}, " work: --amount: its value is missing; its help says: how much"},
      {{"work", "-n", "--quick"},
       " work: -n: its value is missing: --quick, which follows, is an option; its help says: "
       "how many"},
      {{"work", "--amount", "x"},
       " work: --amount: \"x\" is not a whole number; its help says: how much"},
      {{"work", "--amount", "1.5"},
       " work: --amount: \"1.5\" is not a whole number; its help says: how much"},
      {{"work", "--amount", "99999999999"},
       " work: --amount: \"99999999999\" is not of a size that is possible; its help says: how "
       "much"},
      {{"work", "--seed", "x"},
       " work: --seed: \"x\" is not a whole number of at least 0; its help says: of all"},
      {{"work", "--seed", "-1"}, " work: --seed: \"-1\" is not a whole number of at least 0"},
      {{"work", "--seed=-1"}, " work: --seed: \"-1\" is not a whole number of at least 0"},
      {{"work", "--rate", "fast"},
       " work: --rate: \"fast\" is not a number; its help says: how fast"},
      {{"work", "--quick=very"}, " work: --quick takes no value, but \"very\" was given"},
      {{"work", "--amount", "1", "--amount", "2"},
       " work: --amount was given 2 times, as \"1\" and \"2\"; give it once"},
      {{"work", "-n", "0"}, " work: -n: \"0\" is not a whole number of at least 1"},
      {{"work", "--many", "two"}, " work: --many: \"two\" is not a whole number of at least 1"},
      {{"work", "--few", "9"}, " work: --few: \"9\" is not a whole number from 1 to 8"},
      {{"work", "--few", "x"}, " work: --few: \"x\" is not a whole number from 1 to 8"},
      // Options that are missing or exclude each other.
      {{"need", "--to", "x"},
       " need: the argument \"file\" is missing; its help says: what to read"},
      {{"need", "file"}, " need: --to is missing; its help says: where to"},
      {{"need", "--ot", "x", "file"},
       " need: there is no option --ot; did you mean --to? syncopate need"},
      {{"work", "--left", "1", "-r", "2"},
       " work: --left and -r cannot be given together; leave one out"},
      {{"work", "--under", "1"}, " work: --under is of use only with --left; give both"},
  };
  for (const auto& [arguments, wanted] : cases) {
    const Ran ran = RunWith(arguments);
    EXPECT_EQ(ran.code, kBadUsage) << wanted;
    EXPECT_EQ(ran.out, "") << wanted;
    EXPECT_THAT(ran.err, StartsWith(absl::StrCat("syncopate", wanted)));
    EXPECT_THAT(ran.err, EndsWith(" --help shows what is possible\n"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(CommandLineTest, EditDistanceCountsLetters) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("model", "model"), 0);
  EXPECT_EQ(EditDistance("modle", "model"), 1);   // swapped
  EXPECT_EQ(EditDistance("mdel", "model"), 1);    // inserted
  EXPECT_EQ(EditDistance("modell", "model"), 1);  // removed
  EXPECT_EQ(EditDistance("medel", "model"), 1);   // changed
  EXPECT_EQ(EditDistance("", "model"), 5);
  EXPECT_EQ(EditDistance("data", "model"), 5);
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
