// The small texts of a run: summary, metrics, Prometheus, tables.
#include "observe/summary.h"

#include <cmath>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "observe/metrics.h"
#include "observe/prometheus.h"
#include "observe/text_table.h"

namespace syncopate::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Summary Full() {
  Summary summary;
  summary.strategy = "bsp";
  summary.schedule = "asc-wfbp";
  summary.workers = 4;
  summary.iterations = 1200;
  summary.seconds = 33.26;
  summary.reached = false;
  summary.accuracy = 0.985;
  summary.loss = 0.0512;
  summary.iteration_ms_p50 = 27.5;
  summary.compute_ms_p50 = 21.25;
  summary.exposed_comm_ms_p50 = 5.5;
  summary.waiting_ms_p50 = 1.25;
  summary.bytes_sent = 1 << 30;
  summary.cores_busy = 0.625;
  // Rounded one by one, these would be 0.01 more than their sum.
  summary.mean_ms = {
      .compute = 21.255, .pack = 0.125, .network = 4.255, .waiting = 1.255, .other = 0.605};
  summary.wall = {.start = 1.166, .iterations = 30.368, .evaluation = 1.266, .end = 0.460};
  return summary;
}

TEST(SummaryTest, JsonHasTheseKeysInThisOrder) {
  std::vector<std::string> keys;
  const auto json = nlohmann::ordered_json::parse(ToJson(Full()));
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("strategy", "schedule", "workers", "iterations", "seconds",
                                "reached", "accuracy", "loss", "iteration_ms_p50", "compute_ms_p50",
                                "exposed_comm_ms_p50", "waiting_ms_p50", "bytes_sent", "cores_busy",
                                "mean_ms", "wall_seconds"));
  EXPECT_THAT(ToJson(Full()), Not(HasSubstr("\n")));
}

TEST(SummaryTest, RoundTrips) {
  EXPECT_EQ(*ParseSummary(ToJson(Full())), Full());
  EXPECT_EQ(*ParseSummary(ToJson(Summary())), Summary());
  EXPECT_FALSE(ParseSummary("[1]").ok());
  EXPECT_FALSE(ParseSummary("{\"workers\":").ok());
}

TEST(SummaryTest, JobsWithExactEpochsTellWhatWasComputedTwice) {
  Summary summary = Full();
  EXPECT_THAT(ToTable(summary), Not(HasSubstr("computed twice")));
  summary.samples_repeated = 48;
  EXPECT_THAT(ToJson(summary), HasSubstr("\"samples_repeated\":48"));
  EXPECT_EQ(*ParseSummary(ToJson(summary)), summary);
  EXPECT_THAT(ToTable(summary), HasSubstr("samples computed twice    48"));
}

TEST(SummaryTest, WhatIsNotANumberIsNull) {
  Summary summary = Full();
  summary.loss = std::nan("");
  EXPECT_THAT(ToJson(summary), HasSubstr("\"loss\":null"));
  EXPECT_FALSE(ParseSummary(ToJson(summary))->loss.has_value());
}

TEST(SummaryTest, TableShowsWhatIsKnown) {
  EXPECT_THAT(ToTable(Full()), HasSubstr("98.50 %"));
  EXPECT_THAT(ToTable(Full()), HasSubstr("target reached            no"));
  EXPECT_THAT(ToTable(Summary()), Not(HasSubstr("accuracy")));
}

TEST(SummaryTest, AResumedRunTellsThePartAndTheWhole) {
  Summary summary = Full();
  EXPECT_THAT(ToJson(summary), Not(HasSubstr("resumed_at")));
  summary.iterations = 400;
  summary.seconds = 12.5;
  summary.resumed_at = {100, 220};
  summary.part_seconds = 3.9;
  EXPECT_THAT(ToJson(summary), HasSubstr("\"resumed_at\":[100,220],\"part_iterations\":180,"
                                         "\"part_seconds\":3.9"));
  EXPECT_EQ(*ParseSummary(ToJson(summary)), summary);
  EXPECT_THAT(ToTable(summary), HasSubstr("100, 220; since then 180 iterations in 3.9 s"));
  EXPECT_THAT(ToJson(summary, "/runs/a"), HasSubstr("\"run\":\"/runs/a\"}"));
}

// The figures of the lines that are indented by four, below the line that begins with `title`, and
// the figure of that line itself at the end.
std::vector<double> FiguresBelow(const std::string& table, absl::string_view title) {
  std::vector<double> figures;
  double whole = -1;
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    if (line.substr(0, 2 + title.size()) == absl::StrCat("  ", title)) {
      EXPECT_TRUE(absl::SimpleAtod(line.substr(28, line.rfind(' ') - 28), &whole)) << line;
    } else if (whole >= 0) {
      if (line.substr(0, 4) != "    ") break;
      double figure = -1;
      EXPECT_TRUE(absl::SimpleAtod(line.substr(28, line.rfind(' ') - 28), &figure)) << line;
      figures.push_back(figure);
    }
  }
  figures.push_back(whole);
  return figures;
}

TEST(SummaryTest, PartsAddUpAsPrinted) {
  for (const char* title : {"wall time", "an iteration, mean"}) {
    const std::vector<double> figures = FiguresBelow(ToTable(Full()), title);
    ASSERT_GE(figures.size(), 5u) << ToTable(Full());
    EXPECT_NEAR(std::accumulate(figures.begin(), figures.end() - 1, 0.0), figures.back(), 1e-9)
        << ToTable(Full());
  }
  EXPECT_THAT(ToTable(Full()), HasSubstr("wall time                 33.26 s\n"));
  EXPECT_THAT(ToTable(Full()), HasSubstr("    1200 iterations         30.37 s\n"));
  EXPECT_THAT(ToTable(Full()), Not(HasSubstr("checkpoints")));
}

TEST(SummaryTest, ComparisonLinesUp) {
  const std::string text = ToComparison({"a", "a longer name"}, {Full(), Summary()});
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u + 4u + 4u) << text;
  EXPECT_EQ(lines[0].size(), lines[1].size());
  const size_t column = lines[0].find("workers") + 6;
  EXPECT_EQ(lines[1][column], '4');
  EXPECT_EQ(lines[2][column], '0');
  // Each row of parts is a whole and what adds up to it; nothing is known of the second run.
  for (const auto& [at, last] : {std::pair(5, 4), std::pair(9, 5)}) {
    std::vector<double> figures;
    for (const absl::string_view cell : absl::StrSplit(lines[static_cast<size_t>(at)], ' ')) {
      double figure = 0;
      if (absl::SimpleAtod(cell, &figure)) figures.push_back(figure);
    }
    ASSERT_GT(figures.size(), static_cast<size_t>(last)) << text;
    EXPECT_NEAR(std::accumulate(figures.begin() + 1, figures.begin() + 1 + last, 0.0), figures[0],
                1e-9)
        << text;
    EXPECT_THAT(lines[static_cast<size_t>(at) + 1], HasSubstr(" - "));
  }
  EXPECT_THAT(text, Not(HasSubstr("checkpoints")));
}

TEST(TextTableTest, CountsCharactersAndLeavesNoBlanksAtTheEnd) {
  TextTable table({"<what", "µs"});
  table.Add({"größe", "1"});
  table.Add({"x", "12345"});
  EXPECT_EQ(table.ToString(), "  what      µs\n  größe      1\n  x      12345\n");
}

TEST(MetricsTest, RoundTrips) {
  const Metric metric{"train", 7, 1.5, {{"loss", 0.25}, {"rate", 3}}, "with \"text\""};
  const MetricsContents contents = ReadMetrics(ToJson(metric) + "\n" + ToJson(metric));
  EXPECT_THAT(contents.metrics, ElementsAre(metric, metric));
  EXPECT_THAT(contents.notes, IsEmpty());
  EXPECT_EQ(metric.Value("loss"), 0.25);
  EXPECT_FALSE(metric.Value("accuracy").has_value());
}

TEST(MetricsTest, BadLinesAreNotedAndOthersRead) {
  const MetricsContents contents = ReadMetrics(
      "{\"kind\":\"train\",\"iteration\":1}\nnonsense\n{\"kind\":5}\n\n"
      "{\"kind\":\"evaluate\",\"iteration\":2,\"accuracy\":null}\n{\"kind\":\"tr");
  EXPECT_EQ(contents.metrics.size(), 2u);
  EXPECT_THAT(contents.notes, ElementsAre(HasSubstr("cut off"), HasSubstr("2 lines")));
  const Metric diverged{"train", 3, 0, {{"loss", INFINITY}}, ""};
  EXPECT_THAT(ToJson(diverged), HasSubstr("\"loss\":null"));
}

TEST(MetricsTest, WhatWasDoneAgainCountsOnce) {
  const auto at = [](int64_t iteration, double seconds) {
    return Metric{"train", iteration, seconds, {{"loss", seconds}}, ""};
  };
  std::vector<Metric> metrics = {at(10, 1), at(20, 2),       at(30, 3), ResumeEvent(20),
                                 at(30, 4), ResumeEvent(20), at(30, 5), at(40, 6)};
  EXPECT_THAT(ResumedAt(metrics), ElementsAre(20, 20));
  EXPECT_EQ(ResumeEvent(20).text, "resumed at 20");
  DropSuperseded(metrics);
  EXPECT_THAT(metrics, ElementsAre(at(10, 1), at(20, 2), ResumeEvent(20), ResumeEvent(20),
                                   at(30, 5), at(40, 6)));
}

TEST(PrometheusTest, EverySampleHasTypeAndLabel) {
  RunState state;
  state.run = "odd \"name\"\\";
  state.workers = 2;
  state.iterations = 10;
  state.bytes_sent = 77;
  state.iteration_seconds = 0.02;
  state.loss = std::nan("");
  const std::string text = ToPrometheus(state);
  EXPECT_THAT(text, HasSubstr("# TYPE syncopate_iterations_total counter\n"
                              "syncopate_iterations_total{run=\"odd \\\"name\\\"\\\\\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_iteration_seconds{run=\"odd \\\"name\\\"\\\\\"} 0.02\n"));
  EXPECT_THAT(text, HasSubstr("} NaN\n"));
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
  EXPECT_EQ(text.back(), '\n');
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(line.substr(0, 2) == "# " || line.substr(0, 10) == "syncopate_") << line;
  }
}

}  // namespace
}  // namespace syncopate::observe
