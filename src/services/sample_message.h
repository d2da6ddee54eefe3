// What workers and the sample-range service say to each other (sample_ranges.h), and its bytes
// (docs/services.md has the grammar).
#ifndef SYNCOPATE_SERVICES_SAMPLE_MESSAGE_H_
#define SYNCOPATE_SERVICES_SAMPLE_MESSAGE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/service.h"

namespace syncopate::services {

struct Interval {
  uint64_t first = 0;
  uint64_t count = 0;

  uint64_t end() const { return first + count; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
// In order, not empty, not touching.
using Intervals = std::vector<Interval>;
// Adds samples to a set of them; those that are there already stay once.
void AddInterval(Intervals& set, const Interval& interval);
uint64_t CountOf(const Intervals& set);
// What is not in the set, of [0, end).
Intervals Complement(const Intervals& set, uint64_t end);

// A range of an epoch's samples that one worker holds.
struct SampleRange {
  ServiceId id;
  uint64_t epoch = 0;
  Interval samples;

  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

// How far epochs are: which samples count, of those from epoch `done` on.
struct SampleProgress {
  uint64_t done = 0;            // epochs below this are complete
  std::vector<Intervals> open;  // by epoch from `done` on; those behind the last have none yet

  friend bool operator==(const SampleProgress&, const SampleProgress&) = default;
};
// How many samples count in all, in epochs of that many.
uint64_t CountOf(const SampleProgress& progress, uint64_t samples);
// Adds samples of an epoch; those of a complete one are there already.
void AddSamples(SampleProgress& progress, uint64_t epoch, const Interval& interval);

// Requests.
// These ranges are used, and give me up to `want` samples more. Answered by GrantAnswer, when there
// are some, when all epochs are over, or at once if want is 0. Also at once, without ranges, if there
// are none now and the asker holds some that it has not said: others may wait for these.
struct NextRequest {
  uint64_t want = 0;
  std::vector<ServiceId> said;  // at most limits::kRangesSaidMax
};
struct SummaryRequest {};
using SampleRequest = std::variant<NextRequest, SummaryRequest>;

// Answers.
struct GrantAnswer {
  // All of one epoch. None: nothing was wanted, or `over`, or the asker is to say first what it holds.
  std::vector<SampleRange> ranges;
  uint64_t done = 0;  // epochs below this are complete
  bool over = false;  // all epochs are
};
struct SummaryAnswer {
  SampleProgress progress;
  // Samples handed out again, in all epochs: computed twice, or at least begun.
  uint64_t repeated = 0;
};
using SampleAnswer = std::variant<GrantAnswer, SummaryAnswer>;

// What a worker reports when the service has to be rebuilt.
struct SampleReport {
  struct Epoch {
    uint64_t epoch = 0;
    Intervals counted;  // that this worker said, and has heard that it is so
  };
  uint64_t done = 0;
  std::vector<Epoch> epochs;      // not complete as far as it knows, growing
  std::vector<SampleRange> held;  // not said, or not known to have been heard
};

std::string EncodeSampleRequest(const SampleRequest& request);
absl::StatusOr<SampleRequest> DecodeSampleRequest(absl::string_view bytes);
std::string EncodeSampleAnswer(const SampleAnswer& answer);
absl::StatusOr<SampleAnswer> DecodeSampleAnswer(absl::string_view bytes);
std::string EncodeSampleReport(const SampleReport& report);
absl::StatusOr<SampleReport> DecodeSampleReport(absl::string_view bytes);

// For states, reports and checkpoints.
void AppendProgress(std::string& out, const SampleProgress& progress);
SampleProgress ReadProgress(ByteReader& reader);
void AppendInterval(std::string& out, const Interval& interval);
Interval ReadInterval(ByteReader& reader);
void AppendIntervals(std::string& out, const Intervals& set);
Intervals ReadIntervals(ByteReader& reader);

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SAMPLE_MESSAGE_H_
