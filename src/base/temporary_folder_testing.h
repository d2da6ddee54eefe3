// For tests: a folder that goes with the object, and all that is in it.
#ifndef SYNCOPATE_BASE_TEMPORARY_FOLDER_TESTING_H_
#define SYNCOPATE_BASE_TEMPORARY_FOLDER_TESTING_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace syncopate {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(::testing::TempDir() + "syncopate-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_TEMPORARY_FOLDER_TESTING_H_
