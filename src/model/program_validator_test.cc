// What is proved and what is refused: one test per kind of fault.
#include "model/program_validator.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"

namespace syncopate {
namespace {

using samples::Copy;
using samples::DirectAllReduce;
using samples::Empty;
using samples::Receive;
using samples::ReceiveReduce;
using samples::Reduce;
using samples::RingAllReduce;
using samples::Send;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The message of the refusal; empty if the program was accepted.
std::string Refusal(const Program& program) {
  const absl::StatusOr<ProgramProof> proof = ProveProgram(program);
  if (proof.ok()) return "";
  EXPECT_EQ(proof.status().code(), absl::StatusCode::kFailedPrecondition) << proof.status();
  return std::string(proof.status().message());
}

// Two workers exchange everything and add: the smallest all-reduce. Each receives into scratch, so
// that nobody's data changes while it is being sent.
Program PairAllReduce() {
  Program program = Empty(Collective::kAllReduce, 2, 1);
  program.scratch_bounds = {0, 4};
  for (int worker : {0, 1}) {
    program.steps[worker] = {Send(1 - worker, 0), Receive(1 - worker, 0, {}, 1, Space::kScratch),
                             Reduce(Space::kData, 0, Space::kScratch, 0, {0, 1})};
  }
  return program;
}

TEST(ProveProgramTest, AcceptsRings) {
  for (int workers = 1; workers <= 9; ++workers) {
    const absl::StatusOr<ProgramProof> proof = ProveProgram(RingAllReduce(workers, 8));
    ASSERT_TRUE(proof.ok()) << workers << ": " << proof.status();
    EXPECT_TRUE(proof->same_bits_everywhere);
    EXPECT_EQ(proof->rounds, 2 * (workers - 1));
    EXPECT_EQ(proof->sent_elements_max, 8u * 2 * (workers - 1));
    EXPECT_EQ(proof->sent_elements_total, 8u * 2 * (workers - 1) * workers);
  }
}

TEST(ProveProgramTest, AcceptsDirectExchanges) {
  for (int workers = 1; workers <= 9; ++workers) {
    const absl::StatusOr<ProgramProof> proof = ProveProgram(DirectAllReduce(workers));
    ASSERT_TRUE(proof.ok()) << workers << ": " << proof.status();
    EXPECT_TRUE(proof->same_bits_everywhere);
  }
}

TEST(ProveProgramTest, AcceptsAnExchangeOfTwo) {
  const absl::StatusOr<ProgramProof> proof = ProveProgram(PairAllReduce());
  ASSERT_TRUE(proof.ok()) << proof.status();
  EXPECT_EQ(proof->rounds, 1);
  // a + b and b + a have the same bits.
  EXPECT_TRUE(proof->same_bits_everywhere);
}

TEST(ProveProgramTest, SaysWhenWorkersAddInDifferentOrders) {
  // Everybody sends everything to everybody; each adds in the order 0, 1, 2 without itself:
  // 0: (0+1)+2, 1: (1+0)+2, 2: (2+0)+1.
  Program program = Empty(Collective::kAllReduce, 3, 1);
  program.scratch_bounds = {0, 4, 8};
  for (int worker = 0; worker < 3; ++worker) {
    const int first = worker == 0 ? 1 : 0;
    const int second = worker == 2 ? 1 : 2;
    program.steps[worker] = {Send(first, 0),
                             Send(second, 0),
                             Receive(first, 0, {}, 1, Space::kScratch),
                             Receive(second, 1, {}, 1, Space::kScratch),
                             Reduce(Space::kData, 0, Space::kScratch, 0, {0, 1, 2}),
                             Reduce(Space::kData, 0, Space::kScratch, 1, {3, 4})};
  }
  const absl::StatusOr<ProgramProof> proof = ProveProgram(program);
  ASSERT_TRUE(proof.ok()) << proof.status();
  EXPECT_FALSE(proof->same_bits_everywhere);
}

TEST(ProveProgramTest, OneActiveWorkerNeedsNoSteps) {
  for (Collective collective : kCollectives) {
    Program program = Empty(collective, 1, collective == Collective::kBarrier ? 0 : 3);
    EXPECT_EQ(Refusal(program), "") << Name(collective);
    program.workers = 3;
    program.steps.resize(3);
    EXPECT_EQ(Refusal(program), "") << Name(collective);
  }
}

TEST(ProveProgramTest, EmptyChunksNeedNothingAndNeverConflict) {
  Program program = Empty(Collective::kAllReduce, 3, 4, 0);
  EXPECT_EQ(Refusal(program), "");
  program.steps[0] = {ReceiveReduce(1, 0), ReceiveReduce(1, 0), Send(1, 0)};
  program.steps[1] = {Send(0, 1), Send(0, 1), Receive(0, 1)};
  EXPECT_EQ(Refusal(program), "");
}

TEST(ProveProgramTest, MalformedProgramsAreInvalidArguments) {
  Program program = PairAllReduce();
  program.steps[0][2].after = {2};
  EXPECT_EQ(ProveProgram(program).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ProveProgram(program).status().message()),
              AllOf(HasSubstr("worker 0, step 2"), HasSubstr("dependency cycle")));
}

TEST(ProveProgramTest, RefusesWhatIsTooLargeToProve) {
  Program program = Empty(Collective::kAllReduce, 1000, 0);
  program.scratch_bounds.resize(100001, 0);
  EXPECT_EQ(ProveProgram(program).status().code(), absl::StatusCode::kResourceExhausted);
}

// One test per kind of fault.

TEST(ProveProgramTest, ContributionLost) {
  Program program = RingAllReduce(3);
  ASSERT_EQ(program.steps[2][3].kind, StepKind::kReceiveReduce);
  program.steps[2][3].kind = StepKind::kReceive;  // overwrites its own contribution
  EXPECT_THAT(Refusal(program), AllOf(StartsWith("contribution lost: worker "),
                                      HasSubstr("without the contribution of worker 2")));
}

TEST(ProveProgramTest, CountedTwice) {
  Program program = RingAllReduce(3);
  ASSERT_EQ(program.steps[0][5].kind, StepKind::kReceive);
  program.steps[0][5].kind = StepKind::kReceiveReduce;
  EXPECT_THAT(Refusal(program),
              AllOf(HasSubstr("counted twice"), StartsWith("worker 0, step 5 (receive-reduce data"),
                    HasSubstr("the contribution of worker ")));
}

TEST(ProveProgramTest, ReceiveWithoutSend) {
  Program program = PairAllReduce();
  program.steps[1].push_back(Receive(0, 0, {2}));
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("receive without send: worker 1, step 3 (receive data 0 from 0)"),
                    HasSubstr("receive number 2"), HasSubstr("sends only 1")));
}

TEST(ProveProgramTest, SendWithoutReceive) {
  Program program = PairAllReduce();
  program.steps[0].push_back(Send(1, 0, {2}));
  EXPECT_THAT(Refusal(program),
              StartsWith("send without receive: worker 0, step 3 (send data 0 to 1)"));
}

TEST(ProveProgramTest, MismatchedSizes) {
  Program program = PairAllReduce();
  program.scratch_bounds = {0, 5};
  EXPECT_THAT(Refusal(program), AllOf(StartsWith("mismatched sizes: worker "),
                                      HasSubstr("has 5 elements"), HasSubstr("has 4")));
}

TEST(ProveProgramTest, MismatchedSizesInsideEqualTotals) {
  Program program = Empty(Collective::kAllReduce, 2, 0);
  program.data_bounds = {0, 1, 4};
  program.scratch_bounds = {0, 3, 4};  // the same four elements, cut differently
  program.steps[0] = {Copy(Space::kScratch, 0, Space::kData, 0, {}, 2)};
  EXPECT_THAT(Refusal(program), AllOf(StartsWith("mismatched sizes: worker 0, step 0"),
                                      HasSubstr("scratch chunk 0 has 3")));
}

TEST(ProveProgramTest, MismatchedNumberOfChunks) {
  Program program = Empty(Collective::kAllReduce, 2, 2);
  program.steps[0] = {Send(1, 0, {}, 2)};
  program.steps[1] = {Receive(0, 0)};
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("mismatched sizes"), HasSubstr("number of chunks, 1 and 2")));
}

TEST(ProveProgramTest, DeadlockThatBufferedSendsHide) {
  // Both workers send first and receive after their send is done. With sends that are buffered this
  // runs; when messages are slow, or large, each waits for the other to receive.
  Program program = PairAllReduce();
  for (int worker : {0, 1}) program.steps[worker][1].after = {0};
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("deadlock: "),
                    HasSubstr("worker 0, step 0 (send data 0 to 1) waits "
                              "for worker 1, step 1 (receive scratch 0 "
                              "from 0)"),
                    HasSubstr("worker 1, step 1 (receive scratch 0 from 0) waits for worker 1, "
                              "step 0 (send data 0 to 0)")));
  // If one of them receives first, all is well.
  program.steps[1] = {Receive(0, 0, {}, 1, Space::kScratch), Send(0, 0, {0}),
                      Reduce(Space::kData, 0, Space::kScratch, 0, {0, 1})};
  EXPECT_EQ(Refusal(program), "");
}

TEST(ProveProgramTest, DeadlockAroundARingIsToldBriefly) {
  // Everybody receives before it sends.
  Program program = Empty(Collective::kBarrier, 40, 1, 0);
  for (int worker = 0; worker < 40; ++worker) {
    program.steps[worker] = {Receive((worker + 39) % 40, 0), Send((worker + 1) % 40, 0, {0})};
  }
  EXPECT_THAT(Refusal(program), AllOf(StartsWith("deadlock: "), HasSubstr("80 steps in a circle")));
}

TEST(ProveProgramTest, WriteWhileRead) {
  Program program = PairAllReduce();
  program.steps[0][2].after = {1};  // no longer waits for the send of the chunk it changes
  EXPECT_THAT(
      Refusal(program),
      AllOf(StartsWith("conflicting access: worker 0, step 2 (reduce data 0 from scratch 0) "
                       "writes data chunk 0 while step 0 (send data 0 to 1) may still read")));
}

TEST(ProveProgramTest, ReadWhileWritten) {
  Program program = PairAllReduce();
  program.steps[0][2].after = {0};  // no longer waits for the receive
  EXPECT_THAT(
      Refusal(program),
      AllOf(StartsWith("conflicting access: worker 0, step 2 (reduce data 0 from scratch 0) "
                       "reads scratch chunk 0 while step 1"),
            HasSubstr("may still write")));
}

TEST(ProveProgramTest, TwoWritesAtOnce) {
  Program program = Empty(Collective::kAllReduce, 3, 1);
  program.steps[0] = {ReceiveReduce(1, 0), ReceiveReduce(2, 0), Send(1, 0, {0, 1}),
                      Send(2, 0, {0, 1})};
  for (int worker : {1, 2}) program.steps[worker] = {Send(0, 0), Receive(0, 0, {0})};
  EXPECT_THAT(
      Refusal(program),
      StartsWith("conflicting access: worker 0, step 1 (receive-reduce data 0 from 2) writes "
                 "data chunk 0 while step 0 (receive-reduce data 0 from 1) may still write"));
  program.steps[0][1].after = {0};
  EXPECT_EQ(Refusal(program), "");
}

TEST(ProveProgramTest, OrderedThroughOtherStepsIsOrdered) {
  // The order of two far accesses goes through a long chain of steps that do not touch the chunk.
  Program program = PairAllReduce();
  program.scratch_bounds = {0, 4, 8, 12};
  for (int worker : {0, 1}) {
    std::vector<Step>& steps = program.steps[worker];
    steps.clear();
    steps.push_back(Send(1 - worker, 0));
    steps.push_back(Receive(1 - worker, 0, {0}, 1, Space::kScratch));
    if (worker == 0) steps[1].after.clear();
    steps.push_back(Copy(Space::kScratch, 1, Space::kScratch, 0, {0, 1}));
    for (uint32_t i = 0; i < 3000; ++i) {
      steps.push_back(Copy(Space::kScratch, 1 + (i + 1) % 2, Space::kScratch, 1 + i % 2,
                           {static_cast<uint32_t>(steps.size() - 1)}));
    }
    const uint32_t last = static_cast<uint32_t>(steps.size() - 1);
    steps.push_back(Reduce(Space::kData, 0, Space::kScratch, 0, {last}));
  }
  EXPECT_EQ(Refusal(program), "");
  program.steps[1][1500].after.clear();  // the chain is cut
  EXPECT_THAT(Refusal(program), StartsWith("conflicting access: worker 1, step 1500"));
}

TEST(ProveProgramTest, CopyOntoItself) {
  Program program = Empty(Collective::kAllReduce, 1, 3);
  program.steps[0] = {Copy(Space::kData, 1, Space::kData, 0, {}, 2)};
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("conflicting access: worker 0, step 0"), HasSubstr("data chunk 1")));
}

TEST(ProveProgramTest, ReadOfUndefinedScratch) {
  Program program = PairAllReduce();
  program.steps[0][0].space = Space::kScratch;
  program.steps[0][1] = Receive(1, 0);
  program.steps[0][2].after = {0, 1};
  EXPECT_THAT(Refusal(program),
              StartsWith("read of undefined scratch: worker 0, step 0 (send scratch 0 to 1)"));
}

TEST(ProveProgramTest, ReduceIntoUndefinedScratch) {
  Program program = PairAllReduce();
  program.steps[1][1].kind = StepKind::kReceiveReduce;
  EXPECT_THAT(Refusal(program), AllOf(StartsWith("read of undefined scratch: worker 1, step 1"),
                                      HasSubstr("adds to scratch chunk 0")));
}

// Worker 1 is inactive and relays between 0 and 2 through scratch.
Program Relay() {
  Program program = Empty(Collective::kBroadcast, 3, 1);
  program.active = {0, 2};
  program.scratch_bounds = {0, 4};
  program.steps[0] = {Send(1, 0)};
  program.steps[1] = {Receive(0, 0, {}, 1, Space::kScratch), Send(2, 0, {0}, 1, Space::kScratch)};
  program.steps[2] = {Receive(1, 0)};
  return program;
}

TEST(ProveProgramTest, InactiveWorkersMayRelay) { EXPECT_EQ(Refusal(Relay()), ""); }

TEST(ProveProgramTest, InactiveDataMixedIn) {
  Program program = Relay();
  program.steps[1][1].space = Space::kData;
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("inactive worker's data mixed in: worker 1, step 1 (send data 0"),
                    HasSubstr("data chunk 0 of worker 1")));
}

TEST(ProveProgramTest, InactiveDataChanged) {
  Program program = Relay();
  program.steps[1][0].space = Space::kData;
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("inactive worker's data changed: worker 1, step 0 (receive data 0"),
                    HasSubstr("data chunk 0 of worker 1")));
}

TEST(ProveProgramTest, InactiveDataCopied) {
  Program program = Relay();
  program.steps[1].push_back(Copy(Space::kScratch, 0, Space::kData, 0, {1}));
  EXPECT_THAT(Refusal(program), StartsWith("inactive worker's data mixed in: worker 1, step 2"));
}

// Everybody sends its block to everybody.
Program PairAllGather() {
  Program program = Empty(Collective::kAllGather, 2, 4);
  program.steps[0] = {Send(1, 0, {}, 2), Receive(1, 2, {}, 2)};
  program.steps[1] = {Send(0, 2, {}, 2), Receive(0, 0, {}, 2)};
  return program;
}

TEST(ProveProgramTest, WrongPlace) {
  EXPECT_EQ(Refusal(PairAllGather()), "");
  Program program = PairAllGather();
  // The two chunks of a block arrive the wrong way round.
  program.steps[1] = {Send(0, 2, {}, 2), Receive(0, 0), Receive(0, 1)};
  program.steps[0] = {Send(1, 1), Send(1, 0), Receive(1, 2, {}, 2)};
  EXPECT_THAT(Refusal(program),
              StartsWith("wrong place: worker 1 ends with worker 0's data chunk 1 "
                         "in data chunk 0, not with worker 0's data chunk 0"));
}

TEST(ProveProgramTest, WrongPlaceInASum) {
  Program program = Empty(Collective::kAllReduce, 2, 2);
  program.steps[0] = {Send(1, 0)};
  program.steps[1] = {ReceiveReduce(0, 1)};
  EXPECT_THAT(
      Refusal(program),
      AllOf(StartsWith("worker 1, step 0 (receive-reduce data 1 from 0), data chunk 1: wrong "
                       "place"),
            HasSubstr("worker 0's data chunk 0")));
}

TEST(ProveProgramTest, GatheredBlockLost) {
  Program program = PairAllGather();
  program.steps[0].pop_back();
  program.steps[1].erase(program.steps[1].begin());
  EXPECT_THAT(Refusal(program), StartsWith("contribution lost: worker 0 ends with worker 0's data "
                                           "chunk 2 in data chunk 2"));
}

TEST(ProveProgramTest, BystandersOfASendReceiveKeepTheirData) {
  Program program = Empty(Collective::kSendReceive, 3, 1);
  program.steps[0] = {Send(2, 0)};
  program.steps[2] = {Receive(0, 0)};
  EXPECT_EQ(Refusal(program), "");
  program.steps[0] = {Send(1, 0)};
  program.steps[1] = {Receive(0, 0), Send(2, 0, {0})};
  program.steps[2] = {Receive(1, 0)};
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("data changed: worker 1 ends with worker 0's data chunk 0"),
                    HasSubstr("had to stay as it was")));
}

// The promises of the other collectives, kept and broken.

TEST(ProveProgramTest, ReduceAsksOnlyTheRoot) {
  Program program = Empty(Collective::kReduce, 2, 1);
  program.steps[0] = {ReceiveReduce(1, 0)};
  program.steps[1] = {Send(0, 0)};
  EXPECT_EQ(Refusal(program), "");
  program.root = 1;
  EXPECT_THAT(Refusal(program), StartsWith("contribution lost: worker 1"));
}

TEST(ProveProgramTest, ReduceScatterAsksForOneBlockEach) {
  Program program = Empty(Collective::kReduceScatter, 2, 2);
  program.steps[0] = {Send(1, 1), ReceiveReduce(1, 0)};
  program.steps[1] = {Send(0, 0), ReceiveReduce(0, 1)};
  EXPECT_EQ(Refusal(program), "");
  program.blocks = {0, 2, 2};
  EXPECT_THAT(Refusal(program), StartsWith("contribution lost: worker 0"));
}

TEST(ProveProgramTest, GatherAndScatter) {
  Program program = Empty(Collective::kGather, 2, 2);
  program.steps[0] = {Receive(1, 1)};
  program.steps[1] = {Send(0, 1)};
  EXPECT_EQ(Refusal(program), "");
  program.collective = Collective::kScatter;
  EXPECT_THAT(Refusal(program), StartsWith("contribution lost: worker 1"));
  program.steps[0] = {Send(1, 1)};
  program.steps[1] = {Receive(0, 1)};
  EXPECT_EQ(Refusal(program), "");
}

TEST(ProveProgramTest, AllToAllSwapsBlocks) {
  Program program = Empty(Collective::kAllToAll, 2, 4);
  program.scratch_bounds = {0, 4, 8};
  program.steps[0] = {Copy(Space::kScratch, 0, Space::kData, 2, {}, 2),
                      Send(1, 0, {0}, 2, Space::kScratch), Receive(1, 2, {0}, 2)};
  program.steps[1] = {Copy(Space::kScratch, 0, Space::kData, 0, {}, 2),
                      Send(0, 0, {0}, 2, Space::kScratch), Receive(0, 0, {0}, 2)};
  EXPECT_EQ(Refusal(program), "");
  program.steps[0][0].source_chunk = 0;  // sends its own block
  EXPECT_THAT(Refusal(program), StartsWith("wrong place: worker 1"));
}

// Round k of a dissemination barrier: to the worker 2^k further on.
Program DisseminationBarrier(int workers) {
  Program program = Empty(Collective::kBarrier, workers, 1, 0);
  for (int worker = 0; worker < workers; ++worker) {
    std::vector<Step>& steps = program.steps[worker];
    for (int distance = 1; distance < workers; distance *= 2) {
      samples::After after;
      if (!steps.empty()) after.push_back(static_cast<uint32_t>(steps.size() - 1));
      steps.push_back(Send((worker + distance) % workers, 0, after));
      steps.push_back(Receive((worker + workers - distance) % workers, 0, after));
    }
  }
  return program;
}

TEST(ProveProgramTest, BarrierMustHearOfEverybody) {
  for (int workers : {1, 2, 3, 7, 8, 65, 130}) {
    EXPECT_EQ(Refusal(DisseminationBarrier(workers)), "") << workers;
  }
  Program program = DisseminationBarrier(8);
  program.steps[5][2].after.clear();  // the second round no longer waits for the first
  EXPECT_THAT(Refusal(program),
              AllOf(StartsWith("contribution lost: worker "), HasSubstr("has started")));
}

TEST(ProveProgramTest, ABarrierDoesNotRelyOnSendsBeingSlow) {
  // If a send could only end after its receive had begun, worker 0 would know that 1 has started.
  Program program = Empty(Collective::kBarrier, 2, 1, 0);
  program.steps[0] = {Send(1, 0)};
  program.steps[1] = {Receive(0, 0)};
  EXPECT_THAT(Refusal(program), StartsWith("contribution lost: worker 0 can end before"));
}

TEST(ProveProgramTest, LargeProgramsAreProved) {
  const absl::StatusOr<ProgramProof> ring = ProveProgram(RingAllReduce(128));
  ASSERT_TRUE(ring.ok()) << ring.status();
  EXPECT_EQ(ring->rounds, 254);
  const absl::StatusOr<ProgramProof> direct = ProveProgram(DirectAllReduce(96));
  ASSERT_TRUE(direct.ok()) << direct.status();
  EXPECT_TRUE(direct->same_bits_everywhere);
}

}  // namespace
}  // namespace syncopate
