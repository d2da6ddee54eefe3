// Workers in threads of one process find each other by what their launchers would tell them.
#include "control/meeting.h"

#include <sys/socket.h>

#include <atomic>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/proof.h"
#include "base/unique_fd.h"
#include "control/rendezvous_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

std::string UniqueJob() {
  static std::atomic<int> count = 0;
  return absl::StrCat("meeting-test-", getpid(), "-", MonotonicClock().NowNs(), "-", ++count);
}

MeetingOptions Worker(const std::string& job, int rank, int size) {
  MeetingOptions options;
  options.job = job;
  options.rank = rank;
  options.size = size;
  options.host = absl::StrCat("h", rank);
  options.payload = absl::StrCat("p", rank);
  options.deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  return options;
}

// Two workers, the second first.
std::vector<absl::StatusOr<Meeting>> MeetBoth(const std::string& job,
                                              const std::function<Variables(int)>& variables) {
  std::vector<absl::StatusOr<Meeting>> meetings(2, absl::UnknownError("not done"));
  std::vector<std::thread> threads;
  for (int rank : {1, 0}) {
    threads.emplace_back([&, rank] {
      meetings[static_cast<size_t>(rank)] =
          Meet(Worker(job, rank, 2), MonotonicClock(), MapEnvironment(variables(rank)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return meetings;
}

void ExpectBothMet(const std::vector<absl::StatusOr<Meeting>>& meetings) {
  for (const auto& meeting : meetings) {
    ASSERT_TRUE(meeting.ok()) << meeting.status();
    EXPECT_THAT(meeting->payloads, ElementsAre("p0", "p1"));
    EXPECT_THAT(meeting->hosts, ElementsAre("h0", "h1"));
    EXPECT_EQ(meeting->key, meetings[0]->key);
    EXPECT_EQ(meeting->key.size(), kKeyBytes);
  }
}

TEST(MeetingTest, AtTheRendezvousInTheEnvironmentAsOftenAsWanted) {
  const std::string job = UniqueJob();
  const std::string key(kKeyBytes, 'k');
  const auto server = RendezvousServer::Start(
      {.job = job, .size = 2, .key = key, .hosts = {}, .on_step = {}}, MonotonicClock());
  ASSERT_TRUE(server.ok());
  std::string last_key;
  for (int i = 0; i < 3; ++i) {
    const auto meetings = MeetBoth(job, [&](int) {
      return Variables{{"SYNCOPATE_RENDEZVOUS", (*server)->address()},
                       {"SYNCOPATE_KEY", FormatKey(key)}};
    });
    ExpectBothMet(meetings);
    EXPECT_NE(meetings[0]->key, last_key);
    last_key = meetings[0]->key;
  }
}

TEST(MeetingTest, ByTorchrunsVariables) {
  const std::string job = UniqueJob();
  for (int i = 0; i < 2; ++i) {
    ExpectBothMet(MeetBoth(job, [](int rank) {
      return Variables{{"RANK", absl::StrCat(rank)},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "localhost"},
                       {"MASTER_PORT", "29500"}};
    }));
  }
}

TEST(MeetingTest, ByTorchrunsVariablesWhereAPortIsTaken) {
  // Another job's rendezvous has taken whatever port it got; ours must not be confused by it. The
  // same job on another round derives the same ports, so the second worker asks them all.
  const std::string job = UniqueJob();
  const auto variables = [](int) {
    return Variables{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29501"}};
  };
  std::vector<absl::StatusOr<Meeting>> one, other;
  std::thread beside([&] { other = MeetBoth(job + "b", variables); });
  one = MeetBoth(job, variables);
  beside.join();
  ExpectBothMet(one);
  ExpectBothMet(other);
}

TEST(MeetingTest, BySlurmsListOfNodes) {
  ExpectBothMet(MeetBoth(UniqueJob(), [](int rank) {
    return Variables{{"SLURM_PROCID", absl::StrCat(rank)},
                     {"SLURM_STEP_NODELIST", "localhost,elsewhere[1-3]"}};
  }));
}

// As much of Hydra as two workers need.
class ProcessManager {
 public:
  int ForRank(int rank) const { return workers_[rank].get(); }

  ProcessManager() {
    for (int rank = 0; rank < 2; ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      workers_[rank] = UniqueFd(ends[0]);
      own_[rank] = UniqueFd(ends[1]);
    }
    thread_ = std::thread([this] { Serve(); });
  }
  ~ProcessManager() {
    for (UniqueFd& fd : workers_) fd.Reset();
    thread_.join();
  }

 private:
  std::string Line(int rank) {
    std::string line;
    char c = 0;
    while (read(own_[rank].get(), &c, 1) == 1 && c != '\n') line.push_back(c);
    return line;
  }
  void Say(int rank, const std::string& line) {
    EXPECT_GT(send(own_[rank].get(), line.data(), line.size(), MSG_NOSIGNAL), 0);
  }
  void Serve() {
    for (int rank : {0, 1}) {
      EXPECT_EQ(Line(rank), "cmd=get_my_kvsname");
      Say(rank, "cmd=my_kvsname kvsname=kvs_1\n");
    }
    const std::string put = Line(0);
    EXPECT_TRUE(absl::StartsWith(put, "cmd=put kvsname=kvs_1 key=syncopate-meeting-0 value="));
    Say(0, "cmd=put_result rc=0 msg=success\n");
    for (int rank : {0, 1}) EXPECT_EQ(Line(rank), "cmd=barrier_in");
    for (int rank : {0, 1}) Say(rank, "cmd=barrier_out\n");
    EXPECT_EQ(Line(1), "cmd=get kvsname=kvs_1 key=syncopate-meeting-0");
    Say(1, "cmd=get_result rc=0 msg=success value=" + put.substr(put.find("value=") + 6) + "\n");
  }

  UniqueFd workers_[2], own_[2];
  std::thread thread_;
};

TEST(MeetingTest, ByPmi) {
  const ProcessManager manager;
  ExpectBothMet(MeetBoth(UniqueJob(), [&](int rank) {
    return Variables{{"PMI_RANK", absl::StrCat(rank)},
                     {"PMI_SIZE", "2"},
                     {"PMI_FD", absl::StrCat(manager.ForRank(rank))}};
  }));
}

TEST(MeetingTest, APmiThatTalksNonsenseOrNotAtAllIsAnError) {
  for (const char* says : {"", "\n", "cmd=who rc=0\n", "cmd=my_kvsname rc=-1\n"}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd worker(ends[0]), manager(ends[1]);
    const std::string text = says;
    ASSERT_EQ(write(manager.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    MeetingOptions options = Worker(UniqueJob(), 1, 2);
    options.deadline_ns = MonotonicClock().NowNs() + 200'000'000;
    const auto meeting =
        Meet(options, MonotonicClock(),
             MapEnvironment(
                 {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", absl::StrCat(worker.get())}}));
    ASSERT_FALSE(meeting.ok());
    EXPECT_THAT(std::string(meeting.status().message()), HasSubstr("PMI"));
  }
}

TEST(MeetingTest, WithoutAnyWaySaysWhatWasLookedFor) {
  const auto meeting = Meet(Worker("j", 1, 2), MonotonicClock(), MapEnvironment({}));
  ASSERT_FALSE(meeting.ok());
  EXPECT_THAT(std::string(meeting.status().message()),
              AllOf(HasSubstr("SYNCOPATE_RENDEZVOUS"), HasSubstr("MASTER_ADDR"),
                    HasSubstr("PMI_FD"), HasSubstr("syncopate launch -H")));
}

TEST(MeetingTest, NumbersOfAnotherLauncherDoNotCount) {
  const auto meeting = Meet(Worker("j", 1, 2), MonotonicClock(),
                            MapEnvironment({{"RANK", "0"},
                                            {"WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "localhost"},
                                            {"MASTER_PORT", "1"},
                                            {"SLURM_PROCID", "7"}}));
  ASSERT_FALSE(meeting.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(meeting.status())) << meeting.status();
}

TEST(MeetingTest, RefusesBadInput) {
  EXPECT_FALSE(Meet(Worker("j", 2, 2), MonotonicClock(), MapEnvironment({})).ok());
  const auto bad_key =
      Meet(Worker("j", 0, 2), MonotonicClock(), MapEnvironment({{"SYNCOPATE_KEY", "short"}}));
  EXPECT_THAT(std::string(bad_key.status().message()), HasSubstr("SYNCOPATE_KEY"));
  const auto bad_rendezvous = Meet(Worker("j", 0, 2), MonotonicClock(),
                                   MapEnvironment({{"SYNCOPATE_RENDEZVOUS", "nowhere"}}));
  EXPECT_THAT(std::string(bad_rendezvous.status().message()), HasSubstr("host:port"));
}

TEST(MeetingTest, AloneOneMeetsOneself) {
  const auto meeting = Meet(Worker(UniqueJob(), 0, 1), MonotonicClock(), MapEnvironment({}));
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  EXPECT_THAT(meeting->payloads, ElementsAre("p0"));
}

}  // namespace
}  // namespace syncopate::control
