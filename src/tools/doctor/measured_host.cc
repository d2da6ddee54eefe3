#include "tools/doctor/measured_host.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/parse.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "train/data/load.h"

namespace syncopate::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kFileBytesMax = 64 << 10;
constexpr size_t kTextBytesMax = 1024;
constexpr int kVersion = 1;
constexpr int kCoresMax = 1 << 20;
constexpr double kBandwidthMax = 1e15;  // bytes/s
constexpr double kHandoverMax = 1;      // seconds
constexpr uint64_t kCacheBytesMax = uint64_t{1} << 40;

absl::Status CheckPositive(absl::string_view name, double value, double max) {
  if (std::isfinite(value) && value > 0 && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", value, " is not a number above 0 and up to ", max));
}

// The value of a field of the right kind; an error names the field.
template <typename T>
absl::Status Read(const Json& json, const char* name, T& value) {
  const auto found = json.find(name);
  if (found == json.end()) return absl::InvalidArgumentError(absl::StrCat(name, " is missing"));
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return absl::InvalidArgumentError(absl::StrCat(name, " is no text"));
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is neither true nor false"));
    }
  } else if constexpr (std::is_integral_v<T>) {
    if (!found->is_number_unsigned()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is no whole number"));
    }
  } else if (!found->is_number()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no number"));
  }
  value = found->get<T>();
  return absl::OkStatus();
}

}  // namespace

std::string DescribeMachine(const SystemRoot& root, int cores) {
  // In whole GiB: what the kernel keeps for itself changes from version to version.
  const double memory = static_cast<double>(MemInfoBytes(root, "MemTotal").value_or(0));
  return absl::StrCat(ProcessorName(root), ", ", cores, cores == 1 ? " core" : " cores", ", ",
                      std::llround(memory / (1 << 30)), " GiB");
}

absl::Status Validate(const MeasuredHost& host) {
  if (host.machine.empty() || host.machine.size() > kTextBytesMax) {
    return absl::InvalidArgumentError("machine: it has no name, or one that is too long");
  }
  if (host.date.empty() || host.date.size() > kTextBytesMax) {
    return absl::InvalidArgumentError("date: there is none, or one that is too long");
  }
  const HostCosts& costs = host.costs;
  if (costs.cores < 1 || costs.cores > kCoresMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("cores: ", costs.cores, " is no number of them"));
  }
  if (costs.cache_bytes > kCacheBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("cache_bytes: ", costs.cache_bytes, " is too large"));
  }
  SYNCOPATE_RETURN_IF_ERROR(
      CheckPositive("memory_bandwidth", costs.memory_bandwidth, kBandwidthMax));
  SYNCOPATE_RETURN_IF_ERROR(
      CheckPositive("cached_bandwidth", costs.cached_bandwidth, kBandwidthMax));
  SYNCOPATE_RETURN_IF_ERROR(CheckPositive("handover", costs.handover, kHandoverMax));
  return CheckPositive("handover_oversubscribed", costs.handover_oversubscribed, kHandoverMax);
}

std::string ToJson(const MeasuredHost& host) {
  const Json json = {{"version", kVersion},
                     {"machine", host.machine},
                     {"date", host.date},
                     {"busy", host.busy},
                     {"cores", host.costs.cores},
                     {"memory_bandwidth", host.costs.memory_bandwidth},
                     {"cached_bandwidth", host.costs.cached_bandwidth},
                     {"cache_bytes", host.costs.cache_bytes},
                     {"handover", host.costs.handover},
                     {"handover_oversubscribed", host.costs.handover_oversubscribed}};
  return json.dump(1) + "\n";
}

absl::StatusOr<MeasuredHost> ParseMeasuredHost(absl::string_view json) {
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return absl::InvalidArgumentError("it is no JSON object");
  uint64_t version = 0, cores = 0;
  MeasuredHost host;
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "version", version));
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("version ", version, " is not ", kVersion));
  }
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "machine", host.machine));
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "date", host.date));
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "busy", host.busy));
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "cores", cores));
  if (cores > kCoresMax) return absl::InvalidArgumentError("cores: there are too many");
  host.costs.cores = static_cast<int>(cores);
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "memory_bandwidth", host.costs.memory_bandwidth));
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "cached_bandwidth", host.costs.cached_bandwidth));
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "cache_bytes", host.costs.cache_bytes));
  SYNCOPATE_RETURN_IF_ERROR(Read(parsed, "handover", host.costs.handover));
  SYNCOPATE_RETURN_IF_ERROR(
      Read(parsed, "handover_oversubscribed", host.costs.handover_oversubscribed));
  SYNCOPATE_RETURN_IF_ERROR(Validate(host));
  return host;
}

absl::StatusOr<std::string> MeasuredHostFile(const Environment& environment,
                                             absl::string_view machine) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string folder, train::CacheFolder(environment));
  return absl::StrCat(folder, "/host-", DigestOf(machine).ToString().substr(0, 16), ".json");
}

absl::StatusOr<bool> SaveMeasuredHost(const Environment& environment, const MeasuredHost& host) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(host));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, MeasuredHostFile(environment, host.machine));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  const std::optional<MeasuredHost> before = LoadMeasuredHost(environment, host.machine);
  if (host.busy && before && !before->busy) return false;
  SYNCOPATE_RETURN_IF_ERROR(WriteFile(path, ToJson(host)));
  return true;
}

std::optional<MeasuredHost> LoadMeasuredHost(const Environment& environment,
                                             absl::string_view machine) {
  const absl::StatusOr<std::string> path = MeasuredHostFile(environment, machine);
  const absl::StatusOr<std::string> text =
      path.ok() ? ReadFile(*path, kFileBytesMax) : path.status();
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<MeasuredHost> host = ParseMeasuredHost(*text);
  if (!host.ok() || host->machine != machine) return std::nullopt;
  return *std::move(host);
}

}  // namespace syncopate::tools
