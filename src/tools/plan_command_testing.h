// For tests of `syncopate plan`: runs it and keeps what it says.
#ifndef SYNCOPATE_TOOLS_PLAN_COMMAND_TESTING_H_
#define SYNCOPATE_TOOLS_PLAN_COMMAND_TESTING_H_

#include <unistd.h>

#include <sstream>
#include <string>

#include "base/parse.h"
#include "gtest/gtest.h"
#include "tools/plan_command.h"

namespace syncopate::tools {

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline Result RunIt(const PlanArguments& arguments) {
  std::ostringstream out, err;
  Result result;
  result.exit_code = RunPlan(arguments, out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

inline PlanArguments OnHost(int workers, const std::string& bytes) {
  PlanArguments arguments;
  arguments.workers = workers;
  arguments.bytes = bytes;
  return arguments;
}

// A file that is gone when the test is over.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents, const std::string& suffix = "")
      : path_(::testing::TempDir() + "/plan_command_test_" + std::to_string(getpid()) + suffix) {
    EXPECT_TRUE(WriteFile(path_, contents).ok());
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_COMMAND_TESTING_H_
