// Programs and planners from outside, and rules that override the choice: they run, and whatever is
// wrong with them is an error that says so.
#include <unistd.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"
#include "plan/collective/planners.h"
#include "syncopate/planner.h"
#include "syncopate/syncopate.h"
#include "transport/terms.h"
#include "worker/algorithm_terms.h"
#include "worker/own_programs.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using samples::kPair;

std::string PairWithout(const std::string& what, const std::string& instead = "") {
  return absl::StrReplaceAll(kPair, {{what, instead}});
}

plan::CollectiveRequest PairRequest() {
  plan::CollectiveRequest request;
  request.workers = 2;
  request.active = {0, 1};
  request.elements = 1024;
  return request;
}

// A broadcast in which the root sends to everybody, of `elements` of any worker count.
absl::StatusOr<std::string> StarBroadcast(const PlanRequest& request) {
  if (request.elements > 1000) return absl::UnimplementedError("too large for this test");
  std::string text = absl::StrCat("syncopate program 1\ncollective broadcast\nworkers ",
                                  request.workers, "\nactive 0-", request.workers - 1, "\nroot ",
                                  request.root, "\ndata ", request.elements, "\n");
  for (int worker = 0; worker < request.workers; ++worker) {
    absl::StrAppend(&text, "worker ", worker, "\n");
    int step = 0;
    for (int peer = 0; peer < request.workers; ++peer) {
      if (worker == request.root && peer != worker) {
        absl::StrAppend(&text, step++, ": send data 0 to ", peer, "\n");
      }
    }
    if (worker != request.root)
      absl::StrAppend(&text, "0: receive data 0 from ", request.root, "\n");
  }
  return text + "end\n";
}

// Once for all tests of this process.
void RegisterStarBroadcast() {
  static std::once_flag once;
  std::call_once(once, [] {
    const absl::Status status = RegisterPlanner({.name = "own-star",
                                                 .collective = Collective::kBroadcast,
                                                 .summary = "the root to everybody",
                                                 .plan = StarBroadcast});
    EXPECT_TRUE(status.ok()) << status;
  });
}

Call SumCall(std::vector<float>& data) {
  return {.collective = Collective::kAllReduce,
          .data = Array::Of(data.data(), data.size()),
          .op = ReduceOp::kSum};
}

TEST(OwnProgramTest, RunsAgainAndAgain) {
  RunWorkers(2, [](Worker& worker) {
    for (int round = 0; round < 3; ++round) {
      std::vector<float> data(1024, static_cast<float>(worker.rank() + round));
      Call call = SumCall(data);
      call.program = kPair;
      const absl::Status status = worker.world().Run(call);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(data, std::vector<float>(1024, static_cast<float>(1 + 2 * round)));
      // Between two of them a call of the library's own.
      call.program = "";
      ASSERT_TRUE(worker.world().Run(call).ok());
      EXPECT_EQ(data[7], static_cast<float>(2 * (1 + 2 * round)));
    }
  });
}

TEST(OwnProgramTest, BadOnesAreRefusedBeforeAnythingMoves) {
  const std::pair<std::string, const char*> cases[] = {
      {"nonsense", "syncopate program 1"},
      {PairWithout("end\n"), "end"},
      {PairWithout("  1: receive-reduce data 0 from 1", "  1: dance data 0 from 1"), "line 9"},
      // What the validator says.
      {PairWithout("receive data 1 from 1 after 0", "receive data 1 from 1"), "conflicting access"},
      {PairWithout("receive-reduce", "receive"), "contribution lost"},
      // What the call says.
      {PairWithout("all-reduce", "reduce\nroot 0"),
       "it is for the collective reduce, the call for all-reduce"},
      {PairWithout("data 2x512", "data 2x500"),
       "it is for a number of elements of 1000, the call for 1024"},
      {PairWithout("workers 2", "workers 3"), "it is for a number of workers of 3, the call for 2"},
  };
  RunWorkers(2, [&](Worker& worker) {
    for (const auto& [text, message] : cases) {
      std::vector<float> data(1024, 1);
      Call call = SumCall(data);
      call.program = text;
      const absl::Status status = worker.world().Run(call);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(message));
      EXPECT_EQ(GetBlast(status), BlastRadius::kOperation);
      EXPECT_EQ(data, std::vector<float>(1024, 1));
    }
    std::vector<float> data(1024, 1);
    Call call = SumCall(data);
    call.program = kPair;
    call.algorithm = "ring";
    EXPECT_THAT(std::string(worker.world().Run(call).message()), HasSubstr("both an algorithm"));
    ASSERT_TRUE(worker.world().Barrier().ok()) << "the group is as good as before";
  });
}

TEST(OwnProgramTest, MustBeForTheRootTheActiveOnesAndTheBlocks) {
  plan::CollectiveRequest request = PairRequest();
  request.active = {0};
  EXPECT_THAT(std::string(ReadOwnProgram(kPair, request).status().message()),
              HasSubstr("it is for the active workers 0-1, the call for 0"));
  request = PairRequest();
  request.collective = Collective::kReduce;
  request.root = 0;
  EXPECT_THAT(
      std::string(
          ReadOwnProgram(PairWithout("all-reduce", "reduce\nroot 1"), request).status().message()),
      HasSubstr("it is for the root 1, the call for 0"));
  request = PairRequest();
  request.collective = Collective::kReduceScatter;
  request.block_elements = {1000, 24};
  EXPECT_THAT(
      std::string(ReadOwnProgram(PairWithout("all-reduce", "reduce-scatter\nblocks 1 1"), request)
                      .status()
                      .message()),
      HasSubstr("it is for blocks of 512,512, the call for 1000,24 elements"));
}

// A program that was read for one call is not taken for another.
TEST(OwnProgramTest, RememberedOnesAreCheckedAgain) {
  OwnPrograms programs;
  plan::ProgramKey key;
  key.request = PairRequest();
  const absl::StatusOr<PlannedProgram> first = programs.Get(key, kPair);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(programs.Get(key, kPair)->program, first->program) << "the same object";
  key.self = 1;
  EXPECT_NE(programs.Get(key, kPair)->program, first->program);
  key.request.elements = 1000;
  EXPECT_EQ(programs.Get(key, kPair).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(OwnProgramTest, DifferentOnesAreReportedByAllWithBothDigests) {
  RunWorkers(2, [](Worker& worker) {
    std::vector<float> data(1024, 2);
    Call call = SumCall(data);
    call.program = worker.rank() == 0 ? std::string(kPair) : PairWithout("2x512", "500 524");
    const absl::Status status = worker.world().Run(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("runs something else (digest "), HasSubstr("(pair, digest ")));
    EXPECT_EQ(data, std::vector<float>(1024, 2));
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(OwnPlannerTest, IsAskedForByNameAndByRule) {
  RegisterStarBroadcast();
  for (const bool by_rule : {false, true}) {
    Options options;
    if (by_rule) options.algorithms = "broadcast:own-star";
    RunWorkers(
        3,
        [&](Worker& worker) {
          std::vector<int32_t> data(100, worker.rank());
          Call call = {.collective = Collective::kBroadcast,
                       .data = Array::Of(data.data(), data.size()),
                       .root = 1};
          if (!by_rule) call.algorithm = "own-star";
          for (int round = 0; round < 3; ++round) {
            const absl::Status status = worker.world().Run(call);
            ASSERT_TRUE(status.ok()) << status;
          }
          EXPECT_EQ(data, std::vector<int32_t>(100, 1));
          // It has no program for this one, and says so only where the rule asks for it; an
          // algorithm of the call's own goes before the rule.
          std::vector<int32_t> large(2000, worker.rank());
          call.data = Array::Of(large.data(), large.size());
          const absl::Status refused = worker.world().Run(call);
          EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
          EXPECT_THAT(std::string(refused.message()),
                      AllOf(HasSubstr("own-star"), HasSubstr("too large for this test")));
          call.algorithm = "chain";
          EXPECT_TRUE(worker.world().Run(call).ok());
        },
        options);
  }
}

TEST(OwnPlannerTest, TakesPartInTheSelection) {
  RegisterStarBroadcast();
  plan::CollectiveRequest request = PairRequest();
  request.collective = Collective::kBroadcast;
  request.root = 0;
  const Topology star = StarTopology(2, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(star, 2);
  const auto find = [&]() {
    const absl::StatusOr<plan::Selection> selection =
        plan::SelectProgram(request, 4, star, placement, {});
    EXPECT_TRUE(selection.ok()) << selection.status();
    for (const plan::Candidate& candidate : selection->candidates) {
      if (candidate.algorithm == "own-star") return candidate;
    }
    ADD_FAILURE() << "it is not among the candidates";
    return plan::Candidate();
  };
  request.elements = 100;
  EXPECT_GT(find().seconds, 0);
  EXPECT_EQ(find().skipped, "");
  request.elements = 5000;  // what it refuses does not stop the others
  EXPECT_THAT(find().skipped, HasSubstr("too large for this test"));
}

TEST(OwnPlannerTest, BadOnesAreRefused) {
  const auto code = [](OwnPlanner planner) { return RegisterPlanner(std::move(planner)).code(); };
  EXPECT_EQ(code({.name = "ring", .plan = StarBroadcast}), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code({.name = "", .plan = StarBroadcast}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.name = "a:b", .plan = StarBroadcast}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.name = "Star", .plan = StarBroadcast}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.name = "star", .plan = nullptr}), absl::StatusCode::kInvalidArgument);
}

TEST(AlgorithmRulesOfAJobTest, ReadFromTheEnvironmentUnlessGiven) {
  const Environment environment = MapEnvironment({{"SYNCOPATE_ALGORITHM", "allreduce:ring"}});
  EXPECT_EQ(ResolveAlgorithmRules({}, environment)->ToText(), "all-reduce:ring");
  EXPECT_EQ(ResolveAlgorithmRules({}, MapEnvironment({}))->ToText(), "");
  Options options;
  options.algorithms = "";
  EXPECT_EQ(ResolveAlgorithmRules(options, environment)->ToText(), "");
  const absl::Status bad =
      ResolveAlgorithmRules({}, MapEnvironment({{"SYNCOPATE_ALGORITHM", "allreduce:rng"}}))
          .status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad.message()),
              AllOf(HasSubstr("SYNCOPATE_ALGORITHM: rule 1, \"allreduce:rng\": \"rng\" is not"),
                    HasSubstr("choose ring, direct")));
}

TEST(AlgorithmRulesOfAJobTest, TermsAreBounded) {
  EXPECT_THAT(AlgorithmTerms(*plan::AlgorithmRules::Parse("allreduce:ring")),
              HasSubstr("SYNCOPATE_ALGORITHM=all-reduce:ring"));
  std::string many = "allreduce:ring";
  for (int i = 0; i < 200; ++i) many += ",allreduce:ring";
  const std::string terms = AlgorithmTerms(*plan::AlgorithmRules::Parse(many));
  EXPECT_EQ(terms.size(), transport::kTermsBytesMax);
  EXPECT_NE(terms, AlgorithmTerms(*plan::AlgorithmRules::Parse(many + ",allreduce:direct")));
}

// One error for all of them, at the start, with both rules.
TEST(AlgorithmRulesOfAJobTest, WorkersWithDifferentRulesDoNotStart) {
  const std::string job = absl::StrCat("different-rules-", getpid());
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Options options;
      options.job = Job{job, rank, 3, rank, 3};
      options.timeout = absl::Seconds(60);
      options.arena_bytes = uint64_t{16} << 20;
      options.algorithms = rank == 1 ? "allreduce:0-64K:ring" : "allreduce:direct";
      const absl::Status status = Worker::Start(options).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      errors[static_cast<size_t>(rank)] = std::string(status.message());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("worker 0 has the rules SYNCOPATE_ALGORITHM=all-reduce:direct"),
                    HasSubstr("worker 1 has the rules "
                              "SYNCOPATE_ALGORITHM=all-reduce:0-65536:ring")));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], errors[0]);
}

}  // namespace
}  // namespace syncopate::worker
