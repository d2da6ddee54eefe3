// Well-formedness, fault by fault, and the digest, field by field.
#include "model/program.h"

#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"

namespace syncopate {
namespace {

using samples::Copy;
using samples::Empty;
using samples::Receive;
using samples::Send;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A valid program with something in every field that can be filled.
Program SampleProgram() {
  Program program = Empty(Collective::kReduceScatter, 4, 6, 10);
  program.active = {0, 2, 3};
  program.blocks = {0, 2, 4, 6};
  program.scratch_bounds = {0, 10, 20};
  program.steps[0] = {Send(1, 0), Receive(2, 1, {0}, 2),
                      Copy(Space::kScratch, 0, Space::kData, 3, {0, 1})};
  program.steps[1] = {Receive(0, 1, {}, 1, Space::kScratch)};
  program.steps[2] = {Send(0, 1, {}, 2)};
  return program;
}

struct ProgramFault {
  std::string name;
  std::function<void(Program&)> change;
  std::string message;
};

class InvalidProgramTest : public ::testing::TestWithParam<ProgramFault> {};

TEST_P(InvalidProgramTest, IsRefused) {
  Program program = SampleProgram();
  ASSERT_TRUE(Validate(program).ok()) << Validate(program);
  GetParam().change(program);
  const absl::Status status = Validate(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, InvalidProgramTest,
    ::testing::Values(
        ProgramFault{"NoWorkers", [](Program& p) { p.workers = 0; }, "workers: 0"},
        ProgramFault{"TooManyWorkers", [](Program& p) { p.workers = limits::kWorkersMax + 1; },
                     "workers: 4097"},
        ProgramFault{"NobodyActive", [](Program& p) { p.active.clear(); }, "active: at least one"},
        ProgramFault{"ActiveUnsorted",
                     [](Program& p) {
                       p.active = {2, 0, 3};
                     },
                     "active: the ranks"},
        ProgramFault{"ActiveTwice",
                     [](Program& p) {
                       p.active = {0, 2, 2};
                     },
                     "active: the ranks"},
        ProgramFault{"ActiveOutOfRange",
                     [](Program& p) {
                       p.active = {0, 2, 4};
                     },
                     "active: worker 4"},
        ProgramFault{"AlgorithmWithComment", [](Program& p) { p.algorithm = "a#b"; },
                     "algorithm: "},
        ProgramFault{"AlgorithmWithLines", [](Program& p) { p.algorithm = "a\nend"; },
                     "algorithm: "},
        ProgramFault{"AlgorithmPadded", [](Program& p) { p.algorithm = "ring "; }, "algorithm: "},
        ProgramFault{"AlgorithmTooLong", [](Program& p) { p.algorithm.assign(257, 'x'); },
                     "algorithm: "},
        ProgramFault{"RootWithoutNeed", [](Program& p) { p.root = 0; },
                     "root: reduce-scatter has none"},
        ProgramFault{"TargetWithoutNeed", [](Program& p) { p.target = 0; }, "target: "},
        ProgramFault{"NoBounds", [](Program& p) { p.data_bounds.clear(); }, "data: "},
        ProgramFault{"BoundsStartLate", [](Program& p) { p.data_bounds[0] = 1; },
                     "data: the bounds must start"},
        ProgramFault{"BoundsFall", [](Program& p) { p.data_bounds[3] = 0; },
                     "data: chunk 2 ends before"},
        ProgramFault{"TooManyElements",
                     [](Program& p) { p.scratch_bounds.back() = limits::kElementsMax + 1; },
                     "scratch: "},
        ProgramFault{"TooManyChunks",
                     [](Program& p) { p.scratch_bounds.assign(limits::kChunksMax + 2, 0); },
                     "scratch: "},
        ProgramFault{"BlockMissing", [](Program& p) { p.blocks.pop_back(); },
                     "blocks: there must be one"},
        ProgramFault{"BlocksUnsorted",
                     [](Program& p) {
                       p.blocks = {0, 4, 2, 6};
                     },
                     "blocks: "},
        ProgramFault{"BlocksTooShort",
                     [](Program& p) {
                       p.blocks = {0, 2, 4, 5};
                     },
                     "blocks: the blocks cover 5"},
        ProgramFault{"BlocksOfAllReduce", [](Program& p) { p.collective = Collective::kAllReduce; },
                     "blocks: all-reduce has no"},
        ProgramFault{"UnevenAllToAll",
                     [](Program& p) {
                       p.collective = Collective::kAllToAll;
                       p.data_bounds[1] = 9;
                     },
                     "cut alike"},
        ProgramFault{"BarrierWithData",
                     [](Program& p) {
                       p.collective = Collective::kBarrier;
                       p.blocks.clear();
                     },
                     "data: a barrier"},
        ProgramFault{"StepListMissing", [](Program& p) { p.steps.pop_back(); },
                     "step lists for 3 workers"},
        ProgramFault{
            "TooManySteps",
            [](Program& p) { p.steps[3].assign(limits::kStepsPerWorkerMax + 1, Send(0, 0)); },
            "worker 3: 65537 steps"},
        ProgramFault{"CountZero", [](Program& p) { p.steps[0][0].count = 0; }, "worker 0, step 0"},
        ProgramFault{"ChunkOutOfRange", [](Program& p) { p.steps[0][1].chunk = 5; },
                     "worker 0, step 1"},
        ProgramFault{"CountOverflows", [](Program& p) { p.steps[0][1].count = UINT32_MAX; },
                     "goes past"},
        ProgramFault{"SourceOutOfRange", [](Program& p) { p.steps[0][2].source_chunk = 6; },
                     "reads past"},
        ProgramFault{"PeerOutOfRange", [](Program& p) { p.steps[2][0].peer = 4; },
                     "worker 2, step 0: the peer 4"},
        ProgramFault{"PeerIsSelf", [](Program& p) { p.steps[2][0].peer = 2; }, "itself"},
        ProgramFault{"MessageWithSource", [](Program& p) { p.steps[2][0].source_chunk = 1; },
                     "no source"},
        ProgramFault{"CopyWithPeer", [](Program& p) { p.steps[0][2].peer = 1; }, "no peer"},
        ProgramFault{"AfterItself", [](Program& p) { p.steps[0][1].after = {1}; },
                     "dependency cycle"},
        ProgramFault{"AfterLater", [](Program& p) { p.steps[0][1].after = {2}; },
                     "dependency cycle"}),
    [](const auto& test) { return test.param.name; });

TEST(ProgramTest, RootAndTargetMustBeActive) {
  Program program = Empty(Collective::kSendReceive, 3, 1);
  EXPECT_TRUE(Validate(program).ok());
  program.active = {0, 1};
  EXPECT_THAT(std::string(Validate(program).message()),
              HasSubstr("target: worker 2 is not active"));
  program.target = -1;
  EXPECT_THAT(std::string(Validate(program).message()),
              HasSubstr("target: send-receive needs one"));
  program.target = 0;
  program.root = 2;
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("root: worker 2 is not active"));
}

TEST(ProgramTest, OnlyEmptyChunksAreReducedWhereNothingIsAddedUp) {
  Program program = Empty(Collective::kBroadcast, 2, 1);
  program.steps[0] = {samples::ReceiveReduce(1, 0)};
  EXPECT_THAT(std::string(Validate(program).message()),
              AllOf(HasSubstr("worker 0, step 0"), HasSubstr("adds nothing up")));
  program.data_bounds = {0, 0};
  EXPECT_TRUE(Validate(program).ok());
}

TEST(ProgramTest, DigestDependsOnAllThatMatters) {
  const std::vector<std::function<void(Program&)>> changes = {
      [](Program& p) { p.collective = Collective::kAllGather; },
      [](Program& p) { p.workers = 5; },
      [](Program& p) { p.active[1] = 1; },
      [](Program& p) { p.root = 2; },
      [](Program& p) { p.target = 2; },
      [](Program& p) { p.data_bounds[1] = 11; },
      [](Program& p) { p.data_bounds.push_back(60); },
      [](Program& p) { p.scratch_bounds[1] = 11; },
      [](Program& p) { p.blocks[1] = 3; },
      [](Program& p) { p.steps.emplace_back(); },
      [](Program& p) { p.steps[2].clear(); },
      [](Program& p) { std::swap(p.steps[1], p.steps[3]); },
      [](Program& p) { p.steps[0][1].kind = StepKind::kReceiveReduce; },
      [](Program& p) { p.steps[0][1].space = Space::kScratch; },
      [](Program& p) { p.steps[0][2].source_space = Space::kScratch; },
      [](Program& p) { p.steps[0][1].peer = 3; },
      [](Program& p) { p.steps[0][1].chunk = 0; },
      [](Program& p) { p.steps[0][2].source_chunk = 1; },
      [](Program& p) { p.steps[0][1].count = 1; },
      [](Program& p) { p.steps[0][1].after.clear(); },
      [](Program& p) { p.steps[0][2].after = {1}; },
  };
  std::vector<std::string> digests = {DigestOf(SampleProgram()).ToString()};
  for (const auto& change : changes) {
    Program program = SampleProgram();
    change(program);
    const std::string digest = DigestOf(program).ToString();
    EXPECT_THAT(digests, ::testing::Not(::testing::Contains(digest)))
        << "change " << digests.size();
    digests.push_back(digest);
  }
}

TEST(ProgramTest, DigestDoesNotDependOnTheAlgorithmsName) {
  Program program = SampleProgram();
  program.algorithm = "another";
  EXPECT_EQ(DigestOf(program), DigestOf(SampleProgram()));
}

}  // namespace
}  // namespace syncopate
