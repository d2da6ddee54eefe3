// What a user asks of `syncopate bench`, from the text of the flags to checked values.
#ifndef SYNCOPATE_TOOLS_BENCH_OPTIONS_H_
#define SYNCOPATE_TOOLS_BENCH_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "syncopate/collective.h"
#include "syncopate/data_type.h"

namespace syncopate::tools::bench {

// The contestants' names, as users write and read them.
inline constexpr const char* kOurs = "syncopate";
inline constexpr const char* kOpenMpi = "openmpi";
inline constexpr const char* kOpenMpiUcx = "openmpi-ucx";
inline constexpr const char* kOpenMpiRing = "openmpi-ring";  // in a lab: its ring algorithm
inline constexpr const char* kMpich = "mpich";
inline constexpr const char* kGloo = "gloo";
inline constexpr const char* kMemoryLimit = "memory-limit";

// The flags as typed; the values here are the defaults.
struct BenchFlags {
  std::string collective;
  std::string workers;  // empty: kWorkersDefault, in a lab all slots of its hosts
  std::string bytes_min = "4K";
  std::string bytes_max = "100M";
  std::string factor = "4";
  std::string type = "float32";
  std::string op = "sum";
  std::string iterations;  // empty: chosen by time
  std::string warmup;      // empty: a tenth of the iterations
  std::string check = "1";
  std::string rounds = "5";
  std::string active;   // ranks as "0-3,6"; empty: all
  std::string against;  // comma-separated
  std::string algorithm;
  std::string gloo_algorithm;
  std::string memory = "arena";
  std::string timeout = "60s";
  std::string drivers;   // folder; empty: beside the command
  std::string lab;       // the file of a lab; empty: on this machine as it is
  std::string slots;     // in a lab: workers a host; empty: 1
  std::string topology;  // in a lab: what ours knows of it; empty: "declared"
  bool memory_limit = true;
  bool peers_only = false;
  bool json = false;
};

inline constexpr int kWorkersDefault = 4;

// What --gloo-algorithm takes beside the names of Gloo's algorithms.
inline constexpr const char* kGlooQuickest = "quickest";

// What --topology takes beside the name of a file.
inline constexpr const char* kTopologyDeclared = "declared";
inline constexpr const char* kTopologyProbe = "probe";
inline constexpr const char* kTopologyNone = "none";

struct BenchOptions {
  Collective collective = Collective::kAllReduce;
  int workers = kWorkersDefault;
  std::vector<uint64_t> sizes;  // bytes, rising; {0} for a barrier
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::optional<int64_t> iterations;
  std::optional<int64_t> warmup;
  int64_t check = 1;
  int rounds = 5;
  std::vector<int> active;               // the ranks whose data counts, rising; empty: all
  std::vector<std::string> contestants;  // ours first unless peers only; no repeats
  // Contestants that are other builds of ours: the folder with their driver, by name.
  std::map<std::string, std::string> builds;
  std::string algorithm;
  std::string gloo_algorithm;
  std::string memory;
  absl::Duration timeout;
  std::string drivers;
  bool json = false;
  // In a lab; else empty.
  std::vector<int> slots;  // workers on each of its hosts; they add up to `workers`
  std::string topology;

  bool in_lab() const { return !slots.empty(); }
  int active_workers() const { return active.empty() ? workers : static_cast<int>(active.size()); }
};

// `lab_hosts`: how many hosts of the lab that `flags` name run workers. Errors quote the flag and
// say what it takes.
absl::StatusOr<BenchOptions> ReadFlags(const BenchFlags& flags, int lab_hosts = 0);

// The sizes from `min` by `factor` up to `max`, and `max` itself, each rounded down to a multiple
// of `unit` (at least one unit), without repeats.
std::vector<uint64_t> SizesBetween(uint64_t min, uint64_t max, double factor, uint64_t unit);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_OPTIONS_H_
