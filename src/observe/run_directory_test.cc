#include "observe/run_directory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "observe/run_reader.h"
#include "observe/sample_run_testing.h"

namespace syncopate::observe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class RunDirectoryTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static RunDirectory Make(const std::string& path, ExistingRun existing = ExistingRun::kRefuse) {
    auto run = RunDirectory::Create(path, existing);
    EXPECT_TRUE(run.ok()) << run.status();
    return *std::move(run);
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(RunDirectoryTest, NamesGoIntoRuns) {
  EXPECT_EQ(RunPath("first"), "runs/first");
  EXPECT_EQ(RunPath("some/where"), "some/where");
  EXPECT_EQ(RunPath("."), ".");
}

TEST_F(RunDirectoryTest, AWholeRunIsReadBack) {
  RunDirectory run = Make(Path("deep/run"));
  ASSERT_TRUE(run.WriteConfig("{\"model\": \"cnn\"}").ok());
  for (const Metric& metric : testing::SampleMetrics()) ASSERT_TRUE(run.Append(metric).ok());
  ASSERT_TRUE(run.WriteTimeline(testing::SampleTraces()).ok());
  Summary summary;
  summary.strategy = "bsp";
  summary.schedule = "search";
  summary.workers = 4;
  summary.iterations = 60;
  summary.reached = true;
  summary.bytes_sent = 12345;
  summary.iteration_ms_p50 = 21.5;
  ASSERT_TRUE(run.WriteSummary(summary).ok());
  ASSERT_TRUE(run.WritePrometheus({}).ok());

  const auto read = ReadRun(Path("deep/run/"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "run");
  EXPECT_TRUE(read->ended);
  EXPECT_EQ(read->summary, summary);
  EXPECT_EQ(read->metrics, testing::SampleMetrics());
  EXPECT_THAT(read->traces, SizeIs(4));
  EXPECT_THAT(read->config, HasSubstr("cnn"));
  EXPECT_THAT(read->notes, IsEmpty());
  ASSERT_THAT(read->breakdown.late, Not(IsEmpty()));
  EXPECT_EQ(read->breakdown.late[0].rank, 2);
  EXPECT_NEAR(read->breakdown.late[0].share, 2.0 / 3, 0.1);
}

TEST_F(RunDirectoryTest, AnotherRunIsNotOverwrittenUnlessTold) {
  {
    RunDirectory run = Make(Path("run"));
    ASSERT_TRUE(run.Append({"train", 1, 0.5, {{"loss", 1}}, ""}).ok());
    ASSERT_TRUE(run.WriteSummary({}).ok());
  }
  Write(Path("run/notes.txt"), "mine");
  const auto again = RunDirectory::Create(Path("run"), ExistingRun::kRefuse);
  EXPECT_TRUE(absl::IsInvalidArgument(again.status()));
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("--overwrite"));
  {
    RunDirectory run = Make(Path("run"), ExistingRun::kContinue);
    ASSERT_TRUE(run.Append({"train", 2, 0.6, {}, ""}).ok());
  }
  EXPECT_THAT(ReadRun(Path("run"))->metrics, SizeIs(2));
  Make(Path("run"), ExistingRun::kReplace);
  EXPECT_THAT(RunFiles(Path("run")), ElementsAre("metrics.jsonl"));
  EXPECT_THAT(ReadRun(Path("run"))->metrics, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(Path("run/notes.txt")));
}

TEST_F(RunDirectoryTest, MetricsOfTheNextWriterAreOfTheSameRun) {
  {
    RunDirectory run = Make(Path("run"));
    ASSERT_TRUE(run.Append({"train", 10, 1, {{"loss", 3}}, ""}).ok());
    ASSERT_TRUE(run.Append({"train", 20, 2, {{"loss", 2}}, ""}).ok());
  }
  std::ofstream(Path("run/metrics.jsonl"), std::ios::app) << "{\"kind\":\"tr";  // it was killed
  {
    absl::StatusOr<RunDirectory> next = RunDirectory::TakeOver(Path("run"), 2);
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(next->Append({"train", 30, 3, {{"loss", 1}}, ""}).ok());
  }
  EXPECT_THAT(RunFiles(Path("run")), ElementsAre("metrics-2.jsonl", "metrics.jsonl"));
  const auto iterations = [this] {
    std::vector<int64_t> found;
    for (const Metric& metric : ReadRun(Path("run"))->metrics) found.push_back(metric.iteration);
    return found;
  };
  EXPECT_THAT(iterations(), ElementsAre(10, 20, 30));
  RunDirectory resumed = Make(Path("run"), ExistingRun::kContinue);
  EXPECT_EQ(resumed.earlier().seconds, 3);
  ASSERT_TRUE(resumed.Append({"train", 40, 4, {{"loss", 1}}, ""}).ok());
  EXPECT_THAT(RunFiles(Path("run")), ElementsAre("metrics.jsonl"));
  EXPECT_THAT(iterations(), ElementsAre(10, 20, 30, 40));
}

// Resuming was killed between the two: the lines were there twice.
TEST_F(RunDirectoryTest, LinesThatWereMovedButNotRemovedAreNotMovedAgain) {
  {
    RunDirectory run = Make(Path("run"));
    ASSERT_TRUE(run.Append({"train", 10, 1, {{"loss", 3}}, ""}).ok());
  }
  for (const int rank : {2, 3}) {
    absl::StatusOr<RunDirectory> next = RunDirectory::TakeOver(Path("run"), rank);
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(next->Append({"train", 10 * rank, 1.0 * rank, {{"loss", 1}}, ""}).ok());
  }
  std::filesystem::copy_file(Path("run/metrics-3.jsonl"), Path("kept"));
  Make(Path("run"), ExistingRun::kContinue);
  ASSERT_THAT(RunFiles(Path("run")), ElementsAre("metrics.jsonl"));
  std::filesystem::rename(Path("kept"), Path("run/metrics-3.jsonl"));  // one of two was removed
  const RunDirectory again = Make(Path("run"), ExistingRun::kContinue);
  EXPECT_EQ(again.earlier().seconds, 3);
  EXPECT_THAT(RunFiles(Path("run")), ElementsAre("metrics.jsonl"));
  std::vector<int64_t> found;
  for (const Metric& metric : ReadRun(Path("run"))->metrics) found.push_back(metric.iteration);
  EXPECT_THAT(found, ElementsAre(10, 20, 30));
}

TEST_F(RunDirectoryTest, AResumedRunKeepsItsEarlierParts) {
  testing::SampleOptions options;
  options.iterations = 40;
  {
    RunDirectory run = Make(Path("run"));
    EXPECT_EQ(run.earlier().seconds, 0);
    for (int i = 1; i <= 40; ++i) {
      ASSERT_TRUE(run.Append({"train", i, 0.1 * i, {{"loss", 100.0 + i}}, ""}).ok());
    }
    ASSERT_TRUE(run.WriteTimeline(testing::SampleTraces(options)).ok());
    Summary summary;
    summary.seconds = 4.5;
    ASSERT_TRUE(run.WriteSummary(summary).ok());
  }
  std::ofstream(Path("run/metrics.jsonl"), std::ios::app) << "{\"kind\":\"tr";  // cut off

  // It goes on from a checkpoint after 30 iterations, and is cut off.
  std::vector<WorkerTrace> second = testing::SampleTraces(options);
  for (WorkerTrace& trace : second) {
    for (Span& span : trace.spans) span.iteration += 30;
  }
  {
    RunDirectory run = Make(Path("run"), ExistingRun::kContinue);
    EXPECT_EQ(run.earlier().seconds, 4.5);
    EXPECT_THAT(run.earlier().resumed_at, IsEmpty());
    Metric resumed = ResumeEvent(30);
    resumed.seconds = run.earlier().seconds;
    ASSERT_TRUE(run.Append(resumed).ok());
    for (int i = 31; i <= 70; ++i) {
      ASSERT_TRUE(run.Append({"train", i, 4.5 + 0.1 * (i - 30), {{"loss", 1.0}}, ""}).ok());
    }
    for (const WorkerTrace& trace : second) {
      auto timeline = RunDirectory::CreateTimeline(Path("run"), trace, 0);
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      ASSERT_TRUE(timeline->Append(trace.spans).ok());
    }
  }
  EXPECT_THAT(
      RunFiles(Path("run")),
      ElementsAre("metrics.jsonl", "part1-summary.json", "part1-timeline.json", "timeline-0.json",
                  "timeline-1.json", "timeline-2.json", "timeline-3.json"));
  const auto read = ReadRun(Path("run"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->ended);
  EXPECT_EQ(read->breakdown.iterations.size(), 4 * 70u);
  EXPECT_EQ(read->summary.iterations, 70);
  EXPECT_NEAR(read->summary.seconds, 8.5, 1e-9);
  EXPECT_THAT(read->summary.resumed_at, ElementsAre(30));
  EXPECT_NEAR(read->summary.part_seconds, 4.0, 1e-9);
  // The course goes forward only, and of what was done twice the later one counts.
  ASSERT_THAT(read->metrics, SizeIs(30 + 1 + 40));
  for (size_t i = 1; i < read->metrics.size(); ++i) {
    EXPECT_GE(read->metrics[i].iteration, read->metrics[i - 1].iteration);
    EXPECT_GE(read->metrics[i].seconds, read->metrics[i - 1].seconds);
  }
  EXPECT_EQ(read->metrics[31].Value("loss"), 1.0);
  EXPECT_THAT(ReadEarlierParts(Path("run")), ElementsAre(SizeIs(4)));

  // And once more: what was cut off becomes the second part.
  const RunDirectory third = Make(Path("run"), ExistingRun::kContinue);
  EXPECT_THAT(third.earlier().resumed_at, ElementsAre(30));
  EXPECT_NEAR(third.earlier().seconds, 8.5, 1e-9);
  EXPECT_THAT(RunFiles(Path("run")), Contains("part2-timeline-3.json"));
  EXPECT_EQ(ReadRun(Path("run"))->breakdown.iterations.size(), 4 * 70u);
  Make(Path("run"), ExistingRun::kReplace);
  EXPECT_THAT(RunFiles(Path("run")), ElementsAre("metrics.jsonl"));
}

TEST_F(RunDirectoryTest, ReplacingARunTakesItsCheckpointsAndItsModelAway) {
  { const RunDirectory run = Make(Path("run")); }
  std::filesystem::create_directory(Path("run/checkpoint-20"));
  std::filesystem::create_directory(Path("run/checkpoints-of-mine"));
  for (const char* name : {"checkpoint.json", "checkpoint-20/rank-0", "model.pt", "model.json",
                           "part1-mine.txt", "partner-timeline.json"}) {
    Write(Path(absl::StrCat("run/", name)), "x");
  }
  Make(Path("run"), ExistingRun::kReplace);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(Path("run"))) {
    left.insert(entry.path().filename().string());
  }
  EXPECT_THAT(left, ElementsAre("checkpoints-of-mine", "metrics.jsonl", "part1-mine.txt",
                                "partner-timeline.json"));
}

TEST_F(RunDirectoryTest, PathsThatCannotBeAreRefused) {
  Write(Path("file"), "");
  EXPECT_FALSE(RunDirectory::Create(Path("file"), ExistingRun::kRefuse).ok());
  EXPECT_FALSE(RunDirectory::Create(Path("file/run"), ExistingRun::kReplace).ok());
  EXPECT_FALSE(RunDirectory::Create("", ExistingRun::kReplace).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadRun(Path("nowhere")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRun(folder_).status()));
  EXPECT_FALSE(Make(Path("run")).WriteConfig("{").ok());
}

// As if all workers had been killed: nothing was closed or summed up, and lines are cut.
TEST_F(RunDirectoryTest, ACrashedRunIsReadWithNotes) {
  const std::vector<WorkerTrace> traces = testing::SampleTraces();
  {
    RunDirectory run = Make(Path("run"));
    ASSERT_TRUE(run.WriteConfig("{\"strategy\": \"bsp\"}").ok());
    for (const Metric& metric : testing::SampleMetrics()) ASSERT_TRUE(run.Append(metric).ok());
    for (const WorkerTrace& trace : traces) {
      auto timeline = RunDirectory::CreateTimeline(Path("run"), trace, 0);
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      ASSERT_TRUE(timeline->Append(trace.spans).ok());
    }
  }
  for (const char* name : {"metrics.jsonl", "timeline-1.json"}) {
    const std::string path = Path(absl::StrCat("run/", name));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 20);
  }
  Write(Path("run/timeline-3-end1.json"), "[\n{\"name");
  const auto run = ReadRun(Path("run"));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->ended);
  EXPECT_EQ(run->metrics.size(), testing::SampleMetrics().size() - 1);
  EXPECT_THAT(run->traces, SizeIs(4));
  EXPECT_EQ(run->traces[0].spans.size(), traces[0].spans.size());
  EXPECT_EQ(run->traces[1].spans.size(), traces[1].spans.size() - 1);
  EXPECT_EQ(run->summary.workers, 4);
  EXPECT_EQ(run->summary.strategy, "bsp");
  EXPECT_TRUE(run->summary.accuracy.has_value());
  EXPECT_TRUE(run->summary.iteration_ms_p50.has_value());
  EXPECT_THAT(run->notes, Contains(HasSubstr("metrics.jsonl: the last line is cut off")));
  EXPECT_THAT(run->notes, Contains(HasSubstr("timeline-1.json: the last line is cut off")));
  EXPECT_THAT(run->notes, Contains(HasSubstr("timeline-3-end1.json")));
  EXPECT_THAT(run->notes, Contains(HasSubstr("no summary.json")));
}

TEST_F(RunDirectoryTest, GatheredTracesReplaceTheTimelinesOfTheirRanks) {
  const std::vector<WorkerTrace> traces = testing::SampleTraces();
  RunDirectory run = Make(Path("run"));
  for (const WorkerTrace& trace : traces) {
    ASSERT_TRUE(RunDirectory::CreateTimeline(Path("run"), trace, 0).ok());
  }
  ASSERT_TRUE(run.WriteTimeline({traces[0], traces[1]}).ok());
  EXPECT_THAT(RunFiles(Path("run")),
              ElementsAre("metrics.jsonl", "timeline-2.json", "timeline-3.json", "timeline.json"));
  const auto read = ReadRun(Path("run"));
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->traces, SizeIs(4));
}

TEST_F(RunDirectoryTest, ATimelineKeepsBeginningAndEndInBoundedFiles) {
  testing::SampleOptions options;
  options.workers = 1;
  options.iterations = 600;
  const WorkerTrace trace = testing::SampleTraces(options)[0];
  constexpr uint64_t kBytes = 100'000;
  auto timeline = TimelineFile::Create(Path("timeline-0"), trace, 0, kBytes);
  ASSERT_TRUE(timeline.ok());
  for (int i = 0; i < options.iterations; ++i) {
    std::vector<Span> spans;
    for (const Span& span : trace.spans) {
      if (span.iteration == i) spans.push_back(span);
    }
    ASSERT_TRUE(timeline->Append(spans).ok());
  }
  ASSERT_TRUE(timeline->Close().ok());
  ASSERT_TRUE(timeline->Close().ok());
  EXPECT_FALSE(timeline->Append(trace.spans).ok());
  uint64_t size = 0;
  std::set<int> kept;
  for (const std::string& path : TimelineFile::PathsOf(Path("timeline-0"))) {
    const auto text = ReadFile(path, kBytes);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_TRUE(nlohmann::json::accept(*text)) << path;
    size += text->size();
    const ChromeTraceContents contents = ReadChromeTrace(*text);
    EXPECT_THAT(contents.notes, IsEmpty());
    ASSERT_THAT(contents.traces, SizeIs(1));
    for (const Span& span : contents.traces[0].spans) kept.insert(span.iteration);
  }
  EXPECT_LE(size, kBytes);
  EXPECT_EQ(*kept.begin(), 0);
  EXPECT_EQ(*kept.rbegin(), 599);
  EXPECT_EQ(kept.count(300), 0u);
  const auto run = ReadRun(folder_);
  ASSERT_TRUE(run.ok());
  ASSERT_THAT(run->traces, SizeIs(1));
  EXPECT_EQ(kept.count(run->traces[0].dropped_first - 1), 1u);
  EXPECT_EQ(kept.count(run->traces[0].dropped_first), 0u);
  EXPECT_EQ(kept.count(run->traces[0].dropped_last), 0u);
  EXPECT_EQ(kept.count(run->traces[0].dropped_last + 1), 1u);
  EXPECT_EQ(run->breakdown.iterations.size(), kept.size());
}

TEST_F(RunDirectoryTest, RandomFilesNeverCrash) {
  std::filesystem::create_directories(Path("run"));
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    for (const char* name : {"config.json", "metrics.jsonl", "summary.json", "timeline.json"}) {
      std::string text = round % 2 == 0 ? "{\"kind\":\"train\",\"iteration\":1,\"loss\":2}\n" : "";
      for (uint64_t i = random() % 200; i > 0; --i) text += static_cast<char>(random());
      Write(Path(absl::StrCat("run/", name)), text);
    }
    EXPECT_TRUE(ReadRun(Path("run")).ok());
  }
}

}  // namespace
}  // namespace syncopate::observe
