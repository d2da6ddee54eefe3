#include "control/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::control {
namespace {

absl::Status SystemError(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", std::strerror(error)));
}

// Waits until the socket is ready for `events`.
absl::Status WaitFor(int fd, int16_t events, const Clock& clock, int64_t deadline_ns) {
  while (true) {
    const int64_t left_ms = (deadline_ns - clock.NowNs() + 999'999) / 1'000'000;
    if (left_ms <= 0) return absl::DeadlineExceededError("no answer in time");
    pollfd ready = {fd, events, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::min<int64_t>(left_ms, 3'600'000)));
    if (count > 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return SystemError("wait for the network", errno);
  }
}

SocketAddress FromInfo(const addrinfo& info) {
  SocketAddress address;
  std::memcpy(&address.storage, info.ai_addr, info.ai_addrlen);
  address.size = info.ai_addrlen;
  return address;
}

absl::StatusOr<std::vector<SocketAddress>> Ask(const std::string& host, int port, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &first);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("\"", host, "\" is no address that this host knows: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(first, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    addresses.push_back(FromInfo(*each));
  }
  return addresses;
}

// Outlives the caller if that does not wait for the answer.
struct Question {
  Mutex mutex;
  CondVar changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
  absl::StatusOr<std::vector<SocketAddress>> answer ABSL_GUARDED_BY(mutex) =
      absl::UnknownError("not asked");
};

}  // namespace

bool SameAddress(const SocketAddress& one, const SocketAddress& other) {
  if (one.family() != other.family()) return false;
  if (one.family() == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(one.get())->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(other.get())->sin_addr.s_addr;
  }
  return one.family() == AF_INET6 &&
         IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(one.get())->sin6_addr,
                            &reinterpret_cast<const sockaddr_in6*>(other.get())->sin6_addr);
}

absl::StatusOr<SocketAddress> NumericAddress(const std::string& address, int port) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<SocketAddress> found, Ask(address, port, AI_NUMERICHOST));
  return found.front();
}

absl::StatusOr<std::pair<std::string, int>> SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  absl::string_view host = address.substr(0, colon);
  absl::StatusOr<int64_t> port =
      ParseInt(colon == absl::string_view::npos ? "" : address.substr(colon + 1), 1, 65535);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) host = "";
  if (host.empty() || !port.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is no address; write host:port, as in 10.0.0.1:4711"));
  }
  return std::make_pair(std::string(host), static_cast<int>(*port));
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port,
                                                   const Clock& clock, int64_t deadline_ns) {
  auto numeric = NumericAddress(host, port);
  if (numeric.ok()) return std::vector<SocketAddress>{*numeric};
  auto question = std::make_shared<Question>();
  std::thread([question, host, port] {
    auto answer = Ask(host, port, AI_ADDRCONFIG);
    MutexLock lock(&question->mutex);
    question->answer = std::move(answer);
    question->done = true;
    question->changed.SignalAll();
  }).detach();
  MutexLock lock(&question->mutex);
  while (!question->done) {
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("the name server has not said in time what \"", host, "\" is"));
    }
    question->changed.WaitFor(&question->mutex, std::chrono::nanoseconds(left_ns));
  }
  return question->answer;
}

absl::StatusOr<UniqueFd> BeginConnect(const SocketAddress& address) {
  UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.ok()) return SystemError("make a socket", errno);
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    return SystemError("connect", errno);
  }
  return fd;
}

absl::Status ConnectResult(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? absl::OkStatus() : SystemError("connect", error);
}

absl::Status SendAll(int fd, absl::string_view bytes, const Clock& clock, int64_t deadline_ns) {
  while (!bytes.empty()) {
    const ssize_t count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      SYNCOPATE_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, clock, deadline_ns));
    } else if (errno != EINTR) {
      return SystemError("send", errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveExactly(int fd, size_t count, const Clock& clock,
                                           int64_t deadline_ns) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = recv(fd, bytes.data() + done, count - done, MSG_DONTWAIT);
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (got == 0) {
      return absl::UnavailableError("the other side has closed the connection");
    } else if (errno == EAGAIN) {
      SYNCOPATE_RETURN_IF_ERROR(WaitFor(fd, POLLIN, clock, deadline_ns));
    } else if (errno != EINTR) {
      return SystemError("receive", errno);
    }
  }
  return bytes;
}

}  // namespace syncopate::control
