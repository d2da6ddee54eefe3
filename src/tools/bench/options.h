// What a user asks of `syncopate bench`, from the text of the flags to checked values.
#ifndef SYNCOPATE_TOOLS_BENCH_OPTIONS_H_
#define SYNCOPATE_TOOLS_BENCH_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "syncopate/collective.h"
#include "syncopate/data_type.h"

namespace syncopate::bench {

// The contestants' names, as users write and read them.
inline constexpr const char* kOurs = "syncopate";
inline constexpr const char* kOpenMpi = "openmpi";
inline constexpr const char* kOpenMpiUcx = "openmpi-ucx";
inline constexpr const char* kMpich = "mpich";
inline constexpr const char* kGloo = "gloo";
inline constexpr const char* kMemoryLimit = "memory-limit";

// The flags as typed; the values here are the defaults.
struct BenchFlags {
  std::string collective;
  std::string workers = "4";
  std::string bytes_min = "4K";
  std::string bytes_max = "100M";
  std::string factor = "4";
  std::string type = "float32";
  std::string op = "sum";
  std::string iterations;  // empty: chosen by time
  std::string warmup;      // empty: a tenth of the iterations
  std::string check = "1";
  std::string rounds = "5";
  std::string against;  // comma-separated
  std::string algorithm;
  std::string gloo_algorithm;
  std::string memory = "arena";
  std::string timeout = "60s";
  std::string drivers;  // folder; empty: beside the command
  bool memory_limit = true;
  bool peers_only = false;
  bool json = false;
};

struct BenchOptions {
  Collective collective = Collective::kAllReduce;
  int workers = 4;
  std::vector<uint64_t> sizes;  // bytes, rising; {0} for a barrier
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::optional<int64_t> iterations;
  std::optional<int64_t> warmup;
  int64_t check = 1;
  int rounds = 5;
  std::vector<std::string> contestants;  // ours first unless peers only; no repeats
  std::string algorithm;
  std::string gloo_algorithm;
  std::string memory;
  absl::Duration timeout;
  std::string drivers;
  bool json = false;
};

// Errors quote the flag and say what it takes.
absl::StatusOr<BenchOptions> ReadFlags(const BenchFlags& flags);

// The sizes from `min` by `factor` up to `max`, and `max` itself, each rounded down to a multiple
// of `unit` (at least one unit), without repeats.
std::vector<uint64_t> SizesBetween(uint64_t min, uint64_t max, double factor, uint64_t unit);

}  // namespace syncopate::bench

#endif  // SYNCOPATE_TOOLS_BENCH_OPTIONS_H_
