// The door of the rendezvous against what strangers say to it, and a worker that knocks against
// what a stranger answers. Nobody comes in, and the door still opens for one who knows the key.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "control/door.h"
#include "control/door_handshake.h"
#include "control/knock.h"

namespace syncopate::control {
namespace {

constexpr int64_t kPatienceNs = 20'000'000'000;
constexpr char kKey[] = "the key of the job, which strangers do not know";
const std::string kNonce(32, 'n');  // NOLINT: of the meeting

// Closes without leaving the port occupied.
void Reset(UniqueFd& fd) {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  fd.Reset();
}

// Answers whoever connects with the bytes of the input that runs.
class BadServer {
 public:
  BadServer() : listener_(*ListenAt("127.0.0.1", 0)) {
    const int flags = fcntl(listener_.fd.get(), F_GETFL);
    fcntl(listener_.fd.get(), F_SETFL, flags & ~O_NONBLOCK);
    std::thread([this] { Serve(); }).detach();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(listener_.port); }
  void Answer(std::string bytes) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(bytes);
  }

 private:
  void Serve() {
    while (true) {
      UniqueFd fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.ok()) continue;
      char hello[40];
      (void)!recv(fd.get(), hello, sizeof(hello), MSG_WAITALL);
      std::string answer;
      {
        const std::lock_guard lock(mutex_);
        answer = answer_;
      }
      (void)!send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      shutdown(fd.get(), SHUT_WR);
      (void)!recv(fd.get(), hello, 1, 0);  // until the worker has gone
    }
  }

  Listener listener_;
  std::mutex mutex_;
  std::string answer_;
};

struct World {
  World() {
    Listener listener = *ListenAt("127.0.0.1", 0);
    port = listener.port;
    // A worker that came in must be the one that knocked with the key.
    door = Door::Open(std::move(listener),
                      {.key = kKey, .meeting_nonce = kNonce, .welcome = [](UniqueFd) {}},
                      MonotonicClock());
  }
  int port = 0;
  std::unique_ptr<Door> door;
  BadServer server;
  uint64_t runs = 0;
};

void Speak(const World& world, const std::string& bytes) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(world.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    std::abort();
  }
  (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(fd.get(), SHUT_WR);
  // To the end: the door hangs up on whoever does not prove itself.
  std::string heard;
  char buffer[512];
  for (ssize_t got = 0; (got = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    heard.append(buffer, static_cast<size_t>(got));
  }
  if (heard.size() > 256) std::abort();
  Reset(fd);
}

}  // namespace
}  // namespace syncopate::control

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate::control;
  static World& world = *new World;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const syncopate::Clock& clock = syncopate::MonotonicClock();
  if (data[0] % 2 == 0) {
    Speak(world, data[0] % 4 == 0 ? bytes : std::string(kDoorMagic) + bytes);
  } else {
    world.server.Answer(bytes);
    auto welcome = Knock(world.server.address(), kKey, clock, clock.NowNs() + kPatienceNs);
    if (welcome.ok()) std::abort();
  }
  if (++world.runs % 256 == 0) {
    auto welcome =
        Knock("127.0.0.1:" + std::to_string(world.port), kKey, clock, clock.NowNs() + kPatienceNs);
    if (!welcome.ok() || welcome->meeting_nonce != kNonce) std::abort();
    Reset(welcome->fd);
  }
  return 0;
}
