// Who may meet the workers of a host: descriptors go to processes of the same user only, and those
// that say nothing hold nobody up.
#include "transport/shm/introduction.h"

#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/pidfd.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/status.h"
#include "transport/shm/shm_transport.h"

namespace syncopate::transport::shm {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uid_t kNobody = 65534;

std::string NewJob() {
  static int jobs = 0;
  return "introduction-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
}

std::pair<sockaddr_un, socklen_t> AddressOf(const std::string& job, int rank) {
  const std::string name = "syncopate/" + std::to_string(getuid()) + "/" +
                           DigestOf(job).ToString() + "/" + std::to_string(rank);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

absl::Status Start(const std::string& job, int rank, int64_t timeout_ns) {
  return StartShmTransport({.job = job,
                            .rank = rank,
                            .size = 2,
                            .arena_bytes = 1 << 20,
                            .start_timeout_ns = timeout_ns},
                           MonotonicClock())
      .status();
}

// A process of another user. It is ended when this goes.
class Stranger {
 public:
  // `act` runs in it, and says what it got: the exit code.
  template <typename Act>
  explicit Stranger(Act act) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) {
        _exit(99);
      }
      _exit(act([&] { (void)!write(ready[1], "r", 1); }));
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the stranger did not come so far";
    close(ready[0]);
  }
  ~Stranger() {
    if (child_ > 0) Wait();
  }
  // Its exit code.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = -1;
};

// Whether a message with descriptors comes within 2 s: 1 if so, 2 if one without.
int ReceiveDescriptors(int fd) {
  const timeval patience = {.tv_sec = 2, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char bytes[65536];
  alignas(cmsghdr) char space[CMSG_SPACE(8 * sizeof(int))] = {};
  iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  if (recvmsg(fd, &message, 0) <= 0) return 0;
  return CMSG_FIRSTHDR(&message) != nullptr ? 1 : 2;
}

// Whoever had taken the name of a rank that had not started yet was given read-write descriptors of
// the caller's memory, and only then looked at.
TEST(IntroductionTest, AnotherUserUnderTheNameOfARankGetsNoDescriptors) {
  if (getuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const std::string job = NewJob();
  const auto [address, length] = AddressOf(job, 0);
  Stranger stranger([&](auto ready) {
    UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        listen(listener.get(), 4) != 0) {
      return 98;
    }
    ready();
    UniqueFd fd(accept(listener.get(), nullptr, nullptr));
    return ReceiveDescriptors(fd.get());
  });
  const absl::Status status = Start(job, 1, 5 * kSecond);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_NE(status.message().find("user 65534"), absl::string_view::npos) << status;
  EXPECT_EQ(stranger.Wait(), 0) << "it was sent something";
}

TEST(IntroductionTest, AnotherUserThatCallsGetsNoDescriptors) {
  if (getuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const std::string job = NewJob();
  absl::Status statuses[2];
  std::thread zero([&] { statuses[0] = Start(job, 0, 20 * kSecond); });
  const auto [address, length] = AddressOf(job, 0);
  Stranger stranger([&](auto ready) {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      usleep(1000);
    }
    ready();
    char hello[512] = {};
    send(fd.get(), hello, sizeof(hello), MSG_NOSIGNAL);
    return ReceiveDescriptors(fd.get());
  });
  EXPECT_EQ(stranger.Wait(), 0) << "it was sent something";
  statuses[1] = Start(job, 1, 20 * kSecond);
  zero.join();
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
}

// They were heard one after the other, each for as long as it stayed silent.
TEST(IntroductionTest, SilentConnectionsDoNotHoldUpTheWorkers) {
  const std::string job = NewJob();
  constexpr int64_t kPatience = 5 * kSecond;
  absl::Status statuses[2];
  std::thread zero([&] { statuses[0] = Start(job, 0, kPatience); });
  const auto [address, length] = AddressOf(job, 0);
  std::vector<UniqueFd> silent;
  while (silent.size() < 3) {  // 2 s each
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      std::this_thread::yield();
      continue;
    }
    silent.push_back(std::move(fd));
  }
  statuses[1] = Start(job, 1, kPatience);
  zero.join();
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
}

// Runs `body`, which is true if all went well, in a process of its own.
template <typename Body>
pid_t Fork(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

// Its exit code; -1 if it has not ended by itself within 20 s.
int ExitCodeOf(pid_t child) {
  const UniqueFd process = OpenPidFd(child);
  pollfd ended = {.fd = process.get(), .events = POLLIN, .revents = 0};
  if (poll(&ended, 1, 20'000) != 1) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Lets `child`, which asks for it, run to its next call of the kernel by this number, and returns
// with the child stopped before it.
bool StopBefore(pid_t child, uint64_t call) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
  ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD);
  while (ptrace(PTRACE_SYSCALL, child, 0, 0) == 0) {
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    __ptrace_syscall_info info = {};
    ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == call) return true;
  }
  return false;
}

// A worker was stopped after it had connected and before it had said who it is, for longer than the
// other one's patience. It took the closed connection for the end of the job.
TEST(IntroductionTest, AWorkerThatWasStoppedBeforeItsHelloConnectsAgain) {
  const std::string job = NewJob();
  const pid_t one = Fork([&] {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    return Start(job, 1, 20 * kSecond).ok();
  });
  absl::Status status;
  std::thread zero([&] { status = Start(job, 0, 20 * kSecond); });
  EXPECT_TRUE(StopBefore(one, SYS_sendmsg));
  poll(nullptr, 0, 2'200);  // the fault: the patience is 2 s
  EXPECT_EQ(ptrace(PTRACE_DETACH, one, 0, 0), 0);
  EXPECT_EQ(ExitCodeOf(one), 0);
  zero.join();
  EXPECT_TRUE(status.ok()) << status;
}

// Connecting to a socket whose queue is full had no deadline.
TEST(IntroductionTest, AFullQueueOfConnectionsIsWaitedForUntilTheDeadline) {
  const std::string job = NewJob();
  const auto [address, length] = AddressOf(job, 0);
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  std::vector<UniqueFd> queue;
  do {
    queue.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
  } while (connect(queue.back().get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  ASSERT_EQ(errno, EAGAIN);
  const pid_t one = Fork([&] { return absl::IsDeadlineExceeded(Start(job, 1, kSecond)); });
  EXPECT_EQ(ExitCodeOf(one), 0);
}

// On a host beside others a worker was called by its place there: "worker 1" was rank 7.
TEST(IntroductionTest, WorkersOfAHostBesideOthersAreCalledByTheirRanksInTheJob) {
  const absl::Status status = StartShmTransport({.job = NewJob(),
                                                 .rank = 0,
                                                 .size = 3,
                                                 .names = {4, 6, 7},
                                                 .arena_bytes = 1 << 20,
                                                 .start_timeout_ns = kSecond / 10},
                                                MonotonicClock())
                                  .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.message(), ::testing::HasSubstr("workers 6-7 of job"));
  EXPECT_EQ(GetSuspect(status), 6);
}

}  // namespace
}  // namespace syncopate::transport::shm
