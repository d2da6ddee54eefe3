// What holds for every command that is interrupted: one line on standard error, the exit code
// 128 + signal, no process and no scratch file left.
#ifndef SYNCOPATE_TESTS_INTERRUPT_TESTING_H_
#define SYNCOPATE_TESTS_INTERRUPT_TESTING_H_

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {

// A command under way that is going to be interrupted.
class InterruptedCommand {
 public:
  explicit InterruptedCommand(const std::vector<std::string>& command)
      : folder_(MakeFolder()),
        process_(command,
                 {.environment = {absl::StrCat("MARK=", marker_), absl::StrCat("TMPDIR=", folder_),
                                  "SYNCOPATE_PROGRESS=off"},
                  // As a shell with a terminal does it.
                  .before_exec = [] { setpgid(0, 0); }}) {}
  ~InterruptedCommand() { std::filesystem::remove_all(folder_); }

  Subprocess& process() { return process_; }
  const std::string& marker() const { return marker_; }
  const std::string& folder() const { return folder_; }  // for its scratch files

  // To the command alone, or to its whole process group, as a terminal does it.
  void Interrupt(int signal, bool group) { kill(group ? -process_.pid() : process_.pid(), signal); }

  void ExpectCleanEnd(int signal, const ::testing::Matcher<std::string>& said) {
    EXPECT_EQ(process_.Wait(), 128 + signal) << process_.err();
    EXPECT_THAT(process_.err(), said);
    EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
    EXPECT_TRUE(std::filesystem::is_empty(folder_))
        << std::filesystem::directory_iterator(folder_)->path();
  }

 private:
  static std::string MakeFolder() {
    std::string pattern = ::testing::TempDir() + "interrupt-XXXXXX";
    return mkdtemp(pattern.data());
  }

  const std::string marker_ = UniqueMarker();
  const std::string folder_;
  Subprocess process_;
};

// Interrupts the command when it has that many processes, in both ways.
inline void ExpectCleanEndOnInterrupt(const std::vector<std::string>& command, size_t processes,
                                      const ::testing::Matcher<std::string>& said) {
  for (const bool group : {false, true}) {
    SCOPED_TRACE(group ? "the process group" : "the command alone");
    InterruptedCommand interrupted(command);
    ASSERT_TRUE(WaitForProcesses(interrupted.marker(), processes)) << interrupted.process().err();
    interrupted.Interrupt(SIGINT, group);
    interrupted.ExpectCleanEnd(SIGINT, said);
  }
}

}  // namespace syncopate::testing

#endif  // SYNCOPATE_TESTS_INTERRUPT_TESTING_H_
