#include "train/options/disk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::train {
namespace {

class DiskTest : public ::testing::Test {
 protected:
  ~DiskTest() override { std::filesystem::remove_all(root_); }
  Disk& disk_ = RealDisk();
  const std::string root_ = ::testing::TempDir() + "disk-" + std::to_string(getpid());
};

TEST_F(DiskTest, WhatIsWrittenCanBeReadListedAndRemoved) {
  const std::string folder = root_ + "/a/b";
  ASSERT_TRUE(disk_.MakeFolder(folder).ok());
  EXPECT_TRUE(disk_.MakeFolder(folder).ok()) << "it is there";
  ASSERT_TRUE(WriteDurably(folder + "/x", "one", disk_).ok());
  ASSERT_TRUE(WriteDurably(folder + "/x", "two", disk_).ok());
  EXPECT_EQ(*disk_.Read(folder + "/x", 100), "two");
  EXPECT_EQ(disk_.List(folder), std::vector<std::string>{"x"}) << "nothing stays beside it";
  EXPECT_FALSE(disk_.Read(folder + "/x", 2).ok()) << "it is longer than the limit";
  EXPECT_TRUE(absl::IsNotFound(disk_.Read(folder + "/y", 100).status()));
  EXPECT_TRUE(disk_.Remove(root_ + "/a").ok());
  EXPECT_TRUE(disk_.Remove(root_ + "/a").ok()) << "it may be gone";
  EXPECT_TRUE(disk_.List(folder).empty());
}

TEST_F(DiskTest, ErrorsNameThePath) {
  const std::string path = root_ + "/none/x";
  for (const absl::Status& status :
       {disk_.Write(path, "x"), disk_.Sync(path), disk_.Rename(path, path + "2"),
        WriteDurably(path, "x", disk_)}) {
    EXPECT_NE(status.message().find(path), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace syncopate::train
