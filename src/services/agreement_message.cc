#include "services/agreement_message.h"

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "model/value_checks.h"

namespace syncopate::services {
namespace {

int64_t ReadPosition(ByteReader& reader) {
  return static_cast<int64_t>(ReadUpTo(reader, 2 * limits::kPositionMax));
}

void Write(std::string& out, const Propose& request) {
  AppendTitle(out, request.title);
  AppendSized(out, request.value);
}
void Read(ByteReader& reader, Propose& request) {
  request.title = ReadTitle(reader);
  request.value = ReadSized(reader, limits::kAgreementValueBytesMax);
  if (request.value.size() != request.title.bytes) Refuse(reader);
}

void Write(std::string& out, const Listen& request) { AppendId(out, request.seen); }
void Read(ByteReader& reader, Listen& request) { request.seen = ReadId(reader); }

void Write(std::string& out, const Position& request) {
  AppendId(out, request.round);
  Append(out, static_cast<uint64_t>(request.position));
  AppendDigest(out, request.digest);
  AppendSized(out, request.fault);
}
void Read(ByteReader& reader, Position& request) {
  request.round = ReadId(reader);
  request.position = static_cast<int64_t>(ReadUpTo(reader, limits::kPositionMax));
  request.digest = ReadDigest(reader);
  request.fault = ReadSized(reader, limits::kServiceErrorBytesMax);
}

void Write(std::string& out, const Fetch& request) {
  AppendSized(out, request.kind);
  Append(out, request.version);
}
void Read(ByteReader& reader, Fetch& request) {
  request.kind = ReadSized(reader, limits::kAgreementKindBytesMax);
  request.version = reader.Read<uint64_t>();
}

void Write(std::string& out, const Release& request) { AppendSized(out, request.kind); }
void Read(ByteReader& reader, Release& request) {
  request.kind = ReadSized(reader, limits::kAgreementKindBytesMax);
}

void Write(std::string& out, const Settled& answer) {
  AppendId(out, answer.round);
  Append(out, static_cast<uint64_t>(answer.from));
}
void Read(ByteReader& reader, Settled& answer) {
  answer.round = ReadId(reader);
  answer.from = ReadPosition(reader);
}

void Write(std::string& out, const Question& answer) {
  AppendId(out, answer.round);
  AppendTitle(out, answer.title);
  AppendSized(out, answer.value);
}
void Read(ByteReader& reader, Question& answer) {
  answer.round = ReadId(reader);
  answer.title = ReadTitle(reader);
  answer.value = ReadSized(reader, limits::kAgreementValueBytesMax);
  if (!answer.value.empty() && answer.value.size() != answer.title.bytes) Refuse(reader);
}

void Write(std::string& out, const Outcome& answer) {
  AppendId(out, answer.round);
  Append(out, static_cast<uint8_t>(answer.accepted));
  Append(out, static_cast<uint64_t>(answer.from));
  AppendTitle(out, answer.title);
  AppendSized(out, answer.reason);
}
void Read(ByteReader& reader, Outcome& answer) {
  answer.round = ReadId(reader);
  answer.accepted = ReadTruth(reader);
  answer.from = ReadPosition(reader);
  answer.title = ReadTitle(reader);
  answer.reason = ReadSized(reader, limits::kServiceErrorBytesMax);
}

void Write(std::string& out, const Welcome& answer) {
  AppendId(out, answer.seen);
  Append(out, static_cast<uint32_t>(answer.values.size()));
  for (const InForceEntry& entry : answer.values) {
    AppendTitle(out, entry.title);
    Append(out, static_cast<uint64_t>(entry.from));
  }
}
void Read(ByteReader& reader, Welcome& answer) {
  answer.seen = ReadId(reader);
  const uint32_t count = ReadCount(reader, limits::kAgreementKindsMax, kTitleBytesMin + 8);
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    InForceEntry& entry = answer.values.emplace_back();
    entry.title = ReadTitle(reader);
    entry.from = ReadPosition(reader);
  }
}

void Write(std::string& out, const Value& answer) {
  AppendTitle(out, answer.title);
  AppendSized(out, answer.value);
}
void Read(ByteReader& reader, Value& answer) {
  answer.title = ReadTitle(reader);
  answer.value = ReadSized(reader, limits::kAgreementValueBytesMax);
  if (answer.value.size() != answer.title.bytes) Refuse(reader);
}

template <typename Variant>
std::string Encode(const Variant& message) {
  std::string out;
  Append(out, static_cast<uint8_t>(message.index() + 1));
  std::visit([&](const auto& body) { Write(out, body); }, message);
  return out;
}

template <typename Variant, size_t kIndex = 0>
absl::StatusOr<Variant> Decode(absl::string_view bytes) {
  if constexpr (kIndex < std::variant_size_v<Variant>) {
    ByteReader reader(bytes);
    if (reader.Read<uint8_t>() != kIndex + 1) return Decode<Variant, kIndex + 1>(bytes);
    Variant message;
    Read(reader, message.template emplace<kIndex>());
    if (reader.AtEnd()) return message;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a message of ", bytes.size(), " bytes about an agreement cannot be read"));
}

}  // namespace

absl::Status Validate(const ValueTitle& title) {
  if (title.kind.empty()) return value_checks::Fault("kind", "it is empty");
  const absl::Status kind =
      value_checks::CheckPrintable("kind", title.kind, limits::kAgreementKindBytesMax);
  if (!kind.ok()) return kind;
  if (title.version == 0) return value_checks::Fault("version", "versions begin with 1");
  if (title.unit == 0 || title.unit > limits::kPositionMax / kUnitsFurtherMax) {
    return value_checks::Fault("unit", absl::StrCat(title.unit, " is out of range"));
  }
  if (title.further == 0 || title.further > kUnitsFurtherMax) {
    return value_checks::Fault(
        "further", absl::StrCat(title.further, " units; it is 1 to ", kUnitsFurtherMax));
  }
  if (title.bytes > limits::kAgreementValueBytesMax) {
    return value_checks::Fault("value", absl::StrCat(title.bytes, " bytes; the limit is ",
                                                     limits::kAgreementValueBytesMax));
  }
  return absl::OkStatus();
}

int64_t MarginOf(const ValueTitle& title) {
  return static_cast<int64_t>(title.further * title.unit);
}

std::string Describe(const ValueTitle& title) {
  return absl::StrCat(title.kind, " ", title.version, " (", title.digest.ToString(), ")");
}

void AppendTitle(std::string& out, const ValueTitle& title) {
  AppendSized(out, title.kind);
  Append(out, title.version);
  Append(out, static_cast<uint8_t>(title.scale));
  Append(out, title.unit);
  Append(out, title.further);
  AppendDigest(out, title.digest);
  Append(out, title.bytes);
}

ValueTitle ReadTitle(ByteReader& reader) {
  ValueTitle title;
  title.kind = ReadSized(reader, limits::kAgreementKindBytesMax);
  title.version = reader.Read<uint64_t>();
  const auto scale = reader.Read<uint8_t>();
  if (scale >= kScales) Refuse(reader);
  title.scale = static_cast<Scale>(scale);
  title.unit = reader.Read<uint64_t>();
  title.further = reader.Read<uint8_t>();
  title.digest = ReadDigest(reader);
  title.bytes = reader.Read<uint64_t>();
  if (reader.ok() && !Validate(title).ok()) Refuse(reader);
  return title;
}

std::string EncodeReport(const AgreementReport& report) {
  std::string out;
  Append(out, static_cast<uint32_t>(report.entries.size()));
  for (const AgreementReport::Entry& entry : report.entries) {
    AppendTitle(out, entry.title);
    Append(out, static_cast<uint8_t>(entry.in_force));
    Append(out, static_cast<uint64_t>(entry.from));
    AppendSized(out, entry.value);
  }
  return out;
}

absl::StatusOr<AgreementReport> DecodeReport(absl::string_view bytes) {
  ByteReader reader(bytes);
  AgreementReport report;
  const uint32_t count = ReadCount(reader, 2 * limits::kAgreementKindsMax, kTitleBytesMin + 13);
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    AgreementReport::Entry& entry = report.entries.emplace_back();
    entry.title = ReadTitle(reader);
    entry.in_force = ReadTruth(reader);
    entry.from = ReadPosition(reader);
    entry.value = ReadSized(reader, limits::kAgreementValueBytesMax);
    if (!entry.value.empty() && entry.value.size() != entry.title.bytes) Refuse(reader);
  }
  if (!reader.AtEnd()) return absl::InvalidArgumentError("a report on agreements cannot be read");
  return report;
}

std::string EncodeRequest(const AgreementRequest& request) { return Encode(request); }
absl::StatusOr<AgreementRequest> DecodeRequest(absl::string_view bytes) {
  return Decode<AgreementRequest>(bytes);
}
std::string EncodeAnswer(const AgreementAnswer& answer) { return Encode(answer); }
absl::StatusOr<AgreementAnswer> DecodeAnswer(absl::string_view bytes) {
  return Decode<AgreementAnswer>(bytes);
}

}  // namespace syncopate::services
