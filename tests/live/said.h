// What a worker writes to its standard error, in memory that stays when it is killed.
#ifndef SYNCOPATE_TESTS_LIVE_SAID_H_
#define SYNCOPATE_TESTS_LIVE_SAID_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace syncopate::live {

class Said {
 public:
  Said();
  // What a worker process calls: its standard error goes here from now on.
  void Capture() const;

  uint64_t bytes() const;  // so far; grows only, to 4 MiB at most
  std::string From(uint64_t offset) const;
  std::string All() const { return From(0); }

 private:
  UniqueFd file_;
};

// The longest pause of its sentry that a worker tells (transport/sentry_pause.h), in milliseconds.
int64_t PauseMsIn(absl::string_view said);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_SAID_H_
