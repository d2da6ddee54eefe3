// The text form: round trips, and one test per malformed text.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program.h"
#include "model/program_samples.h"
#include "model/program_validator.h"

namespace syncopate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTwoWorkers[] = R"(syncopate program 1
collective all-reduce
algorithm pair
workers 2
active 0-1
data 2x512
scratch 512
worker 0
  0: send data 1 to 1
  1: receive-reduce data 0 from 1
  2: send data 0 to 1 after 1
  3: receive data 1 from 1 after 0
worker 1
  0: send data 0 to 0
  1: receive scratch 0 from 0
  2: reduce data 1 from scratch 0 after 1
  3: send data 1 to 0 after 2
  4: receive data 0 from 0 after 0
end
)";

TEST(ProgramTextTest, ReadsWhatItWrites) {
  const absl::StatusOr<Program> program = ParseProgram(kTwoWorkers);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->algorithm, "pair");
  EXPECT_EQ(program->data_bounds, (std::vector<uint64_t>{0, 512, 1024}));
  EXPECT_EQ(program->steps[1][2], samples::Reduce(Space::kData, 1, Space::kScratch, 0, {1}));
  EXPECT_EQ(ToText(*program), kTwoWorkers);
}

// docs/program.md shows this program and this refusal.
TEST(ProgramTextTest, TheExampleOfTheDocumentationIsTrue) {
  const std::string text = samples::kPair;
  const absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToText(*program), text);
  EXPECT_TRUE(ProveProgram(*program).ok()) << ProveProgram(*program).status();
  const absl::StatusOr<Program> hasty = ParseProgram(
      absl::StrReplaceAll(text, {{"receive data 1 from 1 after 0", "receive data 1 from 1"}}));
  EXPECT_EQ(
      std::string(ProveProgram(*hasty).status().message()),
      "conflicting access: worker 0, step 3 (receive data 1 from 1) writes data chunk 1 while "
      "step 0 (send data 1 to 1) may still read it; no chain of \"after\" orders the two");
}

TEST(ProgramTextTest, CommentsAndSpacesDoNotMatter) {
  std::string text =
      absl::StrReplaceAll(kTwoWorkers, {{"\n", "   # why\n\n\t# more\n"}, {" ", "  "}});
  text = absl::StrReplaceAll(text, {{"syncopate  program  1", "syncopate program 1"}});
  const absl::StatusOr<Program> program = ParseProgram(absl::StrCat("# first\n", text));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*program, *ParseProgram(kTwoWorkers));
  // Windows line ends and a missing one at the end.
  text = absl::StrReplaceAll(kTwoWorkers, {{"\n", "\r\n"}});
  text.resize(text.size() - 2);
  EXPECT_EQ(*ParseProgram(text), *ParseProgram(kTwoWorkers));
}

TEST(ProgramTextTest, SizesMayBeSpreadOverLines) {
  const std::string text =
      absl::StrReplaceAll(kTwoWorkers, {{"data 2x512\n", "data 512\ndata\ndata 1x512\n"}});
  EXPECT_EQ(*ParseProgram(text), *ParseProgram(kTwoWorkers));
}

// A program with random but valid contents; it need not compute anything.
Program RandomProgram(Random& random) {
  Program program;
  program.collective = kCollectives[random.Below(std::size(kCollectives))];
  const bool barrier = program.collective == Collective::kBarrier;
  program.algorithm = random.Below(2) == 0 ? "" : "a planner (k=3, ring)";
  program.workers = static_cast<int>(random.Between(1, 9));
  for (int worker = 0; worker < program.workers; ++worker) {
    if (random.Below(3) != 0) program.active.push_back(worker);
  }
  if (program.active.empty()) program.active.push_back(0);
  const auto any_active = [&] { return program.active[random.Below(program.active.size())]; };
  if (HasRoot(program.collective)) program.root = any_active();
  if (program.collective == Collective::kSendReceive) program.target = any_active();
  for (auto* bounds : {&program.data_bounds, &program.scratch_bounds}) {
    const uint64_t size = random.Below(1000);
    const uint64_t chunks = random.Below(40);
    for (uint64_t i = 0; i < chunks; ++i) {
      const bool even = program.collective == Collective::kAllToAll || random.Below(2) == 0;
      bounds->push_back(bounds->back() + (barrier ? 0 : even ? size : random.Below(1000)));
    }
  }
  if (HasBlocks(program.collective)) {
    if (program.collective == Collective::kAllToAll) {
      program.data_bounds.resize(1 + (program.data_bounds.size() - 1) / program.active.size() *
                                         program.active.size());
    }
    const uint32_t chunks = program.chunks(Space::kData);
    program.blocks = {0};
    for (size_t i = 1; i < program.active.size(); ++i) {
      program.blocks.push_back(
          program.collective == Collective::kAllToAll
              ? static_cast<uint32_t>(chunks / program.active.size() * i)
              : static_cast<uint32_t>(random.Between(program.blocks.back(), chunks)));
    }
    program.blocks.push_back(chunks);
  }
  program.steps.resize(program.workers);
  for (int worker = 0; worker < program.workers; ++worker) {
    const uint64_t steps = random.Below(20);
    for (uint64_t index = 0; index < steps; ++index) {
      Step step;
      step.kind = static_cast<StepKind>(random.Below(5));
      if (!Reduces(program.collective) && step.kind == StepKind::kReceiveReduce) {
        step.kind = StepKind::kReceive;
      }
      if (!Reduces(program.collective) && step.kind == StepKind::kReduce)
        step.kind = StepKind::kCopy;
      const bool message = step.kind <= StepKind::kReceiveReduce;
      step.space = random.Below(2) == 0 ? Space::kData : Space::kScratch;
      if (!message) step.source_space = random.Below(2) == 0 ? Space::kData : Space::kScratch;
      const uint32_t chunks =
          message ? program.chunks(step.space)
                  : std::min(program.chunks(step.space), program.chunks(step.source_space));
      if (chunks == 0 || (message && program.workers == 1)) continue;
      step.chunk = static_cast<uint32_t>(random.Below(chunks));
      step.count = static_cast<uint32_t>(random.Between(1, chunks - step.chunk));
      if (message) {
        step.peer = static_cast<int>(random.Below(program.workers - 1));
        if (step.peer >= worker) ++step.peer;
      } else {
        step.source_chunk = static_cast<uint32_t>(random.Below(chunks - step.count + 1));
      }
      const size_t here = program.steps[worker].size();
      for (uint64_t k = here == 0 ? 0 : random.Below(5); k > 0; --k) {
        step.after.push_back(static_cast<uint32_t>(random.Below(here)));
      }
      program.steps[worker].push_back(step);
    }
  }
  return program;
}

TEST(ProgramTextTest, RandomProgramsRoundTrip) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Program program = RandomProgram(random);
    ASSERT_TRUE(Validate(program).ok()) << "seed " << seed << ": " << Validate(program);
    const std::string text = ToText(program);
    const absl::StatusOr<Program> again = ParseProgram(text);
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.status() << "\n" << text;
    ASSERT_EQ(*again, program) << "seed " << seed << "\n" << text;
    ASSERT_EQ(DigestOf(*again), DigestOf(program)) << "seed " << seed;
  }
}

TEST(ProgramTextTest, BrokenTextIsRefusedOrReadButNeverCrashes) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::string text = kTwoWorkers;
    for (uint64_t k = random.Between(1, 4); k > 0; --k) {
      const size_t at = random.Below(text.size());
      switch (random.Below(3)) {
        case 0:
          text[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          text.erase(at, random.Between(1, 8));
          break;
        default:
          text.insert(at, text.substr(random.Below(text.size()), random.Between(1, 8)));
      }
    }
    const absl::StatusOr<Program> program = ParseProgram(text);
    if (program.ok()) {
      ASSERT_TRUE(Validate(*program).ok()) << "seed " << seed;
      ASSERT_EQ(*ParseProgram(ToText(*program)), *program) << "seed " << seed;
    } else {
      ASSERT_THAT(std::string(program.status().message()), StartsWith("line ")) << "seed " << seed;
    }
  }
}

struct Malformed {
  std::string what;      // a name for the test
  std::string old_text;  // in kTwoWorkers, replaced everywhere
  std::string new_text;
  std::string line;  // that the message must name
  std::string message;
};

class MalformedProgramTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedProgramTest, IsRefusedWithItsLine) {
  const Malformed& param = GetParam();
  ASSERT_THAT(kTwoWorkers, HasSubstr(param.old_text));
  const absl::StatusOr<Program> program =
      ParseProgram(absl::StrReplaceAll(kTwoWorkers, {{param.old_text, param.new_text}}));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(program.status().message()),
              AllOf(StartsWith(absl::StrCat("line ", param.line, ": ")), HasSubstr(param.message)));
}

const char* const kTooMany = "more than the limit";

INSTANTIATE_TEST_SUITE_P(
    Texts, MalformedProgramTest,
    ::testing::Values(
        Malformed{"NoTitle", "syncopate program 1\n", "", "1", "starts with"},
        Malformed{"UnknownVersion", "program 1", "program 2", "1", "starts with"},
        Malformed{"UnknownCollective", "all-reduce", "all-sum", "2", "not a collective"},
        Malformed{"UnknownKeyword", "workers 2", "workerz 2", "4", "workerz"},
        Malformed{"SecondKeyword", "active 0-1", "workers 2", "5", "second"},
        Malformed{"NoCollective", "collective all-reduce\n", "", "7", "\"collective\" is missing"},
        Malformed{"NoWorkers", "workers 2\n", "", "7", "\"workers\" is missing"},
        Malformed{"NoActive", "active 0-1\n", "", "7", "\"active\" is missing"},
        Malformed{"TooManyWorkers", "workers 2", "workers 4097", "4", "4096"},
        Malformed{"ZeroWorkers", "workers 2", "workers 0", "4", "from 1"},
        Malformed{"ActiveOutOfRange", "active 0-1", "active 0-2", "5", "worker 2"},
        Malformed{"ActiveIsNoList", "active 0-1", "active all", "5", "list of ranks"},
        Malformed{"RootWithoutNeed", "active 0-1", "active 0-1\nroot 0", "6", "has none"},
        Malformed{"RootMissing", "all-reduce", "broadcast", "8", "root"},
        Malformed{"BlocksMissing", "all-reduce", "all-gather", "8", "blocks"},
        Malformed{"BlocksWithoutNeed", "scratch 512", "scratch 512\nblocks 2x1", "8", "no blocks"},
        Malformed{"AlgorithmNotPrintable", "pair", "p\x01ir", "3", "printable"},
        Malformed{"SizeIsNoNumber", "2x512", "2x", "6", "not a whole number"},
        Malformed{"SizeNegative", "2x512", "2x-1", "6", "not a whole number"},
        Malformed{"TooManyChunks", "2x512", "1000000x0 1000000x0", "6", kTooMany},
        Malformed{"TooManyElements", "2x512", "2x1099511627776", "6", "limit"},
        Malformed{"RepeatZero", "2x512", "0x512", "6", "not a whole number"},
        Malformed{"WorkerOutOfRange", "worker 1", "worker 2", "13", "not a whole number"},
        Malformed{"WorkerTwice", "worker 1", "worker 0", "13", "does not come after"},
        Malformed{"WorkerWithoutRank", "worker 1", "worker", "13", "RANK"},
        Malformed{"StepBeforeWorker", "worker 0\n", "end\n", "9", "nothing may follow"},
        Malformed{"StepSkipped", "  1: receive-reduce data 0 from 1\n", "", "10", "expected step"},
        Malformed{"UnknownKind", "0: send data 1", "0: sned data 1", "9", "sned"},
        Malformed{"UnknownSpace", "receive scratch 0", "receive scratches 0", "15", "scratches"},
        Malformed{"WrongPreposition", "send data 1 to 1", "send data 1 from 1", "9", "\"to\""},
        Malformed{"StepCutShort", "receive-reduce data 0 from 1", "receive-reduce data", "10",
                  "not a whole number"},
        Malformed{"PeerOutOfRange", "send data 1 to 1", "send data 1 to 2", "9", "0 to 1"},
        Malformed{"PeerIsSelf", "send data 1 to 1", "send data 1 to 0", "9", "itself"},
        Malformed{"ChunkOutOfRange", "send data 1 to 1", "send data 2 to 1", "9", "goes past"},
        Malformed{"RunOutOfRange", "send data 1 to 1", "send data 1-2 to 1", "9", "goes past"},
        Malformed{"RunBackwards", "send data 1 to 1", "send data 1-0 to 1", "9",
                  "not a whole number"},
        Malformed{"SourceOutOfRange", "from scratch 0", "from scratch 1", "16", "reads past"},
        Malformed{"LengthsDiffer", "reduce data 1 from", "reduce data 0-1 from", "16", "reads 1"},
        Malformed{"AfterNothing", "to 1 after 1", "to 1 after", "11", "names no step"},
        Malformed{"AfterMisspelt", "to 1 after 1", "to 1 afer 1", "11", "afer"},
        Malformed{"AfterItself", "to 1 after 1", "to 1 after 2", "11", "dependency cycle"},
        Malformed{"AfterLater", "to 1 after 1", "to 1 after 3", "11", "dependency cycle"},
        Malformed{"AfterHuge", "to 1 after 1", "to 1 after 70000", "11", "not a whole number"},
        Malformed{"NoEnd", "end\n", "", "18", "stops before"},
        Malformed{"MoreAfterEnd", "end\n", "end\nworker 1\n", "20", "nothing may follow"},
        Malformed{"WordsAfterEnd", "end\n", "end now\n", "19", "nothing may follow"}),
    [](const auto& test) { return test.param.what; });

TEST(ProgramTextTest, RefusesReducingStepsWhereNothingIsReduced) {
  const absl::StatusOr<Program> program = ParseProgram(absl::StrReplaceAll(
      kTwoWorkers, {{"all-reduce", "broadcast"}, {"active 0-1", "active 0-1\nroot 0"}}));
  EXPECT_THAT(std::string(program.status().message()),
              AllOf(StartsWith("line 11: "), HasSubstr("adds nothing up")));
}

TEST(ProgramTextTest, RefusesTooManySteps) {
  std::string text =
      "syncopate program 1\ncollective all-reduce\nworkers 2\nactive 0\ndata 1\nworker 1\n";
  for (uint64_t i = 0; i <= limits::kStepsPerWorkerMax; ++i) {
    absl::StrAppend(&text, i, ": send data 0 to 0\n");
  }
  EXPECT_THAT(std::string(ParseProgram(text).status().message()),
              AllOf(StartsWith(absl::StrCat("line ", 7 + limits::kStepsPerWorkerMax)),
                    HasSubstr("65536 steps")));
}

}  // namespace
}  // namespace syncopate
