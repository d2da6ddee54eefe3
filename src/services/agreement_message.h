// What workers and the agreement service say to each other (agreement.h), and its bytes
// (docs/services.md has the grammar).
#ifndef SYNCOPATE_SERVICES_AGREEMENT_MESSAGE_H_
#define SYNCOPATE_SERVICES_AGREEMENT_MESSAGE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "services/service.h"

namespace syncopate::services {

// What a kind of value counts its positions in.
enum class Scale : uint8_t { kCall = 0, kIteration = 1, kSamples = 2 };
inline constexpr size_t kScales = 3;

// Without an outcome a worker goes at most this many units further than the position it has told.
inline constexpr uint8_t kUnitsFurtherMax = 64;
// Kinds that some workers have let go of and others not; and, at a worker, those that it remembers to have let go
// of.
inline constexpr size_t kReleasedMax = 4096;
// Values up to this length travel with the question.
inline constexpr uint64_t kInlineValueBytesMax = 2048;

// A value without its bytes.
struct ValueTitle {
  std::string kind;      // "topology", "schedule", ...
  uint64_t version = 0;  // from 1; grows with each value of the kind
  Scale scale = Scale::kCall;
  // Without an outcome a worker goes at most `further` units further than the position it has told: as
  // few as can be without waiting, since the value counts from a point on that lies beyond them.
  uint64_t unit = 1;
  uint8_t further = kUnitsFurtherMax;
  Digest digest = {};
  uint64_t bytes = 0;

  friend bool operator==(const ValueTitle&, const ValueTitle&) = default;
};
absl::Status Validate(const ValueTitle& title);
// How many positions a worker goes at most without an outcome.
int64_t MarginOf(const ValueTitle& title);
std::string Describe(const ValueTitle& title);  // "schedule 3 (0123abcd...)"

// Requests.
// Put this value into force. Answered by Settled when that is decided, or by an error.
struct Propose {
  ValueTitle title;
  std::string value;
};
// Say what comes after `seen`. Answered by Question, Outcome or Welcome.
struct Listen {
  ServiceId seen;  // the last round whose end this worker knows; 0.0: none
};
// This worker holds the value of the round, is at `position`, and goes at most the kind's units further
// without an outcome. Answered by Outcome or Welcome.
struct Position {
  ServiceId round;
  int64_t position = 0;
  Digest digest;      // as this worker computes it
  std::string fault;  // why it cannot use the value; empty if it can
};
// Give me a value. Answered by Value, or by NotFound if it is neither in force nor asked about.
struct Fetch {
  std::string kind;
  uint64_t version = 0;
};
// This worker uses values of the kind no more. When all have said so, it is forgotten, and until then nobody can
// propose any. Answered by Settled.
struct Release {
  std::string kind;
};
using AgreementRequest = std::variant<Propose, Listen, Position, Fetch, Release>;

// Answers.
struct Settled {
  ServiceId round;
  int64_t from = 0;  // the first position with the value
};
struct Question {
  ServiceId round;
  ValueTitle title;
  std::string value;  // if it is short; else fetch it
};
struct Outcome {
  ServiceId round;
  bool accepted = false;
  int64_t from = 0;
  ValueTitle title;
  std::string reason = {};  // of one that was not accepted
};
struct InForceEntry {
  ValueTitle title;
  int64_t from = 0;
};
struct Welcome {
  ServiceId seen;
  std::vector<InForceEntry> values;
};
struct Value {
  ValueTitle title;
  std::string value;
};
using AgreementAnswer = std::variant<Settled, Question, Outcome, Welcome, Value>;

std::string EncodeRequest(const AgreementRequest& request);
absl::StatusOr<AgreementRequest> DecodeRequest(absl::string_view bytes);
std::string EncodeAnswer(const AgreementAnswer& answer);
absl::StatusOr<AgreementAnswer> DecodeAnswer(absl::string_view bytes);

// What a worker reports when the service has to be rebuilt: the values that it uses or will use, and
// the one that it was asked about.
struct AgreementReport {
  struct Entry {
    ValueTitle title;
    bool in_force = false;
    int64_t from = 0;
    std::string value;  // empty if the worker leaves it out
  };
  std::vector<Entry> entries;
};
std::string EncodeReport(const AgreementReport& report);
absl::StatusOr<AgreementReport> DecodeReport(absl::string_view bytes);

// For states and reports.
void AppendTitle(std::string& out, const ValueTitle& title);
ValueTitle ReadTitle(ByteReader& reader);
// The least bytes of a title.
inline constexpr size_t kTitleBytesMin = 4 + 8 + 1 + 8 + 1 + 16 + 8;

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_AGREEMENT_MESSAGE_H_
