#include "worker/known_network.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/cache_folder.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/processor_time.h"
#include "base/status.h"
#include "base/units.h"
#include "probe/infer.h"
#include "probe/live_oracle.h"
#include "probe/member.h"
#include "probe/shape.h"

namespace syncopate::worker {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> FileOf(const Environment& environment,
                                   const std::vector<std::string>& hosts) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string folder, CacheFolder(environment));
  return absl::StrCat(folder, "/network-", absl::Hex(DigestOf(absl::StrJoin(hosts, "\n")).low),
                      ".json");
}

std::string Age(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  if (error) return "some time";
  const double seconds =
      std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds >= 2 * kDay) return absl::StrFormat("%.0f days", seconds / kDay);
  if (seconds >= 2 * kHour) return absl::StrFormat("%.0f hours", seconds / kHour);
  if (seconds >= 2 * kMinute) return absl::StrFormat("%.0f minutes", seconds / kMinute);
  return absl::StrFormat("%.0f s", std::max(seconds, 0.0));
}

std::string Describe(const Topology& topology) {
  size_t hosts = 0;
  double slowest = 0, fastest = 0, uplink = 0;
  std::vector<std::string> racks;
  for (const Topology::Node& node : topology.nodes) {
    hosts += node.kind == NodeKind::kHost ? 1 : 0;
    if (node.kind == NodeKind::kDevice && !node.group.empty()) racks.push_back(node.group);
  }
  for (const Topology::Capacity& capacity : topology.capacities) {
    const std::string_view id = capacity.id;
    if (id.ends_with(".up") && (uplink == 0 || capacity.bandwidth < uplink)) {
      uplink = capacity.bandwidth;
    }
    if (!id.ends_with(".out")) continue;
    slowest = slowest == 0 ? capacity.bandwidth : std::min(slowest, capacity.bandwidth);
    fastest = std::max(fastest, capacity.bandwidth);
  }
  std::sort(racks.begin(), racks.end());
  racks.erase(std::unique(racks.begin(), racks.end()), racks.end());
  return absl::StrCat(
      hosts, " hosts", racks.size() > 1 ? absl::StrCat(" in ", racks.size(), " racks") : "",
      ", NICs ", FormatRate(slowest), " to ", FormatRate(fastest),
      uplink > 0 ? absl::StrCat(", the narrowest uplink ", FormatRate(uplink)) : "");
}

uint64_t ProbeGroupKey() { return DigestOf("probe at start").low | 1; }

}  // namespace

ProbeChoice ResolveProbe(const Environment& environment) {
  const std::string text = environment("SYNCOPATE_PROBE").value_or("");
  if (text.empty()) return {};
  if (text == "off") return {.mode = ProbeChoice::Mode::kOff};
  if (text == "start") return {.mode = ProbeChoice::Mode::kStart};
  return {.mode = ProbeChoice::Mode::kFile, .file = text};
}

std::string ProbeTerms(const ProbeChoice& choice) {
  return choice.mode == ProbeChoice::Mode::kStart ? "SYNCOPATE_PROBE=start" : "";
}

std::optional<KnownNetwork> LoadKnownNetwork(const Environment& environment,
                                             const std::vector<std::string>& hosts) {
  const absl::StatusOr<std::string> path = FileOf(environment, hosts);
  std::error_code error;
  if (!path.ok() || !fs::exists(*path, error)) return std::nullopt;
  absl::StatusOr<std::string> text = ReadFile(*path, limits::kTopologyTextBytesMax);
  absl::StatusOr<Topology> topology = text.ok() ? ParseTopology(*text) : text.status();
  if (topology.ok() && Devices(*topology).size() != hosts.size()) {
    topology = absl::InvalidArgumentError("it is of another number of workers");
  }
  if (!topology.ok()) {
    Log(LogLevel::kWarn,
        "what is kept of the network cannot be used: ", At(*path, topology.status()).message());
    return std::nullopt;
  }
  KnownNetwork known = {.topology = *std::move(topology), .reason = {}};
  known.reason = absl::StrCat("measured ", Age(*path), " ago: ", Describe(known.topology));
  return known;
}

absl::Status SaveKnownNetwork(const Environment& environment, const std::vector<std::string>& hosts,
                              const Topology& topology) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, FileOf(environment, hosts));
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  return WriteFile(path, ToJson(topology));
}

absl::StatusOr<std::optional<KnownNetwork>> ProbeAtStart(transport::Transport& transport,
                                                         const Clock& clock,
                                                         const Environment& environment,
                                                         const std::vector<std::string>& hosts) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::unique_ptr<probe::Member> member,
      probe::Member::Make(transport, clock,
                          {.host = hosts[static_cast<size_t>(transport.rank())],
                           .machine = hosts[static_cast<size_t>(transport.rank())],
                           .group_key = ProbeGroupKey(),
                           .processor_time = ReadProcessorTime}));
  if (transport.rank() != 0) {
    SYNCOPATE_RETURN_IF_ERROR(probe::ServeProbe(*member));
    return std::optional<KnownNetwork>();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<probe::LiveOracle> oracle,
                             probe::LiveOracle::Make(*member, clock));
  std::optional<KnownNetwork> known = LoadKnownNetwork(environment, hosts);
  if (!known) {
    probe::InferOptions options;
    options.budget_seconds = kProbeSeconds;
    SYNCOPATE_ASSIGN_OR_RETURN(const probe::Inference found, probe::InferNetwork(*oracle, options));
    known.emplace(KnownNetwork{.topology = probe::ToTopology(found.shape), .reason = {}});
    known->reason =
        absl::StrCat("measured in ", FormatSeconds(found.seconds), ": ", Describe(known->topology),
                     found.complete ? "" : "; the time was too short to be sure");
    const absl::Status saved =
        found.complete ? SaveKnownNetwork(environment, hosts, known->topology)
                       : absl::FailedPreconditionError("the next job may find out more");
    if (!saved.ok()) Log(LogLevel::kInfo, "the network is not kept: ", saved.message());
  }
  SYNCOPATE_RETURN_IF_ERROR(oracle->End());
  return known;
}

}  // namespace syncopate::worker
