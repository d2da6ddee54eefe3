#include "base/forked_child.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "gtest/gtest.h"

namespace syncopate {
namespace {

// The exit code of a forked child that runs `body`.
int InAChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool IsSocket(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

TEST(ForkedChildTest, AMarkTellsTheChildAndItsChildren) {
  const ForkMark mark;
  EXPECT_FALSE(mark.InChild());
  EXPECT_EQ(InAChild([&] {
              const bool told = mark.InChild() && !ForkMark().InChild();
              return told ? InAChild([&] { return mark.InChild() ? 7 : 1; }) : 2;
            }),
            7);
  EXPECT_FALSE(mark.InChild());
}

TEST(ForkedChildTest, PrivateDescriptorsAreNotInTheChildAndStayInTheParent) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  PrivateFd here{ends[0]};
  const UniqueFd there(ends[1]);
  EXPECT_EQ(InAChild([&] { return IsSocket(here.get()) ? 1 : IsSocket(there.get()) ? 7 : 2; }), 7);
  EXPECT_TRUE(IsSocket(here.get()));
  // In the child its number is taken, so that destroying it there closes nobody else's file.
  EXPECT_EQ(InAChild([&] {
              const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
              if (other == here.get()) return 1;
              here.Reset();
              return fcntl(other, F_GETFD) >= 0 ? 7 : 2;
            }),
            7);
  EXPECT_TRUE(IsSocket(here.get()));
}

TEST(ForkedChildTest, ANumberThatIsFreeAgainIsNotPrivate) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  PrivateFd first{ends[0]};
  PrivateFd moved = std::move(first);
  EXPECT_FALSE(first.ok());  // NOLINT: that is what moving leaves
  const int number = moved.get();
  moved = PrivateFd();
  const UniqueFd again(dup(ends[1]));
  ASSERT_EQ(again.get(), number);
  EXPECT_EQ(InAChild([&] { return IsSocket(again.get()) ? 7 : 1; }), 7);
  close(ends[1]);
}

}  // namespace
}  // namespace syncopate
