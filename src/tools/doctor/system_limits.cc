#include "tools/doctor/system_limits.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace syncopate::tools {
namespace {

constexpr size_t kLimitFileBytesMax = 1 << 20;

// Files of the kernel have no size to check first, so reading stops at the limit.
std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLimitFileBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

template <typename T>
std::optional<T> Tightest(std::optional<T> a, std::optional<T> b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

// The folders of the control group that `controller` ("" in version 2) has this process in, and of
// all groups around it.
std::vector<std::string> CgroupFolders(const SystemRoot& root, absl::string_view controller) {
  std::vector<std::string> folders;
  const std::string groups = ReadSystemFile(absl::StrCat(root.path, "/proc/self/cgroup"));
  for (absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) {
      continue;
    }
    const std::string top =
        absl::StrCat(root.path, "/sys/fs/cgroup", controller.empty() ? "" : "/", fields[1]);
    std::string below(absl::StripSuffix(fields[2], "/"));
    while (true) {
      folders.push_back(absl::StrCat(top, below));
      if (below.empty()) break;
      const size_t slash = below.rfind('/');
      below.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return folders;
}

std::optional<double> Quotient(absl::string_view quota_text, absl::string_view period_text) {
  double quota = 0, period = 0;
  if (!absl::SimpleAtod(quota_text, &quota) || !absl::SimpleAtod(period_text, &period) ||
      quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

std::optional<uint64_t> MemoryLimit(const std::string& path) {
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes a number near 2^63
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(ReadSystemFile(path), &bytes) || bytes >= kNoLimit) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<double> CgroupCpus(const SystemRoot& root) {
  std::optional<double> cpus;
  for (const std::string& folder : CgroupFolders(root, "")) {
    const std::string text = ReadSystemFile(absl::StrCat(folder, "/cpu.max"));
    const std::vector<std::string> fields = absl::StrSplit(text, ' ');
    if (fields.size() == 2) cpus = Tightest(cpus, Quotient(fields[0], fields[1]));
  }
  for (const std::string& folder : CgroupFolders(root, "cpu")) {
    cpus = Tightest(cpus, Quotient(ReadSystemFile(absl::StrCat(folder, "/cpu.cfs_quota_us")),
                                   ReadSystemFile(absl::StrCat(folder, "/cpu.cfs_period_us"))));
  }
  return cpus;
}

std::optional<uint64_t> CgroupMemoryBytes(const SystemRoot& root) {
  std::optional<uint64_t> bytes;
  for (const std::string& folder : CgroupFolders(root, "")) {
    bytes = Tightest(bytes, MemoryLimit(absl::StrCat(folder, "/memory.max")));
  }
  for (const std::string& folder : CgroupFolders(root, "memory")) {
    bytes = Tightest(bytes, MemoryLimit(absl::StrCat(folder, "/memory.limit_in_bytes")));
  }
  return bytes;
}

std::optional<uint64_t> MemInfoBytes(const SystemRoot& root, absl::string_view name) {
  const std::string text = ReadSystemFile(absl::StrCat(root.path, "/proc/meminfo"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, absl::StrCat(name, ":"))) continue;
    absl::ConsumeSuffix(&line, "kB");
    uint64_t kib = 0;
    if (absl::SimpleAtoi(line, &kib)) return kib * 1024;
  }
  return std::nullopt;
}

std::vector<std::string> VectorExtensions(const SystemRoot& root) {
  constexpr std::pair<const char*, const char*> kKnown[] = {{"avx512_bf16", "AVX-512 BF16"},
                                                            {"avx512f", "AVX-512"},
                                                            {"avx2", "AVX2"},
                                                            {"f16c", "F16C"},
                                                            {"sve2", "SVE2"},
                                                            {"sve", "SVE"},
                                                            {"asimd", "NEON"}};
  const std::string text = ReadSystemFile(absl::StrCat(root.path, "/proc/cpuinfo"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(halves[0]);
    if (halves.size() != 2 || (key != "flags" && key != "Features")) continue;
    const std::vector<absl::string_view> flags = absl::StrSplit(halves[1], ' ');
    std::vector<std::string> extensions;
    for (const auto& [flag, name] : kKnown) {
      if (std::find(flags.begin(), flags.end(), flag) != flags.end()) extensions.push_back(name);
    }
    return extensions;  // all cores are taken to be alike
  }
  return {};
}

std::string ProcessorName(const SystemRoot& root) {
  constexpr size_t kNameBytesMax = 256;
  const std::string text = ReadSystemFile(absl::StrCat(root.path, "/proc/cpuinfo"));
  // x86 has the first of these; ARM one of the others, or only numbers.
  for (const char* wanted : {"model name", "Model", "Hardware", "CPU part"}) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(':', 1));
      if (halves.size() != 2 || absl::StripAsciiWhitespace(halves[0]) != wanted) continue;
      const absl::string_view name = absl::StripAsciiWhitespace(halves[1]);
      if (!name.empty()) return std::string(name.substr(0, kNameBytesMax));
    }
  }
  return "unknown processor";
}

}  // namespace syncopate::tools
