#include "launch/host_list.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::launch {
namespace {

// The name goes to a command line: nothing in it may look like an option or mean something to a
// shell.
absl::Status CheckName(absl::string_view name) {
  const bool fits = !name.empty() && name.size() <= limits::kHostNameBytesMax && name[0] != '-' &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) ||
                             absl::StrContains(".-_@:%", absl::string_view(&c, 1));
                    });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name.substr(0, limits::kHostNameBytesMax),
                   "\" is no name of a host; write for example node1, node1:4 or user@node1:4"));
}

absl::StatusOr<int> ParseSlots(absl::string_view text) {
  absl::StatusOr<int64_t> slots = ParseInt(text, 1, limits::kLocalWorkersMax);
  if (!slots.ok()) return At("slots", slots.status());
  return static_cast<int>(*slots);
}

// "host", "host:4", "[fd00::1]:4".
absl::StatusOr<HostSlots> ParseHost(absl::string_view text) {
  HostSlots host;
  absl::string_view name = text, slots;
  const size_t bracket = text.rfind(']');
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos && (bracket == absl::string_view::npos || colon > bracket)) {
    name = text.substr(0, colon);
    slots = text.substr(colon + 1);
    SYNCOPATE_ASSIGN_OR_RETURN(host.slots, ParseSlots(slots));
  }
  if (absl::ConsumePrefix(&name, "[")) absl::ConsumeSuffix(&name, "]");
  SYNCOPATE_RETURN_IF_ERROR(CheckName(name));
  host.host = std::string(name);
  return host;
}

absl::Status Add(const HostSlots& host, std::vector<HostSlots>& hosts) {
  auto same = std::find_if(hosts.begin(), hosts.end(),
                           [&](const HostSlots& each) { return each.host == host.host; });
  if (same == hosts.end()) {
    hosts.push_back(host);
    return absl::OkStatus();
  }
  same->slots += host.slots;
  if (same->slots > limits::kLocalWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        host.host, " gets ", same->slots, " slots; a host has at most ", limits::kLocalWorkersMax));
  }
  return absl::OkStatus();
}

absl::Status ParseLine(absl::string_view line, std::vector<HostSlots>& hosts) {
  line = line.substr(0, line.find('#'));
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  SYNCOPATE_ASSIGN_OR_RETURN(HostSlots host, ParseHost(words[0]));
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (absl::ConsumePrefix(&word, "slots=")) {
      SYNCOPATE_ASSIGN_OR_RETURN(host.slots, ParseSlots(word));
    } else if (!absl::ConsumePrefix(&word, "max_slots=") &&
               !absl::ConsumePrefix(&word, "max-slots=")) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\" is not understood; write \"host slots=4\" or \"host:4\""));
    }
  }
  return Add(host, hosts);
}

}  // namespace

absl::StatusOr<std::vector<HostSlots>> ParseHostList(absl::string_view text) {
  std::vector<HostSlots> hosts;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    SYNCOPATE_ASSIGN_OR_RETURN(const HostSlots host, ParseHost(absl::StripAsciiWhitespace(part)));
    SYNCOPATE_RETURN_IF_ERROR(Add(host, hosts));
  }
  return hosts;
}

absl::StatusOr<std::vector<HostSlots>> ParseHostFile(absl::string_view path,
                                                     absl::string_view text) {
  std::vector<HostSlots> hosts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = ParseLine(line, hosts);
    if (!status.ok()) return At(absl::StrCat(path, ":", number), status);
  }
  if (hosts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " names no host; write a line such as \"node1 slots=4\" for each"));
  }
  return hosts;
}

absl::StatusOr<std::vector<HostRanks>> PlaceRanks(const std::vector<HostSlots>& hosts,
                                                  std::optional<int> ranks) {
  int64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  const int64_t wanted = ranks.value_or(static_cast<int>(std::min<int64_t>(slots, INT32_MAX)));
  if (wanted > slots) {
    return absl::InvalidArgumentError(absl::StrCat(wanted, " ranks, but the hosts have ", slots,
                                                   slots == 1 ? " slot" : " slots",
                                                   "; give more, as in node1:", wanted));
  }
  if (wanted > limits::kWorkersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(wanted, " ranks; a job has at most ", limits::kWorkersMax));
  }
  std::vector<HostRanks> placed;
  int next = 0;
  for (const HostSlots& host : hosts) {
    const int here = std::min(host.slots, static_cast<int>(wanted) - next);
    if (here <= 0) break;
    placed.push_back({host.host, next, here});
    next += here;
  }
  return placed;
}

}  // namespace syncopate::launch
