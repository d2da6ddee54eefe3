#include "tools/bench/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder_testing.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

namespace fs = std::filesystem;

class WorkspaceTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string base_ = folder_.path();
};

TEST_F(WorkspaceTest, IsPrivateAndGoesWithItsContents) {
  std::string path;
  {
    auto workspace = Workspace::Make(base_);
    ASSERT_TRUE(workspace.ok()) << workspace.status();
    path = (*workspace)->path();
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    const auto folder = (*workspace)->MakeFolder("openmpi");
    ASSERT_TRUE(folder.ok());
    std::ofstream(*folder + "/log") << "words";
    EXPECT_FALSE((*workspace)->MakeFolder("openmpi").ok());
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(WorkspaceTest, RemovesWhatADeadBenchmarkLeftAndNothingElse) {
  const std::string dead = base_ + "/syncopate-bench-dead00";
  const std::string young = base_ + "/syncopate-bench-young0";  // its lock is not made yet
  const std::string other = base_ + "/something-else";
  for (const std::string& folder : {dead, young, other}) fs::create_directory(folder);
  std::ofstream(dead + "/lock") << "";
  std::ofstream(other + "/lock") << "";
  const auto living = Workspace::Make(base_);
  ASSERT_TRUE(living.ok());
  EXPECT_FALSE(fs::exists(dead));
  const auto next = Workspace::Make(base_);
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(fs::exists((*living)->path()));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(WorkspaceTest, SaysWhereItCannotBe) {
  const auto workspace = Workspace::Make(base_ + "/nowhere");
  ASSERT_FALSE(workspace.ok());
  EXPECT_NE(workspace.status().message().find("nowhere"), absl::string_view::npos);
}

}  // namespace
}  // namespace syncopate::tools::bench
