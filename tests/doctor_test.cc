// `syncopate doctor` as a user meets it. The machine that runs the tests is usable.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DoctorSystemTest : public ::testing::Test {
 protected:
  ~DoctorSystemTest() override { std::filesystem::remove_all(cache_); }

  // The user's own cache is left alone.
  const std::string cache_ = ::testing::TempDir() + "/doctor-" + UniqueMarker();
  const Subprocess::Options options_ = {.environment = {"SYNCOPATE_CACHE=" + cache_}};
};

TEST_F(DoctorSystemTest, FindsThisMachineUsable) {
  Subprocess doctor({SYNCOPATE_BINARY, "doctor"}, options_);
  EXPECT_EQ(doctor.Wait(), 0);
  EXPECT_THAT(doctor.out(), EndsWith("usable: workers on this machine can share memory\n"));
  EXPECT_EQ(doctor.err(), "");
}

// `plan` says that it assumes a typical machine, and after `doctor` that it uses what that measured.
TEST_F(DoctorSystemTest, PlansPredictByWhatItMeasured) {
  const std::vector<std::string> plan = {SYNCOPATE_BINARY, "plan", "-n", "4", "--bytes", "1M"};
  Subprocess before(plan, options_);
  EXPECT_EQ(before.Wait(), 0);
  EXPECT_THAT(before.out(), HasSubstr("; assumed: run syncopate doctor to measure\n"));
  Subprocess doctor({SYNCOPATE_BINARY, "doctor"}, options_);
  EXPECT_EQ(doctor.Wait(), 0);
  EXPECT_THAT(doctor.out(), HasSubstr("kept in " + cache_ + "/host-"));
  Subprocess after(plan, options_);
  EXPECT_EQ(after.Wait(), 0);
  EXPECT_THAT(after.out(), HasSubstr("; measured by syncopate doctor on 20"));
  EXPECT_EQ(after.err(), "");
}

TEST_F(DoctorSystemTest, SaysIfItCannotKeepWhatItMeasured) {
  Subprocess doctor({SYNCOPATE_BINARY, "doctor"},
                    {.environment = {"SYNCOPATE_CACHE=/dev/null/nowhere"}});
  EXPECT_EQ(doctor.Wait(), 0);
  EXPECT_THAT(doctor.out(), AllOf(HasSubstr("/dev/null/nowhere"),
                                  HasSubstr("-> syncopate plan assumes a typical machine; set "
                                            "SYNCOPATE_CACHE to a folder")));
}

TEST_F(DoctorSystemTest, PrintsJson) {
  Subprocess doctor({SYNCOPATE_BINARY, "doctor", "--json"}, options_);
  EXPECT_EQ(doctor.Wait(), 0);
  EXPECT_THAT(doctor.out(), StartsWith("{\n  \"usable\": true,"));
}

TEST_F(DoctorSystemTest, SaysWhatToDoWhereSharedMemoryCannotWork) {
  Subprocess::Options options = options_;
  options.before_exec = [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);  // no shared memory can be given a size
  };
  Subprocess doctor({SYNCOPATE_BINARY, "doctor"}, options);
  EXPECT_EQ(doctor.Wait(), 1);
  EXPECT_THAT(doctor.out(), HasSubstr("-> raise the limit on file sizes: ulimit -f unlimited"));
  EXPECT_THAT(doctor.out(), EndsWith("not usable: workers on this machine cannot share memory\n"));
}

TEST_F(DoctorSystemTest, SaysWhatNeedsRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  Subprocess::Options options = options_;
  options.before_exec = [] { (void)!setuid(65534); };
  // Nobody may not look into the build folder; the copy that is open already runs all the same.
  const int program = open(SYNCOPATE_BINARY, O_PATH);
  ASSERT_GE(program, 0);
  Subprocess doctor({"/proc/self/fd/" + std::to_string(program), "doctor"}, options);
  EXPECT_EQ(doctor.Wait(), 0) << doctor.err();
  close(program);
  EXPECT_THAT(
      doctor.out(),
      HasSubstr("-> only syncopate lab and --lab of train, replay, bench and probe need it\n"));
}

}  // namespace
}  // namespace syncopate::testing
