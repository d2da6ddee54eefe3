// The checks and the two forms of a trace. The compact form is what workers send and store: most
// numbers are written as the difference from the span before, which is small, in as few bytes as
// that takes (docs/observe.md). The text form is for people and tests.
#include "model/trace.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate {
namespace {

constexpr absl::string_view kMagic = "SYT1";  // the first bytes of the compact form
constexpr absl::string_view kTraceTitle = "syncopate trace 1";
constexpr absl::string_view kNames[kSpanKinds] = {"load",       "forward", "backward", "pack",
                                                  "transfer",   "wait",    "update",   "evaluate",
                                                  "checkpoint", "measure"};
// Times and offsets stay far from where their sums would overflow: 73 years.
constexpr int64_t kTimeNsMax = int64_t{1} << 61;
constexpr size_t kSpanBytesMin = 6;  // each of a span's fields takes a byte or more
constexpr int kIntMax = std::numeric_limits<int>::max();

template <typename... What>
absl::Status BadTrace(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat("trace: ", what...));
}

bool InRange(int64_t value, int64_t lo, int64_t hi) { return lo <= value && value <= hi; }

absl::Status CheckSpan(const Span& span) {
  if (static_cast<int>(span.kind) >= kSpanKinds) {
    return BadTrace("kind ", static_cast<int>(span.kind), " is none of the ", kSpanKinds, " kinds");
  }
  if (span.iteration < 0) return BadTrace("iteration ", span.iteration, " is negative");
  if (span.id < -1) return BadTrace("id ", span.id, " is below -1");
  if (span.id < 0 && span.kind == SpanKind::kTransfer) return BadTrace("a transfer needs an id");
  if (!InRange(span.begin_ns, 0, kTimeNsMax) || !InRange(span.end_ns, span.begin_ns, kTimeNsMax)) {
    return BadTrace("it runs from ", span.begin_ns, " to ", span.end_ns,
                    " ns; times are not negative and do not go back");
  }
  return absl::OkStatus();
}

// Seven bits a byte, the lowest first; the eighth says that more follow. Signed numbers are folded
// first (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), so that small ones of either sign are short.
void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void AppendSigned(std::string& out, int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  AppendVarint(out, (bits << 1) ^ (value < 0 ? ~uint64_t{0} : 0));
}

// Reads from the front. Once something was missing or malformed, ok() is false and all that is read
// is 0.
class VarintReader {
 public:
  explicit VarintReader(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t Unsigned() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = bytes_.Read<uint8_t>();
      // The tenth byte has room for one bit; more would be lost without notice.
      if (!ok() || (shift == 63 && byte > 1)) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    well_formed_ = false;
    return 0;
  }
  int64_t Signed() {
    const uint64_t bits = Unsigned();
    return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  int Int() {
    const int64_t value = Signed();
    if (!InRange(value, std::numeric_limits<int>::min(), kIntMax)) well_formed_ = false;
    return ok() ? static_cast<int>(value) : 0;
  }
  absl::string_view Bytes(uint64_t count) {
    return ok() ? bytes_.ReadBytes(count) : absl::string_view();
  }
  uint64_t left() const { return bytes_.left(); }
  bool ok() const { return well_formed_ && bytes_.ok(); }

 private:
  ByteReader bytes_;
  bool well_formed_ = true;
};

// Differences of numbers from outside may be anything; they wrap around as unsigned ones do.
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// One line of the text form, cut into words.
absl::Status ReadSpan(const std::vector<absl::string_view>& words, WorkerTrace& trace) {
  if (words.size() != 7) return BadTrace("a span has a kind and five numbers");
  Span span;
  SYNCOPATE_ASSIGN_OR_RETURN(span.kind, ParseSpanKind(words[1]));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t iteration, ParseInt(words[2], 0, kIntMax));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t id, ParseInt(words[3], -1, kIntMax));
  SYNCOPATE_ASSIGN_OR_RETURN(span.begin_ns, ParseInt(words[4], 0, kTimeNsMax));
  SYNCOPATE_ASSIGN_OR_RETURN(span.end_ns, ParseInt(words[5], 0, kTimeNsMax));
  SYNCOPATE_ASSIGN_OR_RETURN(const int64_t bytes,
                             ParseInt(words[6], 0, std::numeric_limits<int64_t>::max()));
  span.iteration = static_cast<int>(iteration);
  span.id = static_cast<int>(id);
  span.bytes = static_cast<uint64_t>(bytes);
  trace.spans.push_back(span);
  return absl::OkStatus();
}

absl::Status ReadLine(absl::string_view line, WorkerTrace& trace) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  const auto number = [&](size_t at, int64_t lo, int64_t hi) -> absl::StatusOr<int64_t> {
    if (at >= words.size()) return BadTrace("a number is missing");
    return ParseInt(words[at], lo, hi);
  };
  if (words[0] == "span") return ReadSpan(words, trace);
  if (words[0] == "worker" && words.size() == 3) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t rank, number(1, 0, limits::kWorkersMax - 1));
    trace.rank = static_cast<int>(rank);
    trace.host = std::string(words[2]);
    return absl::OkStatus();
  }
  if (words[0] == "clock" && words.size() == 3) {
    SYNCOPATE_ASSIGN_OR_RETURN(trace.clock_offset_ns, number(1, -kTimeNsMax, kTimeNsMax));
    SYNCOPATE_ASSIGN_OR_RETURN(trace.clock_error_ns, number(2, 0, kTimeNsMax));
    return absl::OkStatus();
  }
  if (words[0] == "dropped" && words.size() == 5) {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t spans, number(1, 0, kMax));
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t bytes, number(2, 0, kMax));
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t first, number(3, 0, kIntMax));
    SYNCOPATE_ASSIGN_OR_RETURN(const int64_t last, number(4, 0, kIntMax));
    trace.dropped = static_cast<uint64_t>(spans);
    trace.dropped_bytes = static_cast<uint64_t>(bytes);
    trace.dropped_first = static_cast<int>(first);
    trace.dropped_last = static_cast<int>(last);
    return absl::OkStatus();
  }
  return BadTrace("\"", line.substr(0, 40), "\" is none of worker, clock, dropped, span");
}

}  // namespace

absl::string_view Name(SpanKind kind) {
  const size_t index = static_cast<size_t>(kind);
  return index < kSpanKinds ? kNames[index] : "unknown";
}

absl::StatusOr<SpanKind> ParseSpanKind(absl::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return BadTrace("\"", name.substr(0, 40), "\" is not a kind of span");
  }
  return static_cast<SpanKind>(found - std::begin(kNames));
}

absl::Status Validate(const WorkerTrace& trace) {
  if (!InRange(trace.rank, 0, limits::kWorkersMax - 1)) {
    return BadTrace("rank ", trace.rank, " is not below ", limits::kWorkersMax);
  }
  if (trace.host.empty() || trace.host.size() > limits::kHostNameBytesMax ||
      !std::all_of(trace.host.begin(), trace.host.end(), absl::ascii_isgraph)) {
    return BadTrace("the name of the host has 1 to ", limits::kHostNameBytesMax,
                    " printable characters and no spaces");
  }
  if (!InRange(trace.clock_offset_ns, -kTimeNsMax, kTimeNsMax) ||
      !InRange(trace.clock_error_ns, 0, kTimeNsMax)) {
    return BadTrace("a clock offset of ", trace.clock_offset_ns, " ns, wrong by at most ",
                    trace.clock_error_ns, " ns, is out of range");
  }
  if (trace.spans.size() > limits::kTraceSpansMax) {
    return BadTrace(trace.spans.size(), " spans are more than the limit of ",
                    limits::kTraceSpansMax);
  }
  // Either nothing was dropped and nothing is said of it, or the iterations are known that it was
  // dropped from.
  const bool dropped = trace.dropped > 0;
  if (dropped != (trace.dropped_first >= 0) || trace.dropped_last < trace.dropped_first ||
      trace.dropped_first < -1 ||
      (!dropped && (trace.dropped_bytes > 0 || trace.dropped_last >= 0))) {
    return BadTrace("what was dropped (", trace.dropped, " spans of iterations ",
                    trace.dropped_first, " to ", trace.dropped_last, ") contradicts itself");
  }
  for (size_t i = 0; i < trace.spans.size(); ++i) {
    const absl::Status status = CheckSpan(trace.spans[i]);
    if (!status.ok()) return At(absl::StrCat("span ", i), status);
  }
  return absl::OkStatus();
}

std::string Encode(const WorkerTrace& trace) {
  std::string out(kMagic);
  AppendSigned(out, trace.rank);
  AppendVarint(out, trace.host.size());
  out += trace.host;
  AppendSigned(out, trace.clock_offset_ns);
  AppendSigned(out, trace.clock_error_ns);
  AppendVarint(out, trace.dropped);
  AppendVarint(out, trace.dropped_bytes);
  AppendSigned(out, trace.dropped_first);
  AppendSigned(out, trace.dropped_last);
  AppendVarint(out, trace.spans.size());
  Span before;
  for (const Span& span : trace.spans) {
    AppendVarint(out, static_cast<uint64_t>(span.kind));
    AppendSigned(out, int64_t{span.iteration} - before.iteration);
    AppendSigned(out, span.id);
    AppendSigned(out, span.begin_ns - before.begin_ns);
    AppendVarint(out, static_cast<uint64_t>(span.end_ns - span.begin_ns));
    AppendVarint(out, span.bytes);
    before = span;
  }
  return out;
}

absl::StatusOr<WorkerTrace> DecodeTrace(absl::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return BadTrace("the first bytes are not those of a trace of this version");
  }
  VarintReader reader(bytes.substr(kMagic.size()));
  WorkerTrace trace;
  trace.rank = reader.Int();
  trace.host = std::string(reader.Bytes(reader.Unsigned()));
  trace.clock_offset_ns = reader.Signed();
  trace.clock_error_ns = reader.Signed();
  trace.dropped = reader.Unsigned();
  trace.dropped_bytes = reader.Unsigned();
  trace.dropped_first = reader.Int();
  trace.dropped_last = reader.Int();
  const uint64_t count = reader.Unsigned();
  if (!reader.ok()) return BadTrace("the head is cut off or malformed");
  // Before memory is taken for them: a short text that announces many spans is malformed.
  if (count > limits::kTraceSpansMax || count > reader.left() / kSpanBytesMin) {
    return BadTrace(count, " spans are announced, but ", reader.left(), " bytes follow");
  }
  trace.spans.reserve(count);
  Span before;
  for (uint64_t i = 0; i < count; ++i) {
    Span span;
    const uint64_t kind = reader.Unsigned();
    if (kind >= kSpanKinds) return BadTrace("span ", i, " is of no known kind");
    span.kind = static_cast<SpanKind>(kind);
    const int64_t iteration = Plus(before.iteration, reader.Signed());
    if (!InRange(iteration, 0, kIntMax)) return BadTrace("span ", i, " has no valid iteration");
    span.iteration = static_cast<int>(iteration);
    span.id = reader.Int();
    span.begin_ns = Plus(before.begin_ns, reader.Signed());
    span.end_ns = Plus(span.begin_ns, static_cast<int64_t>(reader.Unsigned()));
    span.bytes = reader.Unsigned();
    if (!reader.ok()) return BadTrace("span ", i, " is cut off or malformed");
    trace.spans.push_back(span);
    before = span;
  }
  if (reader.left() > 0) return BadTrace(reader.left(), " bytes follow after the last span");
  SYNCOPATE_RETURN_IF_ERROR(Validate(trace));
  return trace;
}

Digest DigestOf(const WorkerTrace& trace) { return DigestOf(Encode(trace)); }

std::string ToText(const WorkerTrace& trace) {
  std::string text = absl::StrCat(kTraceTitle, "\nworker ", trace.rank, " ", trace.host, "\nclock ",
                                  trace.clock_offset_ns, " ", trace.clock_error_ns, "\n");
  if (trace.dropped > 0) {
    absl::StrAppend(&text, "dropped ", trace.dropped, " ", trace.dropped_bytes, " ",
                    trace.dropped_first, " ", trace.dropped_last, "\n");
  }
  for (const Span& span : trace.spans) {
    absl::StrAppend(&text, "span ", Name(span.kind), " ", span.iteration, " ", span.id, " ");
    absl::StrAppend(&text, span.begin_ns, " ", span.end_ns, " ", span.bytes, "\n");
  }
  return text;
}

absl::StatusOr<WorkerTrace> ParseTrace(absl::string_view text) {
  WorkerTrace trace;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view line = absl::StripAsciiWhitespace(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string place = absl::StrCat("line ", number);
    if (number == 1) {
      if (line != kTraceTitle)
        return At(place, BadTrace("a trace begins with \"", kTraceTitle, "\""));
      continue;
    }
    if (line.empty()) continue;
    if (trace.spans.size() > limits::kTraceSpansMax) return At(place, BadTrace("too many spans"));
    const absl::Status status = ReadLine(line, trace);
    if (!status.ok()) return At(place, status);
  }
  SYNCOPATE_RETURN_IF_ERROR(Validate(trace));
  return trace;
}

}  // namespace syncopate
