#include "lab/load.h"

#include <time.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "lab/netns.h"
#include "lab/proc_file.h"

namespace syncopate::lab {
namespace {

// The index of the bytes sent in a line of /proc/net/dev, after eight figures of what was received.
constexpr size_t kSentField = 8;

using Counters = std::map<std::string, std::map<std::string, uint64_t>>;  // by namespace

absl::StatusOr<Counters> ReadCounters(const Plan& plan) {
  Counters counters;
  for (const std::array<Port, 2>& ports : plan.ports) {
    for (const Port& port : ports) {
      if (counters.count(port.netns) != 0) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const NamespaceVisit visit, NamespaceVisit::Enter(port.netns));
      SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, ReadProcFile("/proc/thread-self/net/dev"));
      counters[port.netns] = ParseSentBytes(text);
    }
  }
  return counters;
}

}  // namespace

std::map<std::string, uint64_t> ParseSentBytes(absl::string_view text) {
  std::map<std::string, uint64_t> sent;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const std::vector<absl::string_view> fields =
        absl::StrSplit(parts.second, ' ', absl::SkipEmpty());
    uint64_t bytes = 0;
    if (fields.size() <= kSentField || !absl::SimpleAtoi(fields[kSentField], &bytes)) continue;
    sent[std::string(absl::StripAsciiWhitespace(parts.first))] = bytes;
  }
  return sent;
}

absl::StatusOr<std::vector<std::array<double, 2>>> MeasureLoad(const Plan& plan,
                                                               double interval_seconds,
                                                               const Clock& clock) {
  const int64_t begin_ns = clock.NowNs();
  SYNCOPATE_ASSIGN_OR_RETURN(Counters before, ReadCounters(plan));
  const auto whole = static_cast<time_t>(interval_seconds);
  const timespec pause = {whole,
                          static_cast<long>((interval_seconds - static_cast<double>(whole)) * 1e9)};
  nanosleep(&pause, nullptr);
  const double seconds = static_cast<double>(clock.NowNs() - begin_ns) * 1e-9;
  SYNCOPATE_ASSIGN_OR_RETURN(Counters after, ReadCounters(plan));
  std::vector<std::array<double, 2>> load;
  for (const std::array<Port, 2>& ports : plan.ports) {
    std::array<double, 2> link = {};
    for (const int side : {0, 1}) {
      const Port& port = ports[side];
      const auto bytes = static_cast<double>(after[port.netns][port.interface] -
                                             before[port.netns][port.interface]);
      link[side] = seconds > 0 ? bytes * 8 / seconds : 0;
    }
    load.push_back(link);
  }
  return load;
}

}  // namespace syncopate::lab
