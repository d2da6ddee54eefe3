#include "control/launcher_notes.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace syncopate::control {
namespace {

constexpr char kVariable[] = "SYNCOPATE_LAUNCHER";
constexpr size_t kNoteBytesMax = 512;
constexpr size_t kNotesMax = 1024;  // that are kept
constexpr size_t kNameBytesMax = sizeof(sockaddr_un::sun_path);

// The bytes of an abstract name, without the zero in front; empty if it has none.
std::string NameOf(int socket) {
  sockaddr_un address = {};
  socklen_t length = sizeof(address);
  constexpr size_t kFront = offsetof(sockaddr_un, sun_path) + 1;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  return length <= kFront ? "" : std::string(address.sun_path + 1, length - kFront);
}

// One datagram of this user; empty if it is another's. Nothing if none waits.
std::optional<std::string> TakeDatagram(int socket) {
  char bytes[kNoteBytesMax];
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(ucred))] = {};
  iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return std::nullopt;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) return "";
  ucred sender = {};
  std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
  return sender.uid == getuid() ? std::string(bytes, static_cast<size_t>(count)) : "";
}

}  // namespace

LauncherNotes::LauncherNotes() {
  UniqueFd made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_un any = {};
  any.sun_family = AF_UNIX;
  // An address of the family alone: the kernel chooses a name.
  if (!made.ok() || setsockopt(made.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      bind(made.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any.sun_family)) != 0) {
    return;
  }
  name_ = absl::BytesToHexString(NameOf(made.get()));
  socket_ = std::move(made);
}

std::vector<std::string> LauncherNotes::Variables() const {
  return {absl::StrCat(kVariable, "=", name_)};
}

std::string LauncherNotes::WhyEnded(pid_t pid) {
  while (socket_.ok()) {
    const std::optional<std::string> note = TakeDatagram(socket_.get());
    if (!note.has_value()) break;
    // "PID BY CAUSE"
    const std::vector<std::string> words = absl::StrSplit(*note, absl::MaxSplits(' ', 2));
    pid_t ended = 0;
    int by = 0;
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &ended) ||
        !absl::SimpleAtoi(words[1], &by) || why_.size() >= kNotesMax) {
      continue;
    }
    std::string cause = words[2];
    for (char& c : cause) {
      if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
    }
    // The first to find it out is named.
    why_.try_emplace(ended, absl::StrCat("was stuck (", cause, ") and was ended by rank ", by));
  }
  const auto found = why_.find(pid);
  return found == why_.end() ? "" : found->second;
}

void NoteEnding(const Environment& environment, pid_t pid, int by_rank, const std::string& cause) {
  const std::string hex = environment(kVariable).value_or("");
  if (hex.empty() || hex.size() > 2 * (kNameBytesMax - 1) || hex.size() % 2 != 0 ||
      hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return;
  }
  const std::string name = absl::HexStringToBytes(hex);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const UniqueFd from(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::string note = absl::StrCat(pid, " ", by_rank, " ", cause).substr(0, kNoteBytesMax);
  // If it does not arrive, less is known.
  (void)!sendto(from.get(), note.data(), note.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
}

}  // namespace syncopate::control
