// How workers connect while others, who are no workers, do so too.
#include "transport/net/tcp_mesh.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "base/proof.h"
#include "base/relay_testing.h"
#include "gtest/gtest.h"
#include "transport/net/handshake.h"

namespace syncopate::transport::net {
namespace {

constexpr int64_t kMeshSecond = 1'000'000'000;

int64_t In(int64_t ns) { return MonotonicClock().NowNs() + ns; }

// Connections that say nothing. They wait in the listener's queue from now on.
std::vector<UniqueFd> StaySilentAt(const TcpListener& listener, int count) {
  sockaddr_in address = {};
  socklen_t length = sizeof(address);
  getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < count; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  return silent;
}

MeshOptions Options(int rank, const std::vector<std::string>& addresses) {
  return {.rank = rank, .size = 2, .key = "the key", .addresses = addresses};
}

// Beyond 256 strangers nobody was let in, until the first of them had been silent for too long.
TEST(TcpMeshTest, ManySilentConnectionsDoNotHoldUpTheWorkers) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit more = {.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096),
                       .rlim_max = files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &more), 0);
  TcpListener listeners[2] = {*ListenTcp("127.0.0.1"), *ListenTcp("127.0.0.1")};
  const std::vector<std::string> addresses = {listeners[0].address, listeners[1].address};
  // So many that they would be heard in four lots of 256, 2 s each.
  const std::vector<UniqueFd> silent = StaySilentAt(listeners[0], 900);
  absl::Status statuses[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] = ConnectMesh(std::move(listeners[rank]), Options(rank, addresses),
                                   MonotonicClock(), In(5 * kMeshSecond))
                           .status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  setrlimit(RLIMIT_NOFILE, &files);
}

// Runs `body` in a process of its own that may have only `files` more descriptors than it has.
template <typename Body>
pid_t ForkWithFewFiles(int files, Body body) {
  const pid_t child = fork();
  if (child != 0) return child;
  UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlim_t limit = static_cast<rlim_t>(next.get() + files);
  next.Reset();
  const rlimit few = {.rlim_cur = limit, .rlim_max = limit};
  _exit(setrlimit(RLIMIT_NOFILE, &few) == 0 ? body() : 99);
}

int MeshExitCodeOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Strangers took all descriptors that the process may have.
TEST(TcpMeshTest, SilentConnectionsDoNotTakeAllDescriptors) {
  TcpListener listeners[2] = {*ListenTcp("127.0.0.1"), *ListenTcp("127.0.0.1")};
  const std::vector<std::string> addresses = {listeners[0].address, listeners[1].address};
  const std::vector<UniqueFd> silent = StaySilentAt(listeners[0], 100);
  const pid_t zero = ForkWithFewFiles(20, [&] {  // five lots of 20, 2 s each
    const auto sockets = ConnectMesh(std::move(listeners[0]), Options(0, addresses),
                                     MonotonicClock(), In(5 * kMeshSecond));
    return sockets.ok() ? 0 : 1;
  });
  const absl::Status status = ConnectMesh(std::move(listeners[1]), Options(1, addresses),
                                          MonotonicClock(), In(5 * kMeshSecond))
                                  .status();
  EXPECT_EQ(MeshExitCodeOf(zero), 0);
  EXPECT_TRUE(status.ok()) << status;
}

// A worker without a descriptor for a connection that waits was told of it again at once, for ever.
TEST(TcpMeshTest, AWorkerWithoutDescriptorsWaitsWithoutSpinning) {
  TcpListener listener = *ListenTcp("127.0.0.1");
  const std::vector<UniqueFd> silent = StaySilentAt(listener, 1);
  const pid_t child = ForkWithFewFiles(0, [&] {
    const std::clock_t begin = std::clock();
    const auto sockets =
        ConnectMesh(std::move(listener), Options(0, {"", ""}), MonotonicClock(), In(kMeshSecond));
    const double used =
        static_cast<double>(std::clock() - begin) / static_cast<double>(CLOCKS_PER_SEC);
    return !sockets.ok() && used < 0.1 ? 0 : 1;
  });
  EXPECT_EQ(MeshExitCodeOf(child), 0);
}

int PortOf(const TcpListener& listener) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(listener.address.substr(listener.address.rfind(':') + 1), &port));
  return port;
}

using Sockets = absl::StatusOr<std::vector<std::vector<UniqueFd>>>;

// Whether a word that this end says arrives at the other one, and back.
bool SaysHello(const Sockets& sockets, int peer, bool first) {
  if (!sockets.ok()) return false;
  const int fd = (*sockets)[static_cast<size_t>(peer)][0].get();
  char word = '?';
  for (const bool speak : {first, !first}) {
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const bool passed = speak ? send(fd, "h", 1, MSG_NOSIGNAL) == 1
                              : poll(&ready, 1, 20'000) == 1 && recv(fd, &word, 1, 0) == 1;
    if (!passed) return false;
  }
  return word == 'h';
}

// The acceptor loses its patience just before the proof comes. The connector held the connection
// for made, and never tried again.
TEST(TcpMeshTest, AProofThatComesTooLateIsNotTakenForAConnection) {
  TcpListener listeners[2] = {*ListenTcp("127.0.0.1"), *ListenTcp("127.0.0.1")};
  bool hung_up = false;
  HoldingRelay relay(PortOf(listeners[0]), kGreetingBytes, kProofBytes,
                     [&](const HoldingRelay::Held& held) -> std::optional<std::string> {
                       hung_up = HoldingRelay::AwaitHangUp(held.listener_fd);
                       return std::nullopt;
                     });
  const std::vector<std::string> addresses = {relay.address(), listeners[1].address};
  bool connected[2] = {false, false};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Sockets sockets = ConnectMesh(std::move(listeners[rank]), Options(rank, addresses),
                                          MonotonicClock(), In(20 * kMeshSecond));
      EXPECT_TRUE(sockets.ok()) << sockets.status();
      connected[rank] = SaysHello(sockets, 1 - rank, rank == 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(hung_up) << "the acceptor was patient";
  EXPECT_TRUE(connected[0]);
  EXPECT_TRUE(connected[1]);
}

// The acceptor is stopped while the proof comes, and longer than its patience with strangers.
TEST(TcpMeshTest, AnAcceptorThatWasStoppedHasTheConnectionThatItsPeerHas) {
  TcpListener listeners[2] = {*ListenTcp("127.0.0.1"), *ListenTcp("127.0.0.1")};
  const int port = PortOf(listeners[0]);
  const pid_t zero = fork();
  if (zero == 0) {
    const Sockets sockets = ConnectMesh(std::move(listeners[0]), Options(0, {"", ""}),
                                        MonotonicClock(), In(20 * kMeshSecond));
    _exit(SaysHello(sockets, 1, false) ? 0 : 1);
  }
  listeners[0].fd.Reset();
  bool stopped = false;
  HoldingRelay relay(port, kGreetingBytes, kProofBytes, [&](const HoldingRelay::Held& held) {
    int status = 0;
    stopped =
        kill(zero, SIGSTOP) == 0 && waitpid(zero, &status, WUNTRACED) == zero && WIFSTOPPED(status);
    EXPECT_EQ(send(held.listener_fd, held.message.data(), held.message.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(held.message.size()));
    poll(nullptr, 0, 2'200);  // the fault: the acceptor's patience is 2 s
    kill(zero, SIGCONT);
    return std::optional<std::string>("");
  });
  {
    const Sockets sockets =
        ConnectMesh(std::move(listeners[1]), Options(1, {relay.address(), listeners[1].address}),
                    MonotonicClock(), In(20 * kMeshSecond));
    EXPECT_TRUE(sockets.ok()) << sockets.status();
    EXPECT_TRUE(SaysHello(sockets, 0, true));
  }
  EXPECT_EQ(MeshExitCodeOf(zero), 0);
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace syncopate::transport::net
