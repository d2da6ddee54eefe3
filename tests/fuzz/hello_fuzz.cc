// The hello that workers of one host exchange before they share memory. A worker's true hello is
// recorded first; the input then changes bytes of it, its length and the descriptors that come with
// it. The worker ends with an introduction that keeps its limits or with an error, and in time.
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/unique_fd.h"
#include "transport/shm/introduction.h"
#include "transport/terms.h"

namespace syncopate::transport::shm {
namespace {

constexpr int kFdsMax = 8;

// Time goes on with every look at it, so that a wait for one who says nothing is short.
class SteppingClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_ += 200'000; }

 private:
  mutable int64_t now_ns_ = 1'000'000'000;
};

// A message of one piece, and the descriptors that came with it.
struct Letter {
  std::string bytes;
  std::vector<UniqueFd> fds;
};

Letter Receive(int socket) {
  Letter letter;
  letter.bytes.resize(64 << 10);
  iovec part = {.iov_base = letter.bytes.data(), .iov_len = letter.bytes.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(kFdsMax * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  letter.bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      letter.fds.emplace_back(fd);
    }
  }
  return letter;
}

void Send(int socket, const std::string& bytes, const std::vector<int>& fds) {
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(kFdsMax * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  (void)!sendmsg(socket, &message, MSG_NOSIGNAL);
}

const std::string& JobName() {
  static const std::string& name = *new std::string("fuzz-" + std::to_string(getpid()));
  return name;
}

sockaddr_un AddressOf(int rank, socklen_t& length) {
  const std::string name = "syncopate/" + std::to_string(getuid()) + "/" +
                           DigestOf(JobName()).ToString() + "/" + std::to_string(rank);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::StatusOr<std::vector<Introduction>> Meet(int rank, const Clock& clock, int64_t patience_ns) {
  static const int control = memfd_create("control", MFD_CLOEXEC);
  static const int arena = memfd_create("arena", MFD_CLOEXEC);
  static const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  IntroductionSpec spec;
  spec.job = JobName();
  spec.rank = rank;
  spec.size = 2;
  spec.control_fd = control;
  spec.arena_fd = arena;
  spec.bell_fd = bell;
  spec.arena_bytes = 4096;
  spec.text = "text";
  return MeetPeers(spec, clock, clock.NowNs() + patience_ns);
}

UniqueFd ListenAsFirst() {
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(0, length);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener.get(), 64) != 0) {
    std::abort();
  }
  return listener;
}

// What rank 0 answers to the true hello of rank 1.
Letter RecordHello() {
  Letter second;
  {
    const UniqueFd listener = ListenAsFirst();
    std::thread worker([] { (void)Meet(1, MonotonicClock(), 300'000'000).ok(); });
    const UniqueFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    second = Receive(fd.get());
    worker.join();
  }
  std::thread worker([] { (void)Meet(0, MonotonicClock(), 5'000'000'000).ok(); });
  const UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(0, length);
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    usleep(1000);
  }
  std::vector<int> fds;
  for (const UniqueFd& one : second.fds) fds.push_back(one.get());
  Send(fd.get(), second.bytes, fds);
  Letter first = Receive(fd.get());
  shutdown(fd.get(), SHUT_RDWR);
  worker.join();
  if (first.bytes.empty() || first.fds.empty()) std::abort();
  return first;
}

// Plays rank 0 with what the input made of its hello.
class BadPeer {
 public:
  BadPeer() : hello_(RecordHello()), listener_(ListenAsFirst()) {
    std::thread([this] { Serve(); }).detach();
  }
  const Letter& hello() const { return hello_; }
  void Answer(std::vector<std::string> messages, size_t fds) {
    const std::lock_guard lock(mutex_);
    messages_ = std::move(messages);
    fds_ = fds;
  }

 private:
  void Serve() {
    while (true) {
      const UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.ok()) continue;
      const std::lock_guard lock(mutex_);
      std::vector<int> fds;
      for (size_t i = 0; i < fds_; ++i) fds.push_back(hello_.fds[i % hello_.fds.size()].get());
      for (const std::string& message : messages_) {
        Send(fd.get(), message, fds);
        fds.clear();
      }
    }
  }

  const Letter hello_;
  const UniqueFd listener_;
  std::mutex mutex_;
  std::vector<std::string> messages_;
  size_t fds_ = 0;
};

}  // namespace
}  // namespace syncopate::transport::shm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate::transport;
  static shm::BadPeer& peer = *new shm::BadPeer;
  (void)CompareTerms({"terms", std::string(reinterpret_cast<const char*>(data), size)}).ok();
  FuzzedDataProvider input(data, size);
  std::string hello = peer.hello().bytes;
  const size_t fds =
      input.ConsumeBool() ? peer.hello().fds.size() : input.ConsumeIntegralInRange<size_t>(0, 8);
  if (input.ConsumeIntegralInRange<int>(0, 7) == 0) {
    hello.resize(input.ConsumeIntegralInRange<size_t>(1, 2 * hello.size()));
  }
  for (int edits = input.ConsumeIntegralInRange<int>(0, 8); edits > 0; --edits) {
    // The fields are before the text.
    const size_t most = input.ConsumeBool() ? std::min<size_t>(hello.size(), 64) : hello.size();
    hello[input.ConsumeIntegralInRange<size_t>(0, most - 1)] = input.ConsumeIntegral<char>();
  }
  std::vector<std::string> messages = {hello};
  if (input.remaining_bytes() > 0) messages.push_back(input.ConsumeRemainingBytesAsString());
  peer.Answer(std::move(messages), fds);
  const shm::SteppingClock clock;
  const auto peers = shm::Meet(1, clock, 3'000'000);
  if (!peers.ok()) return 0;
  const shm::Introduction& first = peers->front();
  // Memory comes as a whole or not at all.
  if (first.control.ok() != first.arena.ok() || first.control.ok() != first.bell.ok() ||
      first.text.size() > shm::kTextBytesMax) {
    std::abort();
  }
  return 0;
}
