// That only those who may come in do, over IPv4 and IPv6.
#include "transport/net/doorman.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>

#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

sockaddr_storage Address(const std::string& text) {
  sockaddr_storage address = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1);
    address.ss_family = AF_INET6;
  }
  return address;
}

UniqueFd Listen(const std::string& ip) {
  const sockaddr_storage address = Address(ip);
  UniqueFd fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.ok() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd.get(), 8) != 0) {
    return UniqueFd();
  }
  return fd;
}

// Whether somebody at `from` can connect, in a fifth of a second.
bool Reaches(const std::string& from, const UniqueFd& listener) {
  sockaddr_storage there = {};
  socklen_t bytes = sizeof(there);
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&there), &bytes), 0);
  const sockaddr_storage here = Address(from);
  const UniqueFd fd(socket(there.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof(here)), 0);
  connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), bytes);
  pollfd ready = {fd.get(), POLLOUT, 0};
  return poll(&ready, 1, 200) == 1 && (ready.revents & (POLLERR | POLLHUP)) == 0;
}

TEST(DoormanTest, OnlyThoseAddressesComeIn) {
  const UniqueFd listener = Listen("127.0.0.1");
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(Reaches("127.0.0.9", listener));
  ASSERT_TRUE(LetIn(listener.get(), {}).ok());
  EXPECT_FALSE(Reaches("127.0.0.1", listener));
  ASSERT_TRUE(LetIn(listener.get(), {Address("127.0.0.1"), Address("127.0.0.3")}).ok());
  EXPECT_TRUE(Reaches("127.0.0.1", listener));
  EXPECT_TRUE(Reaches("127.0.0.3", listener));
  EXPECT_FALSE(Reaches("127.0.0.9", listener));
}

TEST(DoormanTest, AlsoOverIpv6) {
  const UniqueFd listener = Listen("::1");
  if (!listener.ok()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_TRUE(Reaches("::1", listener));
  ASSERT_TRUE(LetIn(listener.get(), {Address("::2"), Address("127.0.0.1")}).ok());
  EXPECT_FALSE(Reaches("::1", listener));
  ASSERT_TRUE(LetIn(listener.get(), {Address("::2"), Address("::1")}).ok());
  EXPECT_TRUE(Reaches("::1", listener));
}

TEST(DoormanTest, KnowsWhichSocketsListen) {
  const UniqueFd plain(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd listener = Listen("127.0.0.1");
  EXPECT_THAT(ListeningSockets(), Contains(Key(listener.get())));
  EXPECT_THAT(ListeningSockets(), Not(Contains(Key(plain.get()))));
}

}  // namespace
}  // namespace syncopate::transport::net
