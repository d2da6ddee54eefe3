// The key of a job on several hosts: where it comes from, what is refused, and that it shows
// nowhere. The "hosts" are processes of this machine that meet on the loopback as under torchrun.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Options = Subprocess::Options;

constexpr char kKey[] = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";

class JobKeyTest : public ::testing::Test {
 protected:
  JobKeyTest() : folder_(::testing::TempDir() + UniqueMarker()) {
    std::filesystem::create_directory(folder_);
  }
  ~JobKeyTest() override { std::filesystem::remove_all(folder_); }

  // Two ranks on two "hosts" under torchrun's variables and `extra` ({rank} is the rank's number);
  // returns when both have ended.
  void RunUnderTorchrun(const std::vector<std::string>& command,
                        const std::vector<std::string>& extra) {
    static int jobs = 0;
    const std::string port = absl::StrCat(20000 + (getpid() * 7 + ++jobs * 31) % 20000);
    ranks_.clear();
    for (int rank : {0, 1}) {
      std::vector<std::string> environment = {absl::StrCat("RANK=", rank),
                                              "WORLD_SIZE=2",
                                              "LOCAL_RANK=0",
                                              "LOCAL_WORLD_SIZE=1",
                                              "MASTER_ADDR=127.0.0.1",
                                              absl::StrCat("MASTER_PORT=", port),
                                              absl::StrCat("TORCHELASTIC_RUN_ID=key-", port),
                                              absl::StrCat("SYNCOPATE_HOST=host", rank),
                                              absl::StrCat("SYNCOPATE_MACHINE=host", rank),
                                              "SYNCOPATE_SOCKET_IFNAME=lo",
                                              "SYNCOPATE_TIMEOUT=30s"};
      for (const std::string& variable : extra) {
        environment.push_back(absl::StrReplaceAll(variable, {{"{rank}", absl::StrCat(rank)}}));
      }
      ranks_.push_back(std::make_unique<Subprocess>(command, Options{.environment = environment}));
    }
    codes_.clear();
    for (auto& rank : ranks_) codes_.push_back(rank->Wait());
  }
  std::string Output() const {
    std::string all;
    for (const auto& rank : ranks_) absl::StrAppend(&all, rank->out(), rank->err());
    return all;
  }
  std::string KeyFile(const std::string& text, mode_t mode) {
    const std::string path = folder_ + "/key";
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  // Both ranks refuse it as bad usage, in words that name the variable and not the key.
  void ExpectRefused(const std::vector<std::string>& extra, const std::string& words) {
    RunUnderTorchrun({SYNCOPATE_BINARY, "probe", "--allreduce"}, extra);
    for (size_t rank : {0, 1}) {
      EXPECT_EQ(codes_[rank], 2) << ranks_[rank]->err();
      EXPECT_THAT(ranks_[rank]->err(), HasSubstr(words));
    }
    EXPECT_THAT(Output(), Not(HasSubstr("5ec2e7")));
  }

  const std::string folder_;
  std::vector<std::unique_ptr<Subprocess>> ranks_;
  std::vector<int> codes_;
};

int CountOf(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_F(JobKeyTest, AKeyFromPublicValuesWasTakenSilently) {
  RunUnderTorchrun({PRINT_JOB_BINARY}, {});
  EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0)) << Output();
  EXPECT_EQ(CountOf(ranks_[0]->err(), "warning"), 1) << ranks_[0]->err();
  EXPECT_THAT(ranks_[0]->err(), AllOf(HasSubstr("public"), HasSubstr("SYNCOPATE_KEY_FILE"),
                                      HasSubstr("openssl rand -hex 32")));
  EXPECT_EQ(ranks_[1]->err(), "");
  // Nothing to warn of where there is a key, and on one host.
  RunUnderTorchrun({PRINT_JOB_BINARY}, {absl::StrCat("SYNCOPATE_KEY=", kKey)});
  EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0));
  EXPECT_EQ(ranks_[0]->err() + ranks_[1]->err(), "");
  RunUnderTorchrun({PRINT_JOB_BINARY}, {"LOCAL_WORLD_SIZE=2", "SYNCOPATE_REQUIRE_KEY=1"});
  EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0));
  EXPECT_EQ(ranks_[0]->err() + ranks_[1]->err(), "");
}

TEST_F(JobKeyTest, AKeyFromPublicValuesCouldNotBeRefused) {
  ExpectRefused({"SYNCOPATE_REQUIRE_KEY=1"}, "SYNCOPATE_REQUIRE_KEY=1");
  // The same under srun, and at a rendezvous that somebody else serves.
  ExpectRefused({"SYNCOPATE_REQUIRE_KEY=1", "SYNCOPATE_JOB=of-srun",
                 "MASTER_ADDR=", "SLURM_PROCID={rank}", "SLURM_STEP_NODELIST=localhost"},
                "SYNCOPATE_REQUIRE_KEY=1");
  ExpectRefused({"SYNCOPATE_REQUIRE_KEY=1", "SYNCOPATE_RENDEZVOUS=127.0.0.1:9"},
                "SYNCOPATE_REQUIRE_KEY=1");
  ExpectRefused({"SYNCOPATE_REQUIRE_KEY=yes"}, "SYNCOPATE_REQUIRE_KEY");
  RunUnderTorchrun({PRINT_JOB_BINARY},
                   {"SYNCOPATE_REQUIRE_KEY=1", absl::StrCat("SYNCOPATE_KEY=", kKey)});
  EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0)) << Output();
}

TEST_F(JobKeyTest, AKeyFileThatOthersMayReadIsRefused) {
  const auto variable = [](const std::string& path) { return "SYNCOPATE_KEY_FILE=" + path; };
  for (const mode_t mode : {0644, 0640, 0660, 0604, 0700, 0200}) {
    ExpectRefused({variable(KeyFile(kKey, mode))}, "0600");
  }
  const std::string good = KeyFile(kKey, 0600);
  std::filesystem::create_symlink(good, folder_ + "/link");
  ExpectRefused({variable(folder_ + "/link")}, "regular file");
  ExpectRefused({variable(folder_)}, "regular file");
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  ExpectRefused({variable(folder_ + "/fifo")}, "regular file");
  ExpectRefused({variable(folder_ + "/none")}, "SYNCOPATE_KEY_FILE");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(good.c_str(), 65534, 65534), 0);
    ExpectRefused({variable(good)}, "another user");
  }
  ExpectRefused({variable(KeyFile(std::string(kKey).substr(1), 0600))}, "64 hexadecimal digits");
  ExpectRefused({variable(KeyFile(std::string(1 << 20, 'a'), 0600))}, "SYNCOPATE_KEY_FILE");
  for (const mode_t mode : {0600, 0400}) {
    RunUnderTorchrun({PRINT_JOB_BINARY}, {variable(KeyFile(absl::StrCat(kKey, "\n"), mode)),
                                          "SYNCOPATE_REQUIRE_KEY=1"});
    EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0)) << Output();
  }
}

// However a key is written: as it is, in capitals, as bytes.
auto ShowsKey(const std::string& key) {
  return AnyOf(HasSubstr(absl::AsciiStrToLower(key)), HasSubstr(absl::AsciiStrToUpper(key)),
               HasSubstr(absl::HexStringToBytes(key)));
}

TEST_F(JobKeyTest, KeysAreInNoOutput) {
  const std::string given = absl::StrCat("SYNCOPATE_KEY=", kKey);
  const std::string file = absl::StrCat("SYNCOPATE_KEY_FILE=", KeyFile(kKey, 0600));
  for (const std::string& variable : {given, file}) {
    RunUnderTorchrun({PRINT_JOB_BINARY}, {variable, "SYNCOPATE_DEBUG=TRACE"});
    EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0)) << Output();
    EXPECT_THAT(Output(), AllOf(HasSubstr("meeting at"), Not(ShowsKey(kKey))));
  }
  // A digit is missing: the error says so without them.
  ExpectRefused({absl::StrCat("SYNCOPATE_KEY=", std::string(kKey).substr(1))}, "SYNCOPATE_KEY");
}

TEST_F(JobKeyTest, KeysOfLaunchedJobsAreInNoOutputAndOnNoCommandLine) {
  // Each rank keeps its key for the test, looks at all processes that it can see, the launcher and
  // its agents among them, and works while everything is logged.
  const std::string script =
      absl::StrCat("echo $SYNCOPATE_KEY >", folder_,
                   "/$SYNCOPATE_RANK; for file in /proc/[0-9]*/cmdline; do "
                   "case \"$(tr '\\0' ' ' <$file 2>/dev/null)\" in *$SYNCOPATE_KEY*) echo seen;; "
                   "*launch*--remote*) echo agent;; esac; done; exec ",
                   PRINT_JOB_BINARY);
  Subprocess launch({SYNCOPATE_BINARY, "launch", "-H", "a,b", "--agent", "env AGENT_FOR={host}",
                     "-x", "SYNCOPATE_DEBUG=TRACE", "--", "sh", "-c", script},
                    Options{.environment = {absl::StrCat("SYNCOPATE_KEY=", kKey)}});
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_GE(launch.Count("agent"), 2) << launch.out();
  EXPECT_EQ(launch.Count("seen"), 0) << launch.out();
  const std::string output = launch.out() + launch.err();
  EXPECT_THAT(output, HasSubstr(" rank 1 of 2"));
  EXPECT_THAT(output, Not(ShowsKey(kKey)));
  for (const char* rank : {"0", "1"}) {
    std::string key;
    std::ifstream(absl::StrCat(folder_, "/", rank)) >> key;
    ASSERT_EQ(key.size(), 64u);
    EXPECT_THAT(output, Not(ShowsKey(key)));
  }
}

TEST_F(JobKeyTest, TlsCarriesAJob) {
  const std::string key = absl::StrCat("SYNCOPATE_KEY=", kKey);
  RunUnderTorchrun({PRINT_JOB_BINARY}, {key, "SYNCOPATE_SECURE=1", "SYNCOPATE_CONNECTIONS=2"});
  EXPECT_THAT(codes_, ::testing::ElementsAre(0, 0)) << Output();
  EXPECT_EQ(ranks_[0]->err() + ranks_[1]->err(), "");
}

TEST_F(JobKeyTest, TlsIsRefusedWithoutASecretKeyAndWithoutTcp) {
  const std::string key = absl::StrCat("SYNCOPATE_KEY=", kKey);
  ExpectRefused({"SYNCOPATE_SECURE=1"}, "SYNCOPATE_SECURE=1, but the key");
  ExpectRefused({key, "SYNCOPATE_SECURE=1", "SYNCOPATE_TRANSPORT=ucx"}, "SYNCOPATE_TRANSPORT=ucx");
  ExpectRefused({key, "SYNCOPATE_SECURE=on"}, "SYNCOPATE_SECURE");
}

TEST_F(JobKeyTest, WorkersThatDisagreeOnTlsAreBothNamed) {
  RunUnderTorchrun({PRINT_JOB_BINARY},
                   {absl::StrCat("SYNCOPATE_KEY=", kKey), "SYNCOPATE_SECURE={rank}"});
  EXPECT_THAT(codes_, ::testing::ElementsAre(1, 1));
  EXPECT_THAT(ranks_[0]->err(), HasSubstr("worker 1 uses tcp+tls, worker 0 tcp;"));
  EXPECT_THAT(ranks_[1]->err(), HasSubstr("worker 0 uses tcp, worker 1 tcp+tls;"));
}

}  // namespace
}  // namespace syncopate::testing
