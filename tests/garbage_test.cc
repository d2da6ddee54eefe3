// Strangers throw bytes at every port that a job opens, from its first moment to its last: random
// ones, and beginnings that look right. The job does not notice.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "tests/host_workers.h"
#include "transport/net/handshake.h"

namespace syncopate {
namespace {

// The local ports of TCP sockets of a process that listen.
std::set<int> ListeningPorts(pid_t pid) {
  std::set<std::string> sockets;
  std::error_code error;
  const std::string process = absl::StrCat("/proc/", pid);
  for (const auto& fd : std::filesystem::directory_iterator(process + "/fd", error)) {
    const std::string target = std::filesystem::read_symlink(fd.path(), error).string();
    if (target.rfind("socket:[", 0) == 0) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<int> ports;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(process + table);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      if (state != "0A" || sockets.count(inode) == 0) continue;
      ports.insert(static_cast<int>(std::strtol(local.c_str() + local.find(':') + 1, nullptr, 16)));
    }
  }
  return ports;
}

std::string Noise(Random& random, size_t bytes) {
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random.Next());
  return noise;
}

// What a protocol of ours, or one that we use, begins with, and then noise.
std::string Garbage(Random& random) {
  std::string beginning;
  switch (random.Below(4)) {
    case 0: {
      transport::net::Greeting greeting;
      greeting.from = static_cast<uint32_t>(random.Below(4));
      greeting.to = static_cast<uint32_t>(random.Below(4));
      greeting.nonce = Noise(random, transport::net::kNonceBytes);
      beginning = Encode(greeting);
      break;
    }
    case 1:  // UCX over TCP
      beginning = std::string("\x78\x56\x34\x12\xbe\xba\xfe\xca", 8);
      break;
    case 2:  // HTTP/2, which gRPC speaks
      beginning = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
      break;
    default:
      break;
  }
  return beginning + Noise(random, random.Below(4096));
}

// Connects to a port of the loopback, from another address than the workers have, and says `text`.
// The connection stays open as long as the result.
UniqueFd Say(int port, const std::string& text, bool reset) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in here = {};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 8);
  bind(fd.get(), reinterpret_cast<sockaddr*>(&here), sizeof(here));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // On the loopback it is done at once, or somebody has taken care that it is not.
  connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const ssize_t sent = send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (reset && sent >= 0) {
    const linger at_once = {1, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  return fd;
}

class GarbageTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GarbageTest, TheJobDoesNotNotice) {
  constexpr int kThrows = 400;
  constexpr size_t kOpenMax = 20;  // connections that strangers keep
  struct Shared {
    std::atomic<int> started{0};
    std::atomic<bool> enough{false};
  };
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *new (memory) Shared;
  setenv("SYNCOPATE_TRANSPORT", GetParam(), 1);
  const auto workers = HostWorkers::OnLoopback(4, 1, [&](Worker& worker) {
    ++shared.started;
    std::vector<float> data(50'000);
    bool over = false;
    while (!over) {
      if (!worker.Lost().empty()) return 3;
      std::fill(data.begin(), data.end(), 1.0f);
      // The last element says whether all may end: all must end together.
      data.back() = shared.enough ? 1 : 0;
      const absl::Status status =
          worker.world().AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum);
      if (!status.ok()) {
        std::fprintf(stderr, "rank %d: %s\n", worker.rank(), status.ToString().c_str());
        return 1;
      }
      for (size_t i = 0; i + 1 < data.size(); ++i) {
        if (data[i] != 4) return 2;
      }
      over = data.back() > 0;
    }
    return 0;
  });
  unsetenv("SYNCOPATE_TRANSPORT");
  workers->Signal(3, SIGSTOP);  // while one is late, the others listen
  Random random(5);
  std::set<int> met;
  std::vector<UniqueFd> open;
  for (int i = 0; i < kThrows && !workers->AnyHasEnded();) {
    if (i > kThrows / 2) workers->Signal(3, SIGCONT);
    std::vector<int> ports;
    for (const pid_t pid : workers->pids()) {
      const std::set<int> here = ListeningPorts(pid);
      ports.insert(ports.end(), here.begin(), here.end());
    }
    for (const int port : ports) {
      met.insert(port);
      UniqueFd fd = Say(port, Garbage(random), random.Below(2) == 0);
      if (random.Below(4) == 0 && open.size() < kOpenMax) open.push_back(std::move(fd));
      ++i;
    }
    if (ports.empty() && shared.started == 4) break;  // nobody needs to be reached any more
    if (ports.empty()) usleep(1000);
  }
  shared.enough = true;
  const std::vector<int> codes = workers->Join();
  for (size_t rank = 0; rank < codes.size(); ++rank) EXPECT_EQ(codes[rank], 0) << "rank " << rank;
  EXPECT_GE(met.size(), 3u) << "each of those who wait listens somewhere";
  munmap(memory, sizeof(Shared));
}

INSTANTIATE_TEST_SUITE_P(All, GarbageTest, ::testing::Values("tcp", "ucx"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace syncopate
