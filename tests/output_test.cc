// What commands print must arrive: a full disk is one line and exit code 1, not a good end.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OutputTest : public ::testing::Test {
 protected:
  void MakeRun(const std::string& path) {
    std::filesystem::create_directories(folder_ + "/" + path);
    std::ofstream(folder_ + "/" + path + "/metrics.jsonl")
        << R"({"kind":"train","iteration":1,"seconds":0.5,"loss":2})"
        << "\n";
  }

  // `syncopate WORDS...`, in the test's folder.
  std::vector<std::string> Command(std::vector<std::string> words) {
    words.insert(words.begin(), SYNCOPATE_BINARY);
    return words;
  }
  Subprocess::Options Here() {
    return {.before_exec = [this] { (void)!chdir(folder_.c_str()); }};
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(OutputTest, AFullDiskIsAFailure) {
  MakeRun("runs/first");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"report", "first"}, "syncopate report: "},
      {{"report", "first", "--json"}, "syncopate report: "},
      {{"plan", "-n", "4", "--bytes", "1M", "--explain"}, "syncopate plan: "},
      {{"plan", "--help"}, "syncopate plan: "},
      {{"doctor", "--json"}, "syncopate doctor: "},
      {{"lab", "--help"}, "syncopate lab: "},
      {{"--version"}, "syncopate: "},
      {{}, "syncopate: "},
  };
  for (const auto& [words, command] : cases) {
    Subprocess::Options options;
    options.before_exec = [this] {
      (void)!chdir(folder_.c_str());
      dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    };
    Subprocess process(Command(words), options);
    EXPECT_EQ(process.Wait(), 1) << absl::StrJoin(words, " ");
    EXPECT_EQ(process.err(),
              std::string(command) + "cannot write to standard output; is its disk full?\n");
  }
}

TEST_F(OutputTest, ARunThatIsNotThereIsAnsweredWithThoseThatAre) {
  Subprocess none(Command({"report", "nosuch"}), Here());
  EXPECT_EQ(none.Wait(), 2);
  EXPECT_EQ(none.err(),
            "syncopate report: there is no run \"nosuch\": runs/nosuch is not a folder; there are "
            "none in runs/ yet; syncopate train --run NAME leaves one there\n");
  MakeRun("runs/older");
  MakeRun("runs/newer");
  std::filesystem::create_directories(folder_ + "/runs/no-run");
  std::filesystem::last_write_time(
      folder_ + "/runs/older/metrics.jsonl",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  Subprocess other(Command({"report", "nosuch"}), Here());
  EXPECT_EQ(other.Wait(), 2);
  EXPECT_THAT(other.err(), AllOf(HasSubstr("runs/nosuch is not a folder; runs/ has newer, older\n"),
                                 Not(HasSubstr("no-run"))));
  EXPECT_EQ(other.out(), "");
}

}  // namespace
}  // namespace syncopate::testing
