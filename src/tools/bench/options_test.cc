#include "tools/bench/options.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

BenchFlags Flags() {
  BenchFlags flags;
  flags.collective = "allreduce";
  return flags;
}

TEST(BenchOptionsTest, DefaultsAreOursAloneFrom4KTo100M) {
  const auto options = ReadFlags(Flags());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->contestants, ElementsAre("syncopate"));
  EXPECT_EQ(options->sizes.front(), 4096u);
  EXPECT_EQ(options->sizes.back(), 100u << 20);
  EXPECT_FALSE(options->iterations.has_value());
  EXPECT_EQ(options->timeout, absl::Minutes(1));
}

TEST(BenchOptionsTest, OpenMpiMeansBothItsLayersAndPeersBringTheMemoryLimit) {
  BenchFlags flags = Flags();
  flags.against = "openmpi,gloo,openmpi-ucx";
  EXPECT_THAT(ReadFlags(flags)->contestants,
              ElementsAre("syncopate", "openmpi", "openmpi-ucx", "gloo", "memory-limit"));
  flags.memory_limit = false;
  flags.peers_only = true;
  EXPECT_THAT(ReadFlags(flags)->contestants, ElementsAre("openmpi", "openmpi-ucx", "gloo"));
}

TEST(BenchOptionsTest, OtherBuildsOfOursAreContestantsByNameAndFolder) {
  BenchFlags flags = Flags();
  flags.memory_limit = false;
  flags.against = "before=/old/peers,gloo,again=/old/peers";
  const auto options = ReadFlags(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->contestants, ElementsAre("syncopate", "before", "gloo", "again"));
  EXPECT_EQ(options->builds.at("before"), "/old/peers");
  for (const char* bad : {"=x", "Before=x", "gloo=x", "before=", "a=x,a=y"}) {
    flags.against = bad;
    EXPECT_THAT(std::string(ReadFlags(flags).status().message()), HasSubstr("--against")) << bad;
  }
}

TEST(BenchOptionsTest, BlocksAreWholeAndEqual) {
  BenchFlags flags = Flags();
  flags.collective = "allgather";
  flags.workers = "3";
  flags.bytes_min = "4K";
  flags.bytes_max = "4K";
  EXPECT_THAT(ReadFlags(flags)->sizes, ElementsAre(4092u));
  flags.bytes_min = flags.bytes_max = "1";
  EXPECT_THAT(ReadFlags(flags)->sizes, ElementsAre(12u));
}

TEST(BenchOptionsTest, ABarrierHasOneRow) {
  BenchFlags flags = Flags();
  flags.collective = "barrier";
  EXPECT_THAT(ReadFlags(flags)->sizes, ElementsAre(0u));
}

TEST(BenchOptionsTest, ErrorsNameTheFlag) {
  const auto error_of = [](auto change) {
    BenchFlags flags = Flags();
    change(flags);
    const auto options = ReadFlags(flags);
    return options.ok() ? std::string() : std::string(options.status().message());
  };
  EXPECT_THAT(error_of([](BenchFlags& f) { f.collective = "jump"; }), HasSubstr("jump"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.workers = "0"; }), HasSubstr("-n: \"0\""));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.workers = "9999"; }), HasSubstr("-n"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.bytes_min = "4Q"; }), HasSubstr("-b"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.bytes_min = "0"; }), HasSubstr("-b"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.bytes_max = "1K"; }), HasSubstr("-e 1K"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.bytes_max = "1000G"; }), HasSubstr("-e"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.factor = "1"; }), HasSubstr("-f"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.type = "float33"; }), HasSubstr("-d"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.op = "xor"; }), HasSubstr("-o"));
  EXPECT_THAT(error_of([](BenchFlags& f) {
                f.op = "wavg";
                f.type = "int32";
              }),
              HasSubstr("wavg"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.iterations = "0"; }), HasSubstr("--iters"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.warmup = "x"; }), HasSubstr("-w"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.check = "-1"; }), HasSubstr("-c"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.rounds = "0"; }), HasSubstr("--rounds"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.against = "nccl"; }), HasSubstr("--against"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.memory = "moon"; }), HasSubstr("--memory"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.timeout = "0"; }), HasSubstr("--timeout"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.peers_only = true; }), HasSubstr("--against"));
  EXPECT_THAT(error_of([](BenchFlags& f) {
                f.collective = "sendrecv";
                f.workers = "1";
              }),
              HasSubstr("2 workers"));
  EXPECT_THAT(error_of([](BenchFlags& f) { f.collective = "sendrecv"; }), IsEmpty());
}

TEST(SizesBetweenTest, GoesByTheFactorAndAlwaysEndsAtTheMaximum) {
  EXPECT_THAT(SizesBetween(4096, 100 << 20, 16, 4),
              ElementsAre(4096u, 65536u, 1u << 20, 16u << 20, 100u << 20));
  EXPECT_THAT(SizesBetween(8, 64, 2, 4), ElementsAre(8u, 16u, 32u, 64u));
  EXPECT_THAT(SizesBetween(8, 8, 2, 4), ElementsAre(8u));
  EXPECT_THAT(SizesBetween(1, 9, 2, 4), ElementsAre(4u, 8u));
}

TEST(BenchOptionsTest, InALabThereIsOneWorkerAHostUnlessToldOtherwise) {
  BenchFlags flags = Flags();
  EXPECT_FALSE(ReadFlags(flags)->in_lab());
  flags.lab = "lab.toml";
  auto options = ReadFlags(flags, 3);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->in_lab());
  EXPECT_EQ(options->workers, 3);
  EXPECT_THAT(options->slots, ElementsAre(1, 1, 1));
  EXPECT_EQ(options->topology, "declared");
  flags.slots = "2";
  EXPECT_EQ(ReadFlags(flags, 3)->workers, 6);
  flags.slots = "";
  flags.workers = "4";
  EXPECT_THAT(ReadFlags(flags, 3)->slots, ElementsAre(2, 1, 1));
  flags.slots = "2";
  EXPECT_THAT(std::string(ReadFlags(flags, 3).status().message()), HasSubstr("either -n"));
}

TEST(BenchOptionsTest, WhatBelongsToALabNeedsOne) {
  for (const std::string flag : {"--slots", "--topology"}) {
    BenchFlags flags = Flags();
    (flag == "--slots" ? flags.slots : flags.topology) = "1";
    EXPECT_THAT(std::string(ReadFlags(flags).status().message()),
                AllOf(HasSubstr(flag), HasSubstr("--lab")));
  }
}

TEST(BenchOptionsTest, PeersInALabAreThoseWithANetwork) {
  BenchFlags flags = Flags();
  flags.lab = "lab.toml";
  flags.against = "openmpi,gloo";
  EXPECT_THAT(ReadFlags(flags, 2)->contestants,
              ElementsAre("syncopate", "openmpi", "openmpi-ring", "gloo"));
  for (const std::string peer : {"mpich", "memory-limit"}) {
    flags.against = peer;
    EXPECT_THAT(std::string(ReadFlags(flags, 2).status().message()),
                AllOf(HasSubstr(peer), HasSubstr("in a lab")));
  }
}

TEST(ReadFlagsTest, ActiveRanks) {
  BenchFlags flags = Flags();
  flags.workers = "8";
  flags.active = "0-2,4,7";
  flags.against = "gloo";
  const auto some = ReadFlags(flags);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->active, (std::vector<int>{0, 1, 2, 4, 7}));
  EXPECT_EQ(some->active_workers(), 5);
  EXPECT_EQ(some->contestants, (std::vector<std::string>{kOurs, kGloo})) << "no memory limit";
  flags.active = "0-7";
  EXPECT_TRUE(ReadFlags(flags)->active.empty()) << "that is everybody";
  flags.active = "0,8";
  EXPECT_THAT(std::string(ReadFlags(flags).status().message()), HasSubstr("--active"));
  flags.active = "0,1";
  flags.collective = "broadcast";
  EXPECT_THAT(std::string(ReadFlags(flags).status().message()), HasSubstr("allreduce"));
}

}  // namespace
}  // namespace syncopate::tools::bench
