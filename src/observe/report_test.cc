// The reports on a sample run: what they say, and that the page needs nothing from elsewhere.
#include "absl/strings/match.h"
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

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

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
  EXPECT_THAT(text, HasSubstr("exposed"));
  EXPECT_THAT(text, HasSubstr("measuring"));
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

TEST(TextReportTest, MeasuringIsAColumnBarAndKeyOfItsOwn) {
  RunRecord run = Sample();
  for (WorkerTrace& trace : run.traces) {
    int64_t end = 0;
    for (const Span& span : trace.spans) end = std::max(end, span.end_ns);
    const int last = trace.spans.back().iteration;
    trace.spans.push_back({SpanKind::kMeasure, last, -1, end, end + 80'000'000, 0});
  }
  run.breakdown = *BreakDown(run.traces);
  const auto json = nlohmann::json::parse(ToJson({run}));
  const double mean = json["runs"][0]["breakdown"]["measuring_ms"]["mean"];
  EXPECT_NEAR(mean, run.breakdown.measuring.mean * 1e3, 1e-9);
  EXPECT_GT(mean, 0.1);
  EXPECT_LT(run.breakdown.other.mean, 1e-3);  // not there
  const std::string html = ToHtml({run});
  ExpectBalanced(html);
  EXPECT_THAT(html, HasSubstr("<th scope='col'>measuring</th>"));
  const std::string before = ToHtml({Sample()});
  const auto shapes = [](const std::string& page) {
    const std::vector<std::string> parts = absl::StrSplit(page, "class='c-measuring'");
    return parts.size();
  };
  EXPECT_EQ(shapes(html), shapes(before) + run.traces.size());  // a bar for each worker
}

TEST(TextReportTest, ColumnsLineUp) {
  const std::string text = ToText(Sample());
  const size_t begin = text.find("  rank  host");
  ASSERT_NE(begin, std::string::npos);
  const std::vector<std::string> lines =
      absl::StrSplit(text.substr(begin, text.find("\n\n", begin) - begin), '\n');
  ASSERT_THAT(lines, SizeIs(8));  // titles, four workers, mean, median, 99 %
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
  for (const char* title : {"Where the time went", "Who is late?", "A closer look",
                            "Loss and accuracy", "How long iterations took", "What happened"}) {
    EXPECT_THAT(html, HasSubstr(title));
  }
  size_t pictures = 0, labels = 0;
  for (size_t at = html.find("<svg "); at != std::string::npos; at = html.find("<svg ", at + 1)) {
    ++pictures;
    labels += html.find("aria-label=", at) < html.find('>', at);
  }
  EXPECT_EQ(pictures, 8u);
  EXPECT_EQ(labels, pictures);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
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
