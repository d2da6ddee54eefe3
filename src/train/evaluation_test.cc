// When a job in lockstep is evaluated changes neither what is evaluated nor what comes of it.
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "base/parse.h"
#include "gtest/gtest.h"
#include "observe/run_reader.h"
#include "train/trainer_testing.h"

namespace syncopate::train {
namespace {

using testing::RunJob;
using testing::SmallJob;

struct Course {
  std::map<int64_t, double> accuracy, loss;  // by iteration
  double last_accuracy = 0;
};

// Of a job that is evaluated at iterations 2, 4, 6 and 8, which is the last one.
Course CourseOf(const std::string& when, const TemporaryFolder& folder) {
  TrainOptions options = SmallJob("mlp");
  options.synthetic_samples = 256;
  options.evaluate_samples = 0;
  options.iterations = 8;
  options.evaluate_every = 2;
  options.evaluate = when;
  options.run_folder = folder.path();
  Course course;
  for (const absl::Status& end : RunJob(2, options)) EXPECT_TRUE(end.ok()) << end;
  const auto run = observe::ReadRun(folder.path());
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return course;
  EXPECT_TRUE(run->ended);
  course.last_accuracy = run->summary.accuracy.value_or(-1);
  for (const observe::Metric& metric : run->metrics) {
    if (metric.kind != "evaluate") continue;
    course.accuracy[metric.iteration] = metric.Value("accuracy").value_or(-1);
    course.loss[metric.iteration] = metric.Value("loss").value_or(-1);
  }
  return course;
}

// Samples are added up in other batches, so numbers may differ in their last digits.
void ExpectSameAt(const Course& expected, const Course& course) {
  for (const auto& [iteration, accuracy] : course.accuracy) {
    ASSERT_EQ(expected.accuracy.count(iteration), 1u) << iteration;
    EXPECT_NEAR(accuracy, expected.accuracy.at(iteration), 1e-6) << iteration;
    EXPECT_NEAR(course.loss.at(iteration), expected.loss.at(iteration), 1e-4) << iteration;
  }
  EXPECT_NEAR(course.last_accuracy, expected.last_accuracy, 1e-6);
}

TEST(EvaluationTest, BesideTheRunFindsWhatTheRunItselfFinds) {
  const TemporaryFolder in, beside;
  const Course expected = CourseOf("in", in);
  ASSERT_EQ(expected.accuracy.size(), 4u);
  EXPECT_NE(expected.loss.at(2), expected.loss.at(8)) << "marks can be told apart";
  const Course course = CourseOf("beside", beside);
  // The first mark finds nothing under way; later ones may be left out. The end never is.
  EXPECT_EQ(course.accuracy.count(2), 1u);
  EXPECT_EQ(course.accuracy.count(8), 1u);
  ExpectSameAt(expected, course);
}

TEST(EvaluationTest, AfterTheRunFindsWhatTheRunItselfFindsAndLeavesNoSnapshots) {
  const TemporaryFolder in, after;
  const Course expected = CourseOf("in", in);
  ASSERT_EQ(expected.accuracy.size(), 4u);
  const Course course = CourseOf("after", after);
  EXPECT_EQ(course.accuracy.size(), 4u) << "there was a snapshot at each mark";
  ExpectSameAt(expected, course);
  for (const auto& entry : std::filesystem::directory_iterator(after.path())) {
    EXPECT_FALSE(absl::StartsWith(entry.path().filename().string(), "snapshot-")) << entry.path();
  }
}

}  // namespace
}  // namespace syncopate::train
