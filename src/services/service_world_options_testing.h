// What a seed decides about the job of service_world_testing.h: how many workers, and which faults meet them.
#ifndef SYNCOPATE_SERVICES_SERVICE_WORLD_OPTIONS_TESTING_H_
#define SYNCOPATE_SERVICES_SERVICE_WORLD_OPTIONS_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace syncopate::services {

// A fault meets the worker that has a role in a request, whoever sends the message: before or after any worker
// sends one of a name, the `times`-th time that there is such a worker.
struct WorldFault {
  std::string kind;  // "death", "expulsion" (it runs on for a while), "leave"
  std::string role;  // "host", "standby", "asker"
  std::string
      message;  // "request", "event", "ack", "answer", "state": the steps of a request, and of a takeover
  bool after = false;
  int times = 1;

  std::string Name() const {
    return absl::StrCat(kind, " of ", role, after ? " after " : " before ", message);
  }
};

struct WorldOptions {
  uint64_t seed = 0;
  int workers = 4;
  int servers = 0;  // of them, the last ranks: they ask, and never host
  int joiners = 0;
  uint64_t samples = 40;  // of an epoch
  uint64_t epochs = 2;
  bool counter_rebuilds = true;
  double bad_digests = 0;  // the chance that a worker computes another digest
  std::vector<WorldFault> faults;
};

inline WorldOptions DrawWorld(uint64_t seed) {
  Random random(seed * 2 + 1);
  WorldOptions options = {.seed = seed, .faults = {}};
  options.workers = static_cast<int>(random.Between(2, 6));
  options.servers = options.workers > 2 && random.Below(4) == 0 ? 1 : 0;
  options.joiners = random.Below(5) == 0 ? 1 : 0;
  options.samples = static_cast<uint64_t>(random.Between(20, 60));
  options.counter_rebuilds = random.Below(4) != 0;
  options.bad_digests = random.Below(4) == 0 ? 0.2 : 0;
  const int candidates = options.workers - options.servers;
  // One that may host always stays.
  const int faults = static_cast<int>(random.Below(static_cast<uint64_t>(std::min(candidates, 4))));
  const std::vector<std::string> kinds = {"death", "death", "expulsion", "leave"};
  const std::vector<std::string> roles = {"host", "standby", "asker"};
  const std::vector<std::string> messages = {"request", "event", "ack", "answer", "state"};
  for (int i = 0; i < faults; ++i) {
    const std::string& role = roles[random.Below(roles.size())];
    const std::string& message = messages[random.Below(messages.size())];
    options.faults.push_back(
        {.kind = kinds[random.Below(kinds.size())],
         .role = role,
         .message = message,
         .after = random.Below(2) == 0,
         .times = static_cast<int>(message == "state" ? 1 : random.Between(1, 40))});
  }
  return options;
}

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_WORLD_OPTIONS_TESTING_H_
