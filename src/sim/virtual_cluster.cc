#include "sim/virtual_cluster.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "sim/cluster.h"

namespace syncopate::sim {
namespace {

// A number in [-1, 1) that depends on all of these.
double Noise(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  Random random(seed ^ (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xc2b2ae3d27d4eb4fu ^
                (c + 1) * 0x165667b19e3779f9u);
  random.Next();
  return 2 * random.Unit() - 1;
}

// Memory for real gradients: this many numbers a worker.
constexpr uint64_t kRealElementsMax = uint64_t{1} << 24;

absl::Status CheckBuckets(const VirtualOptions& options) {
  std::set<int> known;
  for (const CapacityBucket& each : options.buckets) {
    const bool is_capacity =
        options.topology != nullptr && each.capacity >= 0 &&
        static_cast<size_t>(each.capacity) < options.topology->capacities.size();
    if (is_capacity && known.insert(each.capacity).second && each.burst > 0 &&
        each.line_rate >=
            options.topology->capacities[static_cast<size_t>(each.capacity)].bandwidth) {
      continue;
    }
    return absl::InvalidArgumentError(
        "a token bucket is of a capacity of the topology, the only one there, has a burst, and "
        "lets no less through than the capacity's bandwidth");
  }
  return absl::OkStatus();
}

absl::Status CheckNetwork(const VirtualOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(CheckBuckets(options));
  if (options.topology == nullptr) return absl::OkStatus();
  SYNCOPATE_RETURN_IF_ERROR(Validate(*options.topology));
  const std::vector<int> devices = Devices(*options.topology);
  const std::set<int> known(devices.begin(), devices.end());
  if (options.placement.size() != static_cast<size_t>(options.workers) ||
      !std::all_of(options.placement.begin(), options.placement.end(),
                   [&](int device) { return known.contains(device); })) {
    return absl::InvalidArgumentError("on a topology every worker needs a device of it");
  }
  if (options.planned != nullptr && options.planned->program.workers != options.workers) {
    return absl::InvalidArgumentError("the planned average is not one of all workers");
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const VirtualOptions& options) {
  uint64_t numbers = static_cast<uint64_t>(options.table.size());
  if (options.gradients) {
    if (options.table.elements() > kRealElementsMax) {
      return absl::InvalidArgumentError("a model of so many elements has no real gradients here");
    }
    numbers = options.table.elements();
  }
  if (!options.first_parameters.empty() && options.first_parameters.size() != numbers) {
    return absl::InvalidArgumentError("first parameters are all numbers of a worker, or none");
  }
  return absl::OkStatus();
}

absl::Status CheckWorkers(const VirtualOptions& options) {
  const size_t workers = static_cast<size_t>(options.workers);
  const auto fits = [&](const auto& list) { return list.empty() || list.size() == workers; };
  if (options.workers < 1 || options.iterations < 1 || !fits(options.slowness) ||
      !fits(options.samples) || !fits(options.witnesses) || !fits(options.roles) ||
      !(options.compute.size() == 1 || fits(options.compute))) {
    return absl::InvalidArgumentError(
        "a virtual run needs workers, iterations, and slowness, samples, compute lines, roles and "
        "witnesses for each worker or none");
  }
  std::set<int> joining;
  bool ranks = true;
  const auto is_rank = [&](int rank) { return 0 <= rank && rank < options.workers; };
  for (const auto& join : options.joins) {
    ranks = ranks && is_rank(join.rank) && joining.insert(join.rank).second;
  }
  for (const auto& departure : options.departures) ranks = ranks && is_rank(departure.rank);
  for (const auto& change : options.slowdowns) ranks = ranks && is_rank(change.rank);
  if (options.make_service && options.workers > limits::kWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat("a job has at most ", limits::kWorkersMax,
                                                   " workers, and its service knows no others"));
  }
  bool trains = false;  // somebody, from the beginning
  for (int rank = 0; rank < options.workers; ++rank) {
    trains = trains || (options.Trains(rank) && !joining.contains(rank));
  }
  if (!ranks || !trains) {
    return absl::InvalidArgumentError(
        "who joins, goes or becomes slow is a rank, joins once, and somebody is there before, to "
        "train");
  }
  for (const auto& join : options.joins) {
    if (options.Trains(join.rank)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", join.rank, " serves, and cannot join"));
  }
  for (const auto& departure : options.departures) {
    if (options.Trains(departure.rank) || !departure.in_good_order) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", departure.rank, " serves, and cannot leave"));
  }
  return absl::OkStatus();
}

}  // namespace

double GradientOf(uint64_t seed, int rank, int64_t iteration, int tensor) {
  return Noise(seed, static_cast<uint64_t>(rank), static_cast<uint64_t>(iteration),
               static_cast<uint64_t>(tensor));
}

double FirstParameter(uint64_t seed, int tensor) {
  return Noise(~seed, 0, 0, static_cast<uint64_t>(tensor));
}

absl::StatusOr<VirtualResult> RunVirtually(const VirtualOptions& options,
                                           const StrategyFactory& make) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(options.table));
  SYNCOPATE_RETURN_IF_ERROR(Validate(options.costs));
  SYNCOPATE_RETURN_IF_ERROR(CheckWorkers(options));
  SYNCOPATE_RETURN_IF_ERROR(CheckNumbers(options));
  SYNCOPATE_RETURN_IF_ERROR(CheckNetwork(options));
  return Cluster(options, make).Run();
}

}  // namespace syncopate::sim
