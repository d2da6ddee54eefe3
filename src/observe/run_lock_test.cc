#include "observe/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder_testing.h"

namespace syncopate::observe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunLockTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(RunLockTest, OneRunAtATime) {
  auto first = RunLock::Take(Path("runs/a"));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RunLock::Take(Path("runs/a"));
  EXPECT_TRUE(absl::IsInvalidArgument(second.status()));
  EXPECT_THAT(second.status().message(),
              HasSubstr(absl::StrCat("run a is under way, pid ", getpid(), ";")));
  EXPECT_TRUE(RunLock::Take(Path("runs/b")).ok());
  { const RunLock moved = *std::move(first); }
  EXPECT_FALSE(std::filesystem::exists(Path("runs/a")));  // nothing was left in it
  EXPECT_TRUE(RunLock::Take(Path("runs/a")).ok());
}

TEST_F(RunLockTest, AFolderWithSomethingInItStays) {
  {
    const auto lock = RunLock::Take(Path("a"));
    ASSERT_TRUE(lock.ok());
    std::ofstream(Path("a/mine")) << "x";
  }
  EXPECT_TRUE(std::filesystem::exists(Path("a/mine")));
  EXPECT_FALSE(std::filesystem::exists(Path("a/run.lock")));
  std::filesystem::create_directory(Path("empty"));
  EXPECT_TRUE(RunLock::Take(Path("empty")).ok());
  EXPECT_TRUE(std::filesystem::exists(Path("empty")));  // it was there before
}

TEST_F(RunLockTest, TheLockOfADeadProcessBlocksNobody) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = RunLock::Take(Path("a"));
    (void)!write(ready[1], lock.ok() ? "y" : "n", 1);
    pause();
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  ASSERT_EQ(taken, 'y');
  EXPECT_THAT(RunLock::Take(Path("a")).status().message(), HasSubstr(absl::StrCat("pid ", child)));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(Path("a/run.lock")));
  EXPECT_TRUE(RunLock::Take(Path("a")).ok());
}

TEST_F(RunLockTest, NewFoldersNeverCollide) {
  std::filesystem::create_directories(Path("runs/cnn-2"));
  auto first = RunLock::TakeNew(Path("runs/cnn"));
  auto second = RunLock::TakeNew(Path("runs/cnn"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->path(), Path("runs/cnn-1"));
  EXPECT_EQ(second->path(), Path("runs/cnn-3"));
}

TEST_F(RunLockTest, WhatCannotBeAFolderIsRefused) {
  std::ofstream(Path("file")) << "x";
  for (const auto& status :
       {RunLock::Take(Path("file")).status(), RunLock::Take(Path("file/run")).status(),
        RunLock::TakeNew(Path("file/run")).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(Path("file")), HasSubstr("cannot")));
  }
}

}  // namespace
}  // namespace syncopate::observe
