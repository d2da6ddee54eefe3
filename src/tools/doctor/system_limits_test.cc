#include "tools/doctor/system_limits.h"

#include <filesystem>
#include <fstream>

#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

class SystemLimitsTest : public ::testing::Test {
 protected:
  SystemLimitsTest() { root_.path = folder_.path(); }

  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_.path + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }

  const TemporaryFolder folder_;
  SystemRoot root_;
};

TEST_F(SystemLimitsTest, KnowsNothingWithoutFiles) {
  EXPECT_EQ(CgroupCpus(root_), std::nullopt);
  EXPECT_EQ(CgroupMemoryBytes(root_), std::nullopt);
  EXPECT_EQ(MemInfoBytes(root_, "MemTotal"), std::nullopt);
  EXPECT_THAT(VectorExtensions(root_), IsEmpty());
}

TEST_F(SystemLimitsTest, TakesTheTightestGroupOfVersion2) {
  Put("/proc/self/cgroup", "0::/a/b\n");
  Put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  Put("/sys/fs/cgroup/a/b/memory.max", "2147483648\n");
  Put("/sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_THAT(CgroupCpus(root_), Optional(1.5));
  EXPECT_THAT(CgroupMemoryBytes(root_), Optional(uint64_t{2} << 30));
}

TEST_F(SystemLimitsTest, ReadsVersion1) {
  Put("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/\n0::/\n");
  Put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  Put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_THAT(CgroupCpus(root_), Optional(3.0));
  EXPECT_THAT(CgroupMemoryBytes(root_), Optional(uint64_t{1} << 30));
}

TEST_F(SystemLimitsTest, NoQuotaIsNoLimit) {
  Put("/proc/self/cgroup", "1:cpu:/\n");
  Put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpus(root_), std::nullopt);
}

TEST_F(SystemLimitsTest, SurvivesNonsense) {
  Put("/proc/self/cgroup", "\n:\n0::\n0:::::\nxyz");
  Put("/sys/fs/cgroup/cpu.max", "a b c");
  Put("/sys/fs/cgroup/memory.max", "");
  EXPECT_EQ(CgroupCpus(root_), std::nullopt);
  EXPECT_EQ(CgroupMemoryBytes(root_), std::nullopt);
}

TEST_F(SystemLimitsTest, ReadsMemInfo) {
  Put("/proc/meminfo", "MemTotal:       24689764 kB\nMemAvailable:    1024 kB\n");
  EXPECT_THAT(MemInfoBytes(root_, "MemAvailable"), Optional(uint64_t{1} << 20));
  EXPECT_EQ(MemInfoBytes(root_, "Mem"), std::nullopt);
}

TEST_F(SystemLimitsTest, NamesVectorExtensionsBestFirst) {
  Put("/proc/cpuinfo", "model name\t: x\nflags\t\t: fpu avx2 f16c avx512f\n");
  EXPECT_THAT(VectorExtensions(root_), ElementsAre("AVX-512", "AVX2", "F16C"));
  Put("/proc/cpuinfo", "Features\t: fp asimd sve\n");
  EXPECT_THAT(VectorExtensions(root_), ElementsAre("SVE", "NEON"));
}

TEST_F(SystemLimitsTest, TheProcessorHasAName) {
  EXPECT_EQ(ProcessorName(root_), "unknown processor");
  Put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7763\nmodel name\t: other\n");
  EXPECT_EQ(ProcessorName(root_), "AMD EPYC 7763");
  Put("/proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd40\n");
  EXPECT_EQ(ProcessorName(root_), "0xd40");
}

}  // namespace
}  // namespace syncopate::tools
