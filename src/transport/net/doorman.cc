#include "transport/net/doorman.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace syncopate::transport::net {
namespace {

constexpr uint32_t kAccept = 0xffffffff, kDrop = 0;
constexpr uint32_t kNetwork = static_cast<uint32_t>(SKF_NET_OFF);  // where the IP header begins
constexpr uint32_t kSource4 = kNetwork + offsetof(iphdr, saddr);
constexpr uint32_t kSource6 = kNetwork + offsetof(ip6_hdr, ip6_src);

using Words = std::array<uint32_t, 4>;

Words WordsOf(const in6_addr& address) {
  Words words;
  std::memcpy(words.data(), &address, sizeof(words));
  for (uint32_t& word : words) word = ntohl(word);
  return words;
}

// Accepts a packet whose source is one of the addresses, each of as many words as the first
// `words` of it, which stand in the packet from `offset` on.
void AddSources(const std::set<Words>& sources, uint32_t offset, uint8_t words,
                std::vector<sock_filter>& program) {
  for (const Words& source : sources) {
    for (uint8_t i = 0; i < words; ++i) {
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset + 4u * i));
      // If this word differs, past the rest of this source: two for each word, and the last.
      const uint8_t rest = static_cast<uint8_t>(2 * (words - i - 1) + 1);
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, source[i], 0, rest));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, kAccept));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kDrop));
}

}  // namespace

std::map<int, in_port_t> ListeningSockets() {
  std::map<int, in_port_t> sockets;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    int listens = 0;
    socklen_t bytes = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || listens == 0) continue;
    sockaddr_storage own = {};
    bytes = sizeof(own);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) continue;
    if (own.ss_family == AF_INET) {
      sockets[fd] = reinterpret_cast<const sockaddr_in&>(own).sin_port;
    } else if (own.ss_family == AF_INET6) {
      sockets[fd] = reinterpret_cast<const sockaddr_in6&>(own).sin6_port;
    }
  }
  return sockets;
}

absl::Status LetIn(int listening_socket, absl::Span<const sockaddr_storage> addresses) {
  std::set<Words> sources4, sources6;
  for (const sockaddr_storage& address : addresses) {
    if (address.ss_family == AF_INET) {
      const auto& source = reinterpret_cast<const sockaddr_in&>(address);
      sources4.insert({ntohl(source.sin_addr.s_addr)});
    } else if (address.ss_family == AF_INET6) {
      const auto& source = reinterpret_cast<const sockaddr_in6&>(address);
      const Words words = WordsOf(source.sin6_addr);
      if (IN6_IS_ADDR_V4MAPPED(&source.sin6_addr)) sources4.insert({words[3]});
      sources6.insert(words);
    }
  }
  std::vector<sock_filter> version4, version6;
  AddSources(sources4, kSource4, 1, version4);
  AddSources(sources6, kSource6, 4, version6);
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kNetwork),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 1),
      BPF_STMT(BPF_JMP | BPF_JA, static_cast<uint32_t>(version6.size())),
  };
  program.insert(program.end(), version6.begin(), version6.end());
  program.insert(program.end(), version4.begin(), version4.end());
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  if (program.size() > BPF_MAXINSNS ||
      setsockopt(listening_socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot keep strangers from a port: ",
                     program.size() > BPF_MAXINSNS ? "too many addresses" : std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::transport::net
