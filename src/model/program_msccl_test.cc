// The export is run by a small interpreter of MSCCL's rules: thread blocks side by side in random
// order, each strictly in order, flags between them, one queue per (from, to, channel).
#include "model/program_msccl.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"
#include "model/program_validator.h"

namespace syncopate {
namespace {

using samples::Copy;
using samples::Empty;
using samples::Receive;
using samples::ReceiveReduce;
using samples::Reduce;
using samples::Send;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Attributes = std::map<std::string, std::string>;

// <tag key="value" ...>: the tag and its attributes.
std::pair<std::string, Attributes> ReadTag(const std::string& line) {
  const size_t begin = line.find('<') + 1;
  const std::string tag = line.substr(begin, line.find_first_of(" />", begin + 1) - begin);
  Attributes attributes;
  for (size_t at = line.find("=\""); at != std::string::npos; at = line.find("=\"", at + 1)) {
    const size_t key = line.rfind(' ', at) + 1;
    const size_t end = line.find('"', at + 2);
    attributes[line.substr(key, at - key)] = line.substr(at + 2, end - at - 2);
  }
  return {tag, attributes};
}

int Int(const Attributes& attributes, const std::string& key) {
  const auto it = attributes.find(key);
  EXPECT_NE(it, attributes.end()) << key;
  return it == attributes.end() ? 0 : std::atoi(it->second.c_str());
}

struct Block {
  Attributes attributes;
  std::vector<Attributes> steps;
  size_t next = 0;
  int flag = -1;  // the last step with hasdep that is done
};
struct Gpu {
  Attributes attributes;
  std::vector<Block> blocks;
  std::map<std::string, std::vector<uint64_t>> buffers;  // one number a chunk
};
struct Algo {
  Attributes attributes;
  std::vector<Gpu> gpus;
};

Algo ReadXml(const std::string& xml) {
  Algo algo;
  for (absl::string_view line : absl::StrSplit(xml, '\n', absl::SkipEmpty())) {
    const auto [tag, attributes] = ReadTag(std::string(line));
    if (tag == "algo") algo.attributes = attributes;
    if (tag == "gpu") algo.gpus.push_back({attributes, {}, {}});
    if (tag == "tb") algo.gpus.back().blocks.push_back({attributes, {}});
    if (tag == "step") algo.gpus.back().blocks.back().steps.push_back(attributes);
  }
  return algo;
}

class Interpreter {
 public:
  Interpreter(Algo* algo, uint64_t seed) : algo_(*algo), random_(seed) {}

  // Whether it came to an end. Every sweep gives each thread block, in random order, the chance of
  // a few steps.
  bool Run() {
    std::vector<std::pair<size_t, size_t>> blocks;
    for (size_t gpu = 0; gpu < algo_.gpus.size(); ++gpu) {
      for (size_t block = 0; block < algo_.gpus[gpu].blocks.size(); ++block) {
        blocks.emplace_back(gpu, block);
      }
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random_.Below(i)]);
      for (const auto& [gpu, block] : blocks) {
        for (int64_t k = random_.Between(1, 3); k > 0 && TryStep(gpu, block); --k) moved = true;
      }
    }
    return std::all_of(blocks.begin(), blocks.end(), [&](const auto& at) {
      const Block& block = algo_.gpus[at.first].blocks[at.second];
      return block.next == block.steps.size();
    });
  }

 private:
  bool TryStep(size_t gpu, size_t block_index) {
    Gpu& here = algo_.gpus[gpu];
    Block& block = here.blocks[block_index];
    if (block.next == block.steps.size()) return false;
    const Attributes& step = block.steps[block.next];
    EXPECT_EQ(Int(step, "s"), static_cast<int>(block.next));
    if (Int(step, "depid") >= 0) {
      const Block& other = here.blocks.at(Int(step, "depid"));
      EXPECT_EQ(Int(other.steps.at(Int(step, "deps")), "hasdep"), 1);
      if (other.flag < Int(step, "deps")) return false;
    }
    const std::string type = step.at("type");
    const int count = Int(step, "cnt");
    const int channel = Int(block.attributes, "chan");
    const int self = static_cast<int>(gpu);
    if (type == "s") {
      auto& queue = queues_[{self, Int(block.attributes, "send"), channel}];
      if (queue.size() >= 2) return false;  // the runtime's buffers are finite
      std::vector<uint64_t> numbers;
      for (int c = 0; c < count; ++c) numbers.push_back(At(here, step, "src", c));
      queue.push_back(numbers);
    } else if (type == "r" || type == "rrc") {
      auto& queue = queues_[{Int(block.attributes, "recv"), self, channel}];
      if (queue.empty()) return false;
      EXPECT_EQ(queue.front().size(), static_cast<size_t>(count));
      for (int c = 0; c < count; ++c) {
        At(here, step, "dst", c) =
            queue.front()[c] + (type == "rrc" ? At(here, step, "src", c) : 0);
      }
      queue.pop_front();
    } else if (type == "cpy" || type == "re") {
      for (int c = 0; c < count; ++c) {
        At(here, step, "dst", c) =
            At(here, step, "src", c) + (type == "re" ? At(here, step, "dst", c) : 0);
      }
    } else {
      EXPECT_EQ(type, "nop");
      // The runtime wants the last dependency on the step itself, not on a nop before it.
      EXPECT_GE(Int(block.steps.at(block.next + 1), "depid"), 0);
    }
    if (Int(step, "hasdep") == 1) block.flag = static_cast<int>(block.next);
    ++block.next;
    return true;
  }

  static uint64_t& At(Gpu& gpu, const Attributes& step, const std::string& side, int c) {
    return gpu.buffers.at(step.at(side + "buf")).at(Int(step, side + "off") + c);
  }

  Algo& algo_;
  Random random_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<uint64_t>>> queues_;
};

// Exports, runs many times with random numbers, and compares with a plain sum.
void ExpectAllReduce(const Program& program, uint64_t runs = 20) {
  const absl::StatusOr<std::string> xml = ToMscclXml(program);
  ASSERT_TRUE(xml.ok()) << xml.status();
  const uint32_t chunks = program.chunks(Space::kData);
  for (uint64_t seed = 0; seed < runs; ++seed) {
    Algo algo = ReadXml(*xml);
    EXPECT_EQ(algo.attributes["coll"], "allreduce");
    EXPECT_EQ(Int(algo.attributes, "nchunksperloop"), static_cast<int>(chunks));
    ASSERT_EQ(algo.gpus.size(), static_cast<size_t>(program.workers));
    Random random(seed);
    std::vector<uint64_t> sum(chunks, 0);
    for (Gpu& gpu : algo.gpus) {
      EXPECT_EQ(Int(gpu.attributes, "i_chunks"), static_cast<int>(chunks));
      gpu.buffers["s"].resize(Int(gpu.attributes, "s_chunks"));
      for (uint64_t& number : gpu.buffers["s"]) number = random.Next();
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        gpu.buffers["i"].push_back(random.Next());
        sum[chunk] += gpu.buffers["i"].back();
      }
    }
    ASSERT_TRUE(Interpreter(&algo, seed).Run()) << "stuck; seed " << seed;
    for (Gpu& gpu : algo.gpus) ASSERT_EQ(gpu.buffers["i"], sum) << "seed " << seed;
  }
}

TEST(MscclTest, RingsRun) {
  for (int workers : {1, 2, 3, 8}) ExpectAllReduce(samples::RingAllReduce(workers));
}

TEST(MscclTest, DirectExchangesRun) {
  for (int workers : {2, 5, 8}) ExpectAllReduce(samples::DirectAllReduce(workers));
}

TEST(MscclTest, ManyPeersAreSpreadOverChannels) {
  const absl::StatusOr<std::string> xml = ToMscclXml(samples::DirectAllReduce(34));
  ASSERT_TRUE(xml.ok()) << xml.status();
  Algo algo = ReadXml(*xml);
  EXPECT_EQ(algo.attributes["nchannels"], "2");
  ExpectAllReduce(samples::DirectAllReduce(34), 1);
}

// Two workers add through scratch; `chunks` chunks in one run.
Program ThroughScratch(uint32_t chunks) {
  Program program = Empty(Collective::kAllReduce, 2, chunks);
  program.scratch_bounds = program.data_bounds;
  for (int worker : {0, 1}) {
    program.steps[worker] = {Send(1 - worker, 0, {}, chunks),
                             Receive(1 - worker, 0, {}, chunks, Space::kScratch),
                             Reduce(Space::kData, 0, Space::kScratch, 0, {0, 1}, chunks)};
  }
  return program;
}

TEST(MscclTest, SeveralDependenciesBecomeNops) {
  const absl::StatusOr<std::string> xml = ToMscclXml(ThroughScratch(1));
  ASSERT_TRUE(xml.ok()) << xml.status();
  EXPECT_EQ(
      *xml,
      R"(<algo name="by_hand" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="1099511627776">
  <gpu id="0" i_chunks="1" o_chunks="1" s_chunks="1">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="2" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="1" s_chunks="1">
    <tb id="0" send="0" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="0" chan="0">
      <step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="2" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)");
}

TEST(MscclTest, LongRunsAreCut) { ExpectAllReduce(ThroughScratch(150)); }

TEST(MscclTest, GatheringUsesTheOutputAndScatteringTheInput) {
  Program gather = Empty(Collective::kAllGather, 2, 4);
  gather.steps[0] = {Send(1, 0, {}, 2), Receive(1, 2, {}, 2)};
  gather.steps[1] = {Send(0, 2, {}, 2), Receive(0, 0, {}, 2)};
  EXPECT_THAT(*ToMscclXml(gather),
              AllOf(HasSubstr("coll=\"allgather\""), HasSubstr("i_chunks=\"2\" o_chunks=\"4\""),
                    HasSubstr("srcbuf=\"o\" srcoff=\"2\" dstbuf=\"o\" dstoff=\"2\" cnt=\"2\"")));
  Program scatter = Empty(Collective::kReduceScatter, 2, 2);
  scatter.steps[0] = {Send(1, 1), ReceiveReduce(1, 0)};
  scatter.steps[1] = {Send(0, 0), ReceiveReduce(0, 1)};
  EXPECT_THAT(*ToMscclXml(scatter),
              AllOf(HasSubstr("coll=\"reducescatter\""), HasSubstr("i_chunks=\"2\" o_chunks=\"1\""),
                    HasSubstr("type=\"rrc\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"i\"")));
}

TEST(MscclTest, NamesAreMadeHarmless) {
  Program program = samples::RingAllReduce(2);
  program.algorithm = "a<\"b\">&c";
  EXPECT_THAT(*ToMscclXml(program), HasSubstr("name=\"a__b___c\""));
}

// What cannot be expressed.

std::string ExportRefusal(const Program& program) {
  const absl::StatusOr<std::string> xml = ToMscclXml(program);
  EXPECT_EQ(xml.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(xml.status().message());
}

TEST(MscclTest, RefusesOtherCollectives) {
  for (Collective collective : kCollectives) {
    if (collective == Collective::kAllReduce || collective == Collective::kAllGather ||
        collective == Collective::kReduceScatter) {
      continue;
    }
    EXPECT_THAT(ExportRefusal(Empty(collective, 1, 1, 0)), HasSubstr("only all-reduce"));
  }
}

TEST(MscclTest, RefusesInactiveWorkers) {
  Program program = Empty(Collective::kAllReduce, 2, 1);
  program.active = {0};
  EXPECT_THAT(ExportRefusal(program), HasSubstr("inactive"));
}

TEST(MscclTest, RefusesUnevenChunksButNotAnEvenCut) {
  Program program = ThroughScratch(2);
  program.data_bounds = program.scratch_bounds = {0, 4, 7};
  EXPECT_TRUE(ToMscclXml(program).ok());
  program.data_bounds = program.scratch_bounds = {0, 4, 6};
  EXPECT_THAT(ExportRefusal(program), HasSubstr("from 2 to 4 elements"));
}

TEST(MscclTest, RefusesWhatIsOnlyRightForEmptyChunks) {
  Program program = ThroughScratch(2);
  program.data_bounds = program.scratch_bounds = {0, 1, 1};
  for (auto& steps : program.steps) {
    for (Step& step : steps) step.count = 1;  // leaves the second, empty chunk alone
  }
  EXPECT_THAT(ExportRefusal(program), AllOf(HasSubstr("with equal chunks"), HasSubstr("lost")));
}

TEST(MscclTest, RefusesUnevenBlocks) {
  Program program = Empty(Collective::kAllGather, 2, 3);
  program.blocks = {0, 2, 3};
  EXPECT_THAT(ExportRefusal(program), HasSubstr("block 1"));
}

TEST(MscclTest, RefusesWhatIsWrong) {
  EXPECT_THAT(ExportRefusal(Empty(Collective::kAllReduce, 2, 1)), HasSubstr("contribution lost"));
}

TEST(MscclTest, RefusesMessagesThatMustOvertakeEachOther) {
  // Worker 0's first message in the list, the result, can only be sent when the answer to its
  // second, its contribution, has come.
  Program program = Empty(Collective::kAllReduce, 2, 1);
  program.scratch_bounds = {0, 4, 8};
  program.steps[0] = {Copy(Space::kScratch, 0, Space::kData, 0), ReceiveReduce(1, 0, {0}),
                      Send(1, 0, {1}), Send(1, 0, {0}, 1, Space::kScratch)};
  program.steps[1] = {Receive(0, 1, {}, 1, Space::kScratch), Receive(0, 0, {}, 1, Space::kScratch),
                      Send(0, 0, {1}), Copy(Space::kData, 0, Space::kScratch, 1, {0, 2})};
  ASSERT_TRUE(ProveProgram(program).ok()) << ProveProgram(program).status();
  EXPECT_THAT(ExportRefusal(program),
              AllOf(HasSubstr("thread blocks that run in order"), HasSubstr("deadlock")));
}

TEST(MscclTest, RefusesTooManySteps) {
  EXPECT_TRUE(ToMscclXml(samples::RingAllReduce(100)).ok());
  EXPECT_THAT(ExportRefusal(samples::RingAllReduce(150)), HasSubstr("298 steps; the limit is 256"));
}

}  // namespace
}  // namespace syncopate
