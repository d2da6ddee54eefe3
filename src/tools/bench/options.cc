#include "tools/bench/options.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/lab.h"
#include "tools/bench/protocol.h"

namespace syncopate::tools::bench {
namespace {

constexpr int64_t kRoundsMax = 1000;
constexpr double kFactorMax = 1 << 20;

// The contestants that a word of --against stands for.
absl::StatusOr<std::vector<std::string>> PeersOf(absl::string_view word) {
  if (word == "openmpi") return std::vector<std::string>{kOpenMpi, kOpenMpiUcx};
  if (word == "all") return std::vector<std::string>{kOpenMpi, kOpenMpiUcx, kMpich, kGloo};
  for (const char* name : {kOpenMpiUcx, kMpich, kGloo, kMemoryLimit}) {
    if (word == name) return std::vector<std::string>{name};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is not a peer; choose from openmpi, mpich, gloo, all, or name ",
                   "another build of ours as NAME=FOLDER, where FOLDER holds bench_syncopate"));
}

// The contestants that a word of --against stands for in a lab, where the workers are on several
// hosts.
absl::StatusOr<std::vector<std::string>> LabPeersOf(absl::string_view word) {
  if (word == "openmpi") return std::vector<std::string>{kOpenMpi, kOpenMpiRing};
  if (word == "all") return std::vector<std::string>{kOpenMpi, kOpenMpiRing, kOpenMpiUcx, kGloo};
  for (const char* name : {kOpenMpiRing, kOpenMpiUcx, kGloo}) {
    if (word == name) return std::vector<std::string>{name};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", word, "\" is not a peer in a lab; choose from openmpi, openmpi-ucx, gloo, all"));
}

// "before=/builds/old/peers": another build of ours, to compare with this one.
absl::Status AddBuild(absl::string_view word, std::map<std::string, std::string>& builds) {
  const std::pair<std::string, std::string> build = absl::StrSplit(word, absl::MaxSplits('=', 1));
  const bool named =
      !build.first.empty() &&
      build.first.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!named || build.second.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", word, "\": a build of ours is NAME=FOLDER, the name of a-z, 0-9 and hyphens"));
  }
  for (const char* taken :
       {kOurs, kOpenMpi, kOpenMpiRing, kOpenMpiUcx, kMpich, kGloo, kMemoryLimit}) {
    if (build.first == taken) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\": ", taken, " is the name of another contestant"));
    }
  }
  if (!builds.insert(build).second) {
    return absl::InvalidArgumentError(absl::StrCat("\"", word, "\": that name stands there twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ContestantsOf(const BenchFlags& flags,
                                                       std::map<std::string, std::string>& builds) {
  std::vector<std::string> contestants;
  if (!flags.peers_only) contestants.push_back(kOurs);
  if (flags.against.empty()) {
    if (flags.peers_only) {
      return absl::InvalidArgumentError("--peers-only needs --against, say --against openmpi,gloo");
    }
    return contestants;
  }
  for (absl::string_view word : absl::StrSplit(flags.against, ',')) {
    if (absl::StrContains(word, '=')) {
      if (absl::Status added = AddBuild(word, builds); !added.ok()) return At("--against", added);
      contestants.emplace_back(word.substr(0, word.find('=')));
      continue;
    }
    absl::StatusOr<std::vector<std::string>> peers =
        flags.lab.empty() ? PeersOf(word) : LabPeersOf(word);
    if (!peers.ok()) return At("--against", peers.status());
    for (std::string& peer : *peers) {
      if (std::find(contestants.begin(), contestants.end(), peer) == contestants.end()) {
        contestants.push_back(std::move(peer));
      }
    }
  }
  const bool named =
      std::find(contestants.begin(), contestants.end(), kMemoryLimit) != contestants.end();
  const bool takes_part = flags.lab.empty() && flags.active.empty();
  if (flags.memory_limit && !named && takes_part) contestants.push_back(kMemoryLimit);
  return contestants;
}

// `value` with the flag's name before the error's message.
template <typename T>
absl::StatusOr<T> Flag(absl::string_view flag, absl::StatusOr<T> value) {
  if (!value.ok()) return At(flag, value.status());
  return value;
}

// How many workers, and in a lab on which hosts.
absl::Status ReadWorkers(const BenchFlags& flags, int lab_hosts, BenchOptions& options) {
  const bool in_lab = !flags.lab.empty();
  if (!in_lab && (!flags.slots.empty() || !flags.topology.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(flags.slots.empty() ? "--topology" : "--slots",
                                                   " is of a lab; name its file with --lab"));
  }
  if (!flags.workers.empty() && !flags.slots.empty()) {
    return absl::InvalidArgumentError("give either -n (workers in all) or --slots (on each host)");
  }
  int64_t workers = in_lab ? 0 : kWorkersDefault;
  int64_t slots = 1;
  if (!flags.workers.empty()) {
    const int64_t max = limits::kLocalWorkersMax * std::max<int64_t>(1, lab_hosts);
    SYNCOPATE_ASSIGN_OR_RETURN(
        workers,
        Flag("-n", ParseInt(flags.workers, 1, std::min<int64_t>(max, limits::kWorkersMax))));
  }
  if (!flags.slots.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(slots,
                               Flag("--slots", ParseInt(flags.slots, 1, limits::kLocalWorkersMax)));
  }
  options.workers = static_cast<int>(workers);
  if (!in_lab) return absl::OkStatus();
  options.slots = lab::SpreadSlots(lab_hosts, options.workers, static_cast<int>(slots));
  options.workers = std::accumulate(options.slots.begin(), options.slots.end(), 0);
  options.topology = flags.topology.empty() ? kTopologyDeclared : flags.topology;
  return absl::OkStatus();
}

absl::Status ReadActive(const BenchFlags& flags, BenchOptions& options) {
  if (flags.active.empty()) return absl::OkStatus();
  if (options.collective != Collective::kAllReduce) {
    return absl::InvalidArgumentError("--active is of allreduce only");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(options.active,
                             Flag("--active", ParseRanks(flags.active, options.workers)));
  if (options.active_workers() == options.workers) options.active.clear();
  return absl::OkStatus();
}

absl::Status ReadCounts(const BenchFlags& flags, BenchOptions& options) {
  if (!flags.iterations.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.iterations,
                               Flag("--iters", ParseInt(flags.iterations, 1, kIterationsMax)));
  }
  if (!flags.warmup.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.warmup,
                               Flag("-w", ParseInt(flags.warmup, 0, kIterationsMax)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(options.check, Flag("-c", ParseInt(flags.check, 0, kCheckedCallsMax)));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t rounds,
                             Flag("--rounds", ParseInt(flags.rounds, 1, kRoundsMax)));
  options.rounds = static_cast<int>(rounds);
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t timeout_ns,
                             Flag("--timeout", ParseDurationNs(flags.timeout)));
  options.timeout = absl::Nanoseconds(timeout_ns);
  return absl::OkStatus();
}

absl::Status ReadSizes(const BenchFlags& flags, BenchOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t min,
                             Flag("-b", ParseBytes(flags.bytes_min, kBufferBytesMax)));
  SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t max,
                             Flag("-e", ParseBytes(flags.bytes_max, kBufferBytesMax)));
  SYNCOPATE_ASSIGN_OR_RETURN(const double factor,
                             Flag("-f", ParseDouble(flags.factor, 1.01, kFactorMax)));
  if (min == 0) return absl::InvalidArgumentError("-b: a buffer has at least one byte");
  if (min > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("-b ", flags.bytes_min, " is more than -e ", flags.bytes_max));
  }
  const uint64_t blocks = HasBlocks(options.collective) ? options.workers : 1;
  options.sizes = SizesBetween(min, max, factor, SizeOf(options.type) * blocks);
  if (options.collective == Collective::kBarrier) options.sizes = {0};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchOptions> ReadFlags(const BenchFlags& flags, int lab_hosts) {
  BenchOptions options;
  // nccl-tests and MPI users say sendrecv.
  if (flags.collective.empty()) {
    return absl::InvalidArgumentError(
        "bench what? A collective such as allreduce, or train; syncopate bench --help shows all");
  }
  const std::string collective = flags.collective == "sendrecv" ? "sendreceive" : flags.collective;
  SYNCOPATE_ASSIGN_OR_RETURN(options.collective, ParseCollective(collective));
  SYNCOPATE_ASSIGN_OR_RETURN(options.type, Flag("-d", ParseDataType(flags.type)));
  SYNCOPATE_ASSIGN_OR_RETURN(options.op, Flag("-o", ParseReduceOp(flags.op)));
  if (options.op == ReduceOp::kWeightedAverage && !IsFloating(options.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o wavg needs a floating type, not ", Name(options.type)));
  }
  SYNCOPATE_RETURN_IF_ERROR(ReadWorkers(flags, lab_hosts, options));
  SYNCOPATE_RETURN_IF_ERROR(ReadActive(flags, options));
  SYNCOPATE_RETURN_IF_ERROR(ReadCounts(flags, options));
  SYNCOPATE_RETURN_IF_ERROR(ReadSizes(flags, options));
  if (options.collective == Collective::kSendReceive && options.workers < 2) {
    return absl::InvalidArgumentError("-n: sendrecv needs at least 2 workers");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(options.contestants, ContestantsOf(flags, options.builds));
  if (flags.memory != "arena" && flags.memory != "heap") {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory: \"", flags.memory, "\" is neither arena nor heap"));
  }
  options.memory = flags.memory;
  options.algorithm = flags.algorithm;
  options.gloo_algorithm = flags.gloo_algorithm;
  options.drivers = flags.drivers;
  options.json = flags.json;
  return options;
}

std::vector<uint64_t> SizesBetween(uint64_t min, uint64_t max, double factor, uint64_t unit) {
  std::vector<uint64_t> sizes;
  const auto add = [&](uint64_t bytes) {
    bytes = std::max(unit, bytes / unit * unit);
    if (sizes.empty() || bytes > sizes.back()) sizes.push_back(bytes);
  };
  for (double bytes = static_cast<double>(min); bytes < static_cast<double>(max); bytes *= factor) {
    add(static_cast<uint64_t>(bytes));
  }
  add(max);
  return sizes;
}

}  // namespace syncopate::tools::bench
