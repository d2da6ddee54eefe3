#include "base/progress.h"

#include <chrono>
#include <future>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Style = ProgressOptions::Style;

constexpr int64_t kProgressSecond = 1'000'000'000;

class ProgressTest : public ::testing::Test {
 protected:
  Progress Make(Style style) {
    return Progress("syncopate bench", {.style = style, .thread = false}, clock_, err_);
  }
  // What was written since the last call.
  std::string Said() {
    const std::string text = err_.str();
    err_.str("");
    return text;
  }

  ManualClock clock_;
  std::ostringstream err_;
};

TEST_F(ProgressTest, WithoutATerminalThereIsALineEveryHalfMinute) {
  Progress progress = Make(Style::kLines);
  progress.Show("1 MiB, round 1", 0);
  clock_.AdvanceNs(20 * kProgressSecond);
  progress.Show("1 MiB, round 2", 0.25);
  progress.Tick();
  EXPECT_EQ(Said(), "");
  clock_.AdvanceNs(10 * kProgressSecond);
  progress.Tick();
  // A quarter took 20 s, so the rest takes 60 s, of which 10 are over.
  EXPECT_EQ(Said(), "syncopate bench: 25 %, 30 s so far, about 50 s left: 1 MiB, round 2\n");
  clock_.AdvanceNs(29 * kProgressSecond);
  progress.Tick();
  EXPECT_EQ(Said(), "");
  clock_.AdvanceNs(kProgressSecond);
  progress.Tick();
  EXPECT_THAT(Said(), HasSubstr("1 min so far"));
}

TEST_F(ProgressTest, OnATerminalOneLineIsDrawnOverAndOver) {
  {
    Progress progress = Make(Style::kRedrawn);
    progress.Show("starting openmpi");
    EXPECT_EQ(Said(), "\r\033[Ksyncopate bench: 1 s so far: starting openmpi");
    clock_.AdvanceNs(2 * kProgressSecond);
    progress.Tick();
    EXPECT_EQ(Said(), "\r\033[Ksyncopate bench: 2 s so far: starting openmpi");
    progress.Clear();
    EXPECT_EQ(Said(), "\r\033[K");
    clock_.AdvanceNs(2 * kProgressSecond);
    progress.Tick();  // somebody else writes now
    EXPECT_EQ(Said(), "");
    progress.Show("round 1", 0.5);
    EXPECT_THAT(Said(), Not(HasSubstr("\n")));
  }
  EXPECT_EQ(Said(), "\r\033[K");  // nothing is left of it
}

TEST_F(ProgressTest, SaysBeforehandHowLong) {
  Progress progress = Make(Style::kLines);
  progress.Announce(4, "1 size");  // too short to be worth a line
  EXPECT_EQ(Said(), "");
  progress.Announce(200, "4 contestants, 7 sizes, 5 rounds");
  EXPECT_EQ(Said(), "syncopate bench: about 3 min 20 s (4 contestants, 7 sizes, 5 rounds)\n");
  // As long as nothing is measured, what was announced counts.
  clock_.AdvanceNs(30 * kProgressSecond);
  progress.Show("starting gloo");
  EXPECT_EQ(Said(), "syncopate bench: 30 s so far, about 2 min 50 s left: starting gloo\n");
}

TEST_F(ProgressTest, WorkOfAKnownTimeIsJudgedByTheClock) {
  Progress progress = Make(Style::kLines);
  progress.ShowTimed("measuring costs", 100);
  clock_.AdvanceNs(40 * kProgressSecond);
  progress.Tick();
  EXPECT_THAT(Said(), AllOf(HasSubstr("40 %"), HasSubstr("about 1 min left")));
  clock_.AdvanceNs(100 * kProgressSecond);
  progress.Tick();
  EXPECT_THAT(Said(), AllOf(HasSubstr("99 %"), Not(HasSubstr("left"))));
}

TEST_F(ProgressTest, SilentIsSilent) {
  Progress progress = Make(Style::kSilent);
  progress.Announce(1000, "");
  progress.Show("something", 0.5);
  clock_.AdvanceNs(100 * kProgressSecond);
  progress.Tick();
  EXPECT_EQ(Said(), "");
}

TEST(ProgressOptionsTest, TheEnvironmentDecidesHowOften) {
  const auto options = [](const std::string& value, bool terminal) {
    return ProgressOptionsFor(MapEnvironment({{kProgressVariable, value}}), terminal);
  };
  EXPECT_EQ(ProgressOptionsFor(MapEnvironment({}), true)->style, Style::kRedrawn);
  EXPECT_EQ(ProgressOptionsFor(MapEnvironment({}), false)->style, Style::kLines);
  EXPECT_EQ(ProgressOptionsFor(MapEnvironment({}), false)->period_ns, 30 * kProgressSecond);
  EXPECT_EQ(options("5s", true)->style, Style::kLines);
  EXPECT_EQ(options("5s", true)->period_ns, 5 * kProgressSecond);
  EXPECT_EQ(options("off", true)->style, Style::kSilent);
  EXPECT_EQ(options("often", true).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FormatAboutTest, IsAsExactAsAnEstimate) {
  EXPECT_EQ(FormatAbout(0.2), "1 s");
  EXPECT_EQ(FormatAbout(12.4), "12 s");
  EXPECT_EQ(FormatAbout(43), "45 s");
  EXPECT_EQ(FormatAbout(58), "1 min");
  EXPECT_EQ(FormatAbout(131), "2 min 10 s");
  EXPECT_EQ(FormatAbout(599), "10 min");
  EXPECT_EQ(FormatAbout(1510), "25 min");
  EXPECT_EQ(FormatAbout(3599), "1 h");
  EXPECT_EQ(FormatAbout(4 * 3600 + 1210), "4 h 20 min");
}

// Tells when something was written.
class ToldBuffer : public std::stringbuf {
 public:
  std::future<void> written() { return told_.get_future(); }

 private:
  int sync() override {
    if (!str().empty() && !std::exchange(done_, true)) told_.set_value();
    return 0;
  }
  bool done_ = false;
  std::promise<void> told_;
};

TEST(ProgressThreadTest, SpeaksWhileTheCommandIsBusy) {
  ToldBuffer buffer;
  std::ostream err(&buffer);
  std::future<void> written = buffer.written();
  {
    Progress progress("syncopate bench", {.style = Style::kLines, .period_ns = 20'000'000},
                      MonotonicClock(), err);
    progress.Show("a long run", 0.5);
    ASSERT_EQ(written.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  }
  EXPECT_THAT(buffer.str(), HasSubstr("syncopate bench: 50 %"));
}

}  // namespace
}  // namespace syncopate
