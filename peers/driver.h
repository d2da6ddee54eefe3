// The part of a driver that is the same for all contestants: it obeys `syncopate bench` over the
// contestant's control socket, checks results and takes times. What differs (how a collective is
// called) is behind Contestant. docs/bench.md says what is measured.
#ifndef SYNCOPATE_PEERS_DRIVER_H_
#define SYNCOPATE_PEERS_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "pattern.h"
#include "tools/bench/protocol.h"

namespace syncopate::peers {

// What the command passes on the driver's command line.
struct DriverOptions {
  std::string directory;   // --dir: private; holds the control socket and what the contestant likes
  int workers = 1;         // --workers
  uint64_t bytes_max = 0;  // --bytes-max: no run will need a larger buffer
  std::string algorithm;   // --algorithm: as the contestant names them; empty: its own choice
  std::string memory;      // --memory: "arena" or "heap"
  absl::Duration timeout = absl::Minutes(1);  // --timeout: of every wait for another rank
  // --rank-from: each process is one rank, started by others on its host, and this environment
  // variable says which; empty: one process starts and makes the others.
  std::string rank_from;
};
absl::StatusOr<DriverOptions> ParseDriverOptions(int argc, const char* const* argv);

// One rank of a contestant. Its buffer is allocated, aligned and touched when it is made.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Where a call finds its data: bytes_max bytes.
  virtual std::byte* data() = 0;
  // Makes ready for calls as in `request`; Unimplemented if the contestant has no such call.
  virtual absl::Status Prepare(const tools::bench::RunRequest& request) = 0;
  // Whether this rank makes the calls of `request`. Peers have none for those that only relay,
  // which then sleep like the ranks of other contestants.
  virtual bool TakesPart(const tools::bench::RunRequest& request) const {
    return request.IsActive(rank());
  }
  // One call, in place if the contestant can. All ranks that take part do the same.
  virtual absl::Status Call() = 0;
  // Returns when all ranks that take part have called it.
  virtual absl::Status Barrier() = 0;
  // Where the last call left its result, and this rank's block of it.
  virtual const std::byte* result() { return data(); }
  virtual const std::byte* ResultBlock(uint64_t block_bytes) {
    return result() + static_cast<uint64_t>(rank()) * block_bytes;
  }
};

using ContestantFactory =
    std::function<absl::StatusOr<std::unique_ptr<Contestant>>(const DriverOptions& options)>;
// Makes one rank of a contestant whose ranks this program forks itself.
using ForkedFactory = std::function<absl::StatusOr<std::unique_ptr<Contestant>>(
    const DriverOptions& options, int rank)>;

// One run: the checked calls, then warm-up, then the timed calls. A sample is the time from the end
// of one call to the end of the next; where calls are TimedApart(), from the barrier before a call
// to its end.
absl::StatusOr<tools::bench::RankResult> Measure(Contestant& contestant,
                                                 const tools::bench::RunRequest& request,
                                                 const Clock& clock);

// The whole life of one rank; the program's exit code. Ends when told to, or when the command dies.
int RankMain(int argc, const char* const* argv, const ContestantFactory& factory);
// Forks into options.workers processes first, unless there is options.rank_from, this one being
// rank 0, and reaps them at the end. `before_fork` sees the options while there is only one
// process.
int ForkedMain(int argc, const char* const* argv, const ForkedFactory& factory,
               const std::function<absl::Status(const DriverOptions&)>& before_fork = nullptr);

// Ordinary memory: page-aligned, touched, never given back.
absl::StatusOr<std::byte*> TouchedMemory(uint64_t bytes);

}  // namespace syncopate::peers

#endif  // SYNCOPATE_PEERS_DRIVER_H_
