// `syncopate doctor` as a user meets it. The machine that runs the tests is usable.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DoctorSystemTest, FindsThisMachineUsable) {
  Subprocess doctor({SYNCOPATE_BINARY, "doctor"});
  EXPECT_EQ(doctor.Wait(), 0);
  EXPECT_THAT(doctor.out(), EndsWith("usable: workers on this machine can share memory\n"));
  EXPECT_EQ(doctor.err(), "");
}

TEST(DoctorSystemTest, PrintsJson) {
  Subprocess doctor({SYNCOPATE_BINARY, "doctor", "--json"});
  EXPECT_EQ(doctor.Wait(), 0);
  EXPECT_THAT(doctor.out(), StartsWith("{\n  \"usable\": true,"));
}

TEST(DoctorSystemTest, SaysWhatToDoWhereSharedMemoryCannotWork) {
  Subprocess::Options options;
  options.before_exec = [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);  // no shared memory can be given a size
  };
  Subprocess doctor({SYNCOPATE_BINARY, "doctor"}, options);
  EXPECT_EQ(doctor.Wait(), 1);
  EXPECT_THAT(doctor.out(), HasSubstr("-> raise the limit on file sizes: ulimit -f unlimited"));
  EXPECT_THAT(doctor.out(), EndsWith("not usable: workers on this machine cannot share memory\n"));
}

TEST(DoctorSystemTest, SaysWhatNeedsRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  Subprocess::Options options;
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
