#include "train/data/package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/parse.h"
#include "train/data/package_testing.h"

namespace syncopate::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

bool Everything(absl::string_view) { return true; }

// Tests may run at once.
std::string TemporaryPath(const std::string& name) {
  return ::testing::TempDir() + std::to_string(getpid()) + "-" + name;
}

TEST(PackageTest, GivesTheFilesThatAreWanted) {
  const std::string path = TemporaryPath("wanted.tgz");
  testing::WriteGzip(path, testing::Tar({{"a/one", "1"}, {"a/two", std::string(1000, 'x')}}));
  const auto files = ReadPackage(path, [](absl::string_view name) { return name == "a/two"; });
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(Pair("a/two", std::string(1000, 'x'))));
  EXPECT_FALSE(FileOf(*files, "a/one").ok());
}

TEST(PackageTest, RefusesArchivesThatEndEarly) {
  const std::string tar = testing::Tar({{"one", std::string(2000, 'x')}});
  const std::string path = TemporaryPath("early.tgz");
  for (const size_t bytes : {0, 100, 512, 700, 2560}) {
    testing::WriteGzip(path, tar.substr(0, bytes));
    EXPECT_EQ(ReadPackage(path, Everything).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
}

TEST(PackageTest, RefusesADamagedHeader) {
  std::string tar = testing::Tar({{"one", "1"}});
  tar[3] ^= 1;  // in a name
  const std::string path = TemporaryPath("header.tgz");
  testing::WriteGzip(path, tar);
  const auto files = ReadPackage(path, Everything);
  EXPECT_THAT(files.status().message(), HasSubstr("wrong sum"));
}

TEST(PackageTest, RefusesALengthBeforeItAllocates) {
  std::string tar = testing::Tar({{"one", "1"}});
  tar.replace(124, 11, "77777777777");  // 8 GiB
  tar.replace(148, 8, "        ");
  uint64_t sum = 0;
  for (const char c : tar.substr(0, 512)) sum += static_cast<unsigned char>(c);
  tar.replace(148, 6, absl::StrFormat("%06o", sum));
  tar[154] = '\0';
  const std::string path = TemporaryPath("length.tgz");
  testing::WriteGzip(path, tar);
  EXPECT_THAT(ReadPackage(path, Everything).status().message(), HasSubstr("larger than expected"));
}

TEST(PackageTest, RefusesDamagedCompression) {
  const std::string path = TemporaryPath("gzip.tgz");
  testing::WriteGzip(path, testing::Tar({{"one", "1"}}));
  std::string bytes = *ReadFile(path, 1 << 20);
  bytes[bytes.size() / 2] ^= 0x55;
  ASSERT_TRUE(WriteFile(path, bytes).ok());
  EXPECT_EQ(ReadPackage(path, Everything).status().code(), absl::StatusCode::kDataLoss);
}

TEST(PackageTest, Sha512IsTheStandardOne) {
  const std::string path = TemporaryPath("abc");
  ASSERT_TRUE(WriteFile(path, "abc").ok());
  // FIPS 180-2, C.1
  EXPECT_EQ(*Sha512OfFile(path),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

}  // namespace
}  // namespace syncopate::train
