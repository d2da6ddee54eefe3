// The reports on a sample run: what they say, and that the page needs nothing from elsewhere.
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "observe/html_report.h"
#include "observe/sample_run_testing.h"
#include "observe/text_report.h"
#include "observe/timeline_picture.h"

namespace syncopate::observe {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

RunRecord Sample(const testing::SampleOptions& options = {}) {
  RunRecord run;
  run.name = "first";
  run.config = "{\"model\": \"cnn\"}";
  run.metrics = testing::SampleMetrics(options);
  run.traces = testing::SampleTraces(options);
  auto breakdown = BreakDown(run.traces);
  EXPECT_TRUE(breakdown.ok());
  run.breakdown = *breakdown;
  run.summary.strategy = "bsp";
  run.summary.schedule = "search";
  run.summary.workers = options.workers;
  run.summary.iterations = options.iterations;
  run.summary.accuracy = 0.98;
  SetCosts(run.breakdown, &run.summary);
  run.summary.wall = {.start = 0.5, .iterations = 1.25, .evaluation = 0.09, .end = 0.16};
  run.summary.seconds = 2;
  run.ended = true;
  return run;
}

// All tags that are opened are closed, in the right order. Enough of a check for pages of our own.
void ExpectBalanced(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    if (tag[0] == '!' || tag.back() == '/' || absl::StartsWith(tag, "meta")) continue;
    const std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (name[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ("/" + open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(TextReportTest, SaysWhereTimeWentAndWhoIsLate) {
  const std::string text = ToText(Sample());
  EXPECT_THAT(text, HasSubstr("who is late? rank 2 on node1 kept others waiting in"));
  EXPECT_THAT(text, HasSubstr("network"));
  EXPECT_THAT(text, HasSubstr("wall time"));
  EXPECT_THAT(text, HasSubstr("accuracy"));
  EXPECT_THAT(text, Not(HasSubstr("note:")));
}

TEST(TextReportTest, NobodyIsLateWhereNobodyIs) {
  testing::SampleOptions options;
  options.workers = 1;
  EXPECT_THAT(ToText(Sample(options)), HasSubstr("only one worker"));
  Breakdown even;
  even.workers.resize(2);
  EXPECT_THAT(WhoIsLate(even), HasSubstr("nobody"));
}

TEST(TextReportTest, MeasuringIsARowBarAndKeyOfItsOwn) {
  const std::string before = ToHtml({Sample()});
  RunRecord run = Sample();
  run.summary.wall->measuring = 0.75;
  run.summary.seconds += 0.75;
  EXPECT_THAT(ToText(run), HasSubstr("\n    measuring               0.75 s\n"));
  const auto json = nlohmann::json::parse(ToJson({run}));
  EXPECT_EQ(json["runs"][0]["wall_seconds"]["measuring"], 0.75);
  const std::string html = ToHtml({run});
  ExpectBalanced(html);
  EXPECT_THAT(html, HasSubstr("measuring 0.75 s"));
  const auto shapes = [](const std::string& page) {
    const std::vector<std::string> parts = absl::StrSplit(page, "class='c-measuring'");
    return parts.size();
  };
  EXPECT_EQ(shapes(html), shapes(before) + 2);  // a bar and its legend
}

// Of a JSON object whose values are all numbers.
double Sum(const nlohmann::json& parts) {
  double sum = 0;
  for (const auto& [name, value] : parts.items()) sum += value.get<double>();
  return sum;
}

TEST(TextReportTest, PartsAddUpInTextJsonAndPage) {
  const RunRecord run = Sample();
  const auto json = nlohmann::json::parse(ToJson({run}))["runs"][0];
  EXPECT_NEAR(Sum(json["wall_seconds"]), json["seconds"].get<double>(), 1e-9);
  EXPECT_NEAR(Sum(json["mean_ms"]), json["breakdown"]["iteration_ms"]["mean"].get<double>(), 1e-9);
  // Rows of a worker: rank, host, iteration, its five parts.
  const std::string text = ToText(run);
  int rows = 0;
  for (const absl::string_view line :
       absl::StrSplit(text.substr(text.find("  rank  host")), '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (cells.size() != 12 || cells[1].substr(0, 4) != "node") continue;
    double whole = 0, sum = 0;
    ASSERT_TRUE(absl::SimpleAtod(cells[2], &whole)) << line;
    for (size_t i = 3; i < 8; ++i) {
      double part = 0;
      ASSERT_TRUE(absl::SimpleAtod(cells[i], &part)) << line;
      sum += part;
    }
    EXPECT_NEAR(sum, whole, 1e-9) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 4) << text;
  // The sentence, the tile and the bar of all workers name the same iteration.
  const std::string html = ToHtml({run});
  const std::string whole = FiguresOf(*run.summary.mean_ms)[0];
  EXPECT_THAT(html, HasSubstr(absl::StrCat("Of an iteration of ", whole, " ms, ")));
  EXPECT_THAT(html, HasSubstr(absl::StrCat("<dd>", whole, " ms<small>mean; median ")));
  EXPECT_THAT(html, HasSubstr(absl::StrCat(">", whole, "</text>")));
}

TEST(TextReportTest, ColumnsLineUp) {
  const std::string text = ToText(Sample());
  const size_t begin = text.find("  rank  host");
  ASSERT_NE(begin, std::string::npos);
  const std::vector<std::string> lines =
      absl::StrSplit(text.substr(begin, text.find("\n\n", begin) - begin), '\n');
  ASSERT_THAT(lines, SizeIs(6));  // titles, four workers, all
  EXPECT_THAT(lines, Each(SizeIs(lines[0].size())));
}

TEST(TextReportTest, TheCourseIsShortAndEndsAtTheEnd) {
  testing::SampleOptions options;
  options.iterations = 2'000;
  const std::vector<Metric> metrics = testing::SampleMetrics(options);
  const auto course = CourseOf(metrics, 12);
  ASSERT_THAT(course, SizeIs(12));
  EXPECT_EQ(course.back()->iteration, 1'999);
  EXPECT_EQ(course.back()->kind, "evaluate");
  EXPECT_TRUE(CourseOf({}, 12).empty());
}

TEST(TextReportTest, JsonHasEverything) {
  RunRecord unfinished;
  unfinished.name = "second";
  unfinished.notes = {"cut \"off\""};
  const auto json = nlohmann::json::parse(ToJson({Sample(), unfinished}));
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][0]["strategy"], "bsp");
  EXPECT_EQ(json["runs"][0]["breakdown"]["workers"].size(), 4u);
  EXPECT_EQ(json["runs"][0]["late"][0]["rank"], 2);
  EXPECT_GT(json["runs"][0]["breakdown"]["exposed_comm_ms"]["p50"], 0);
  EXPECT_EQ(json["runs"][1]["ended"], false);
  EXPECT_TRUE(json["runs"][1]["iteration_ms_p50"].is_null());
}

TEST(HtmlReportTest, NeedsNothingElseAndHasAllPlots) {
  const std::string html = ToHtml({Sample()});
  ExpectBalanced(html);
  for (const char* elsewhere : {"<script", "http:", "https:", "src=", "<link", "@import", "url("}) {
    EXPECT_FALSE(absl::StrContains(html, elsewhere)) << elsewhere;
  }
  for (const char* title :
       {"Where the wall time went", "Where the time of an iteration went", "Who is late?",
        "A closer look", "Loss and accuracy", "How long iterations took", "What happened"}) {
    EXPECT_THAT(html, HasSubstr(title));
  }
  size_t pictures = 0, labels = 0;
  for (size_t at = html.find("<svg "); at != std::string::npos; at = html.find("<svg ", at + 1)) {
    ++pictures;
    labels += html.find("aria-label=", at) < html.find('>', at);
  }
  EXPECT_EQ(pictures, 9u);
  EXPECT_EQ(labels, pictures);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

std::vector<std::string> LabelsOf(const std::string& html) {
  std::vector<std::string> labels;
  for (size_t at = html.find("<svg "); at != std::string::npos; at = html.find("<svg ", at + 1)) {
    const size_t begin = html.find("aria-label='", at) + 12;
    labels.push_back(html.substr(begin, html.find('\'', begin) - begin));
  }
  return labels;
}

TEST(HtmlReportTest, SeveralRunsHaveCurvesOfTraining) {
  RunRecord other = Sample({.seed = 2});
  other.name = "second";
  const std::string html = ToHtml({Sample(), other});
  ExpectBalanced(html);
  EXPECT_THAT(LabelsOf(html), ElementsAre(StartsWith("Bars of where the wall time went"),
                                          StartsWith("Bars of where the time of an iteration went"),
                                          StartsWith("Loss of training over iterations"),
                                          StartsWith("Loss of training over seconds"),
                                          StartsWith("Loss of evaluation over iterations"),
                                          StartsWith("Loss of evaluation over seconds"),
                                          StartsWith("Accuracy of evaluation over iterations"),
                                          StartsWith("Accuracy of evaluation over seconds")));
}

// A run that is evaluated at its end only has one accuracy: a number for the table, not a plot.
TEST(HtmlReportTest, OneDotIsNoPlot) {
  RunRecord run = Sample();
  std::erase_if(run.metrics, [](const Metric& metric) {
    return metric.kind == "evaluate" && metric.iteration < 59;
  });
  for (const std::string& html : {ToHtml({run}), ToHtml({run, run})}) {
    const std::vector<std::string> labels = LabelsOf(html);
    EXPECT_THAT(labels, Contains(HasSubstr("Loss")));
    EXPECT_THAT(labels, Not(Contains(StartsWith("Accuracy"))));
    EXPECT_THAT(labels, Not(Contains(StartsWith("Loss of evaluation"))));
    EXPECT_THAT(html, HasSubstr("98.00 %"));
  }
}

// About how wide the widest table of a page is that is not folded away, in pixels of its style.
double WidestTable(const std::string& html) {
  double widest = 0;
  for (size_t at = html.find("<table>"); at != std::string::npos;
       at = html.find("<table>", at + 1)) {
    const size_t details = html.rfind("<details>", at);
    if (details != std::string::npos && html.find("</details>", details) > at) continue;
    std::vector<double> columns;
    const std::string table = html.substr(at, html.find("</table>", at) - at);
    for (const absl::string_view row : absl::StrSplit(table, "<tr>")) {
      const std::vector<absl::string_view> cells = absl::StrSplit(row, absl::ByAnyChar("<>"));
      size_t column = 0;
      for (size_t i = 0; i + 1 < cells.size(); ++i) {
        if (!absl::StartsWith(cells[i], "th ") && cells[i] != "td") continue;
        columns.resize(std::max(columns.size(), column + 1));
        columns[column] =
            std::max(columns[column], 18 + 8.0 * static_cast<double>(cells[i + 1].size()));
        ++column;
      }
    }
    widest = std::max(widest, std::accumulate(columns.begin(), columns.end(), 0.0));
  }
  return widest;
}

// At 1,300 pixels a page has 1,160 of them, and a section of it 1,080.
TEST(HtmlReportTest, TablesOfSeveralRunsFitThePage) {
  RunRecord run = Sample();
  run.name = "resnet20-cifar10-asc";
  run.summary.seconds = 12'345.6;
  run.summary.iterations = 1'000'000;
  run.summary.bytes_sent = uint64_t{123} << 30;
  const double width = WidestTable(ToHtml({run, run, run}));
  EXPECT_GT(width, 300);
  EXPECT_LT(width, 1'080);
}

TEST(HtmlReportTest, TextFromFilesIsEscaped) {
  RunRecord run = Sample();
  run.name = "<script>alert(1)</script>";
  run.summary.strategy = "<b>";
  run.notes = {"<i>"};
  run.traces[0].host = "<u>";
  run.breakdown = *BreakDown(run.traces);
  run.metrics.push_back({"event", 1, 1, {}, "<img>"});
  run.config = "{\"a\": \"<s>\"}";
  for (const std::string& html : {ToHtml({run}), ToHtml({run, run})}) {
    ExpectBalanced(html);
    for (const char* tag : {"<script", "<b>", "<i>", "<u>", "<img>", "<s>"}) {
      EXPECT_FALSE(absl::StrContains(html, tag)) << tag;
    }
  }
}

TEST(HtmlReportTest, RunsWithoutAnythingArePages) {
  ExpectBalanced(ToHtml({RunRecord()}));
  ExpectBalanced(ToHtml({RunRecord(), Sample()}));
  testing::SampleOptions options;
  options.workers = 1;
  options.iterations = 1;
  ExpectBalanced(ToHtml({Sample(options)}));
}

TEST(HtmlReportTest, ManyWorkersAndIterationsStayReadable) {
  testing::SampleOptions options;
  options.workers = 100;
  options.iterations = 30;
  const std::string html = ToHtml({Sample(options)});
  ExpectBalanced(html);
  EXPECT_THAT(html, HasSubstr("The first 64 of 100 workers"));
  EXPECT_THAT(html, HasSubstr("The first 16 of 100 workers"));
  EXPECT_LT(html.size(), size_t{2} << 20);
}

TEST(TimelinePictureTest, ShowsBlockedTransfersOfTheLateRank) {
  const RunRecord run = Sample();
  const TimelinePicture picture = DrawTimeline(run.traces, run.breakdown);
  EXPECT_EQ(picture.iterations, 2);
  EXPECT_EQ(picture.workers_shown, 4u);
  EXPECT_THAT(picture.svg, HasSubstr("not yet started by rank 2"));
  EXPECT_EQ(DrawTimeline({}, Breakdown()).svg, "");
}

}  // namespace
}  // namespace syncopate::observe
