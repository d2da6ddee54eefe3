// Server and clients of the rendezvous over loopback.
#include "control/rendezvous_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/proof.h"
#include "base/random.h"
#include "base/relay_testing.h"
#include "base/unique_fd.h"
#include "control/knock.h"
#include "control/rendezvous_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kLongNs = 60'000'000'000;  // only ends tests that would never end
constexpr int64_t kShortNs = 1'000'000'000;

const std::string kKey(kKeyBytes, 'k');

std::unique_ptr<RendezvousServer> StartServer(int size, std::vector<std::string> hosts = {}) {
  auto server = RendezvousServer::Start(
      {.job = "job", .size = size, .key = kKey, .hosts = std::move(hosts), .on_step = {}},
      MonotonicClock());
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

MeetingOptions Worker(int rank, int size) {
  return {.job = "job",
          .rank = rank,
          .size = size,
          .key = kKey,
          .rendezvous = "",
          .host = absl::StrCat("h", rank),
          .payload = absl::StrCat("payload ", rank),
          .deadline_ns = MonotonicClock().NowNs() + kLongNs};
}

absl::StatusOr<Meeting> Join(const MeetingOptions& options, const RendezvousServer& server) {
  return JoinMeeting(options, {server.address()}, MonotonicClock());
}

// All ranks at once, each in a thread.
std::vector<absl::StatusOr<Meeting>> JoinAll(int size, const RendezvousServer& server) {
  std::vector<absl::StatusOr<Meeting>> meetings(static_cast<size_t>(size),
                                                absl::UnknownError("not done"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back(
        [&, rank] { meetings[static_cast<size_t>(rank)] = Join(Worker(rank, size), server); });
  }
  for (std::thread& thread : threads) thread.join();
  return meetings;
}

void ExpectAllMet(const std::vector<absl::StatusOr<Meeting>>& meetings) {
  for (const auto& meeting : meetings) {
    ASSERT_TRUE(meeting.ok()) << meeting.status();
    ASSERT_THAT(meeting->payloads, SizeIs(meetings.size()));
    for (size_t rank = 0; rank < meetings.size(); ++rank) {
      EXPECT_EQ(meeting->payloads[rank], absl::StrCat("payload ", rank));
      EXPECT_EQ(meeting->hosts[rank], absl::StrCat("h", rank));
    }
    EXPECT_EQ(meeting->key.size(), kKeyBytes);
    EXPECT_EQ(meeting->key, meetings[0]->key);
  }
}

// A plain connection to the server's port, as a stranger would make it.
UniqueFd StrangerAt(const RendezvousServer& server) {
  const std::vector<std::string> parts = absl::StrSplit(server.address(), ':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(parts[1], &port));
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(inet_pton(AF_INET, parts[0].c_str(), &address.sin_addr), 1);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

size_t Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(RendezvousServerTest, AllMeet) {
  const auto server = StartServer(6);
  const auto meetings = JoinAll(6, *server);
  ExpectAllMet(meetings);
  EXPECT_TRUE(server->WaitUntilAnswered(MonotonicClock().NowNs() + kLongNs));
}

TEST(RendezvousServerTest, ManyMeet) {
  const auto server = StartServer(100);
  ExpectAllMet(JoinAll(100, *server));
  EXPECT_TRUE(server->WaitUntilAnswered(MonotonicClock().NowNs() + kLongNs));
}

TEST(RendezvousServerTest, EveryMeetingHasAnotherKey) {
  const auto one = StartServer(1), other = StartServer(1);
  const auto first = Join(Worker(0, 1), *one), second = Join(Worker(0, 1), *other);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->key, second->key);
  EXPECT_NE(first->key, kKey);
}

TEST(RendezvousServerTest, LeavesNoThreadBehind) {
  const size_t before = Threads();
  {
    const auto server = StartServer(2);
    ExpectAllMet(JoinAll(2, *server));
  }
  // The kernel may list a thread for an instant after it was joined.
  const int64_t deadline_ns = MonotonicClock().NowNs() + kLongNs;
  while (Threads() != before && MonotonicClock().NowNs() < deadline_ns) std::this_thread::yield();
  EXPECT_EQ(Threads(), before);
}

TEST(RendezvousServerTest, AWrongKeyIsFoundByEitherSide) {
  const auto server = StartServer(1);
  MeetingOptions stranger = Worker(0, 1);
  stranger.key = std::string(kKeyBytes, 'x');
  const auto refused = Join(stranger, *server);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("SYNCOPATE_KEY"));
  EXPECT_TRUE(Join(Worker(0, 1), *server).ok());
}

TEST(RendezvousServerTest, RefusalsReachTheWorker) {
  const auto server = StartServer(2);
  MeetingOptions other = Worker(0, 2);
  other.job = "other";
  EXPECT_TRUE(absl::IsPermissionDenied(Join(other, *server).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Join(Worker(0, 3), *server).status()));
  ExpectAllMet(JoinAll(2, *server));
  EXPECT_TRUE(absl::IsFailedPrecondition(Join(Worker(0, 2), *server).status()));
}

TEST(RendezvousServerTest, TheDeadlineNamesTheMissing) {
  const auto server = StartServer(3, {"a", "b", "c"});
  MeetingOptions hasty = Worker(1, 3);
  hasty.deadline_ns = MonotonicClock().NowNs() + kShortNs;
  const auto meeting = Join(hasty, *server);
  EXPECT_LT(MonotonicClock().NowNs(), hasty.deadline_ns + kLongNs);
  ASSERT_FALSE(meeting.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(meeting.status()));
  EXPECT_THAT(std::string(meeting.status().message()),
              AllOf(HasSubstr("rank 0 on a"), HasSubstr("rank 2 on c")));
  EXPECT_TRUE(server->WaitUntilAnswered(MonotonicClock().NowNs() + kLongNs));
}

TEST(RendezvousServerTest, AServerThatEndsTellsThoseWhoWait) {
  std::atomic<bool> came = false;
  auto server = RendezvousServer::Start(
      {.job = "job",
       .size = 2,
       .key = kKey,
       .hosts = {},
       .on_step = [&](const services::RendezvousState& state) { came = state.taken == 1; }},
      MonotonicClock());
  ASSERT_TRUE(server.ok());
  absl::StatusOr<Meeting> meeting = absl::UnknownError("not done");
  std::thread worker([&] { meeting = Join(Worker(0, 2), **server); });
  while (!came) std::this_thread::yield();
  EXPECT_FALSE((*server)->WaitUntilAnswered(MonotonicClock().NowNs()));
  server->reset();
  worker.join();
  ASSERT_FALSE(meeting.ok());
  EXPECT_TRUE(absl::IsUnavailable(meeting.status())) << meeting.status();
}

TEST(RendezvousServerTest, NobodyThereIsADeadlineThatSaysWhere) {
  std::string address;
  { address = StartServer(1)->address(); }
  MeetingOptions alone = Worker(0, 1);
  alone.deadline_ns = MonotonicClock().NowNs() + kShortNs;
  const auto meeting = JoinMeeting(alone, {address}, MonotonicClock());
  EXPECT_TRUE(absl::IsDeadlineExceeded(meeting.status()));
  EXPECT_THAT(std::string(meeting.status().message()), HasSubstr(address));
}

TEST(RendezvousServerTest, AmongSeveralAddressesTheOneWithTheKeyIsTaken) {
  auto other = RendezvousServer::Start(
      {.job = "other", .size = 1, .key = std::string(kKeyBytes, 'o'), .hosts = {}, .on_step = {}},
      MonotonicClock());
  ASSERT_TRUE(other.ok());
  const auto server = StartServer(1);
  EXPECT_TRUE(
      JoinMeeting(Worker(0, 1), {(*other)->address(), server->address()}, MonotonicClock()).ok());
}

TEST(RendezvousServerTest, APortIsNotShared) {
  const auto server = StartServer(1);
  const std::vector<std::string> parts = absl::StrSplit(server->address(), ':');
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(parts[1], &port));
  const auto second = RendezvousServer::Start(
      {.port = port, .job = "job", .size = 1, .key = kKey, .hosts = {}, .on_step = {}},
      MonotonicClock());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(server->address()));
}

TEST(RendezvousServerTest, LargestPayloadsFit) {
  const auto server = StartServer(1);
  MeetingOptions worker = Worker(0, 1);
  worker.payload.assign(limits::kMeetingPayloadBytesMax, '\0');
  worker.host.assign(limits::kHostNameBytesMax, 'h');
  const auto meeting = Join(worker, *server);
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  EXPECT_EQ(meeting->payloads[0], worker.payload);
}

TEST(RendezvousServerTest, WhoKnowsTheKeyButTalksNonsenseDisturbsNobody) {
  const auto server = StartServer(2);
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    auto welcome =
        Knock(server->address(), kKey, MonotonicClock(), MonotonicClock().NowNs() + kLongNs);
    ASSERT_TRUE(welcome.ok()) << welcome.status();
    std::string bytes = i % 2 == 0 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
    for (int left = 500; left > 0; --left) bytes.push_back(static_cast<char>(random.Next()));
    (void)!send(welcome->fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  ExpectAllMet(JoinAll(2, *server));
}

int PortOf(const RendezvousServer& server) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server.address().substr(server.address().rfind(':') + 1), &port));
  return port;
}

// The door loses its patience just before the proof comes. The worker held itself for welcome, and
// its call failed at once.
TEST(RendezvousServerTest, AProofThatComesTooLateIsNotTakenForAWelcome) {
  const auto server = StartServer(1);
  bool hung_up = false;
  constexpr size_t kMagicAndNonceBytes = 8 + kNonceBytes;
  HoldingRelay relay(PortOf(*server), kMagicAndNonceBytes, kProofBytes,
                     [&](const HoldingRelay::Held& held) -> std::optional<std::string> {
                       hung_up = HoldingRelay::AwaitHangUp(held.listener_fd);
                       return std::nullopt;
                     });
  const auto meeting = JoinMeeting(Worker(0, 1), {relay.address()}, MonotonicClock());
  EXPECT_TRUE(hung_up) << "the door was patient";
  EXPECT_TRUE(meeting.ok()) << meeting.status();
}

// Strangers throw bytes at the port while a meeting goes on: random ones, and a beginning that
// looks right. The meeting does not notice.
TEST(RendezvousServerTest, GarbageOnThePortDisturbsNobody) {
  const auto server = StartServer(8);
  std::atomic<bool> stop = false;
  std::atomic<int> thrown = 0;
  std::vector<std::thread> strangers;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    strangers.emplace_back([&, seed] {
      Random random(seed);
      while (!stop) {
        const UniqueFd fd = StrangerAt(*server);
        const char* const beginnings[] = {"", "SYNCRDV2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
        std::string bytes = beginnings[random.Below(3)];
        for (uint64_t left = random.Below(2000); left > 0; --left) {
          bytes.push_back(static_cast<char>(random.Next()));
        }
        // It may close on us meanwhile.
        (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        ++thrown;
      }
    });
  }
  const UniqueFd silent = StrangerAt(*server);  // says nothing at all
  while (thrown < 20) std::this_thread::yield();
  std::vector<absl::StatusOr<Meeting>> meetings = JoinAll(8, *server);
  stop = true;
  for (std::thread& stranger : strangers) stranger.join();
  ExpectAllMet(meetings);
}

}  // namespace
}  // namespace syncopate::control
