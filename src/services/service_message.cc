#include "services/service_message.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/fields.h"

namespace syncopate::services {
namespace {

// The type of a message is the place of its body in the variant, from 1.
constexpr std::array<absl::string_view, 10> kNames = {
    "request",       "answer", "event",   "ack",       "state",
    "report wanted", "report", "leaving", "may leave", "ended"};
static_assert(kNames.size() == std::variant_size_v<decltype(ServiceMessage::body)>);

absl::StatusCode ReadCode(ByteReader& reader) {
  const auto code = reader.Read<uint8_t>();
  if (code > static_cast<uint8_t>(absl::StatusCode::kUnauthenticated)) Refuse(reader);
  return static_cast<absl::StatusCode>(code);
}

void Write(std::string& out, const RequestMessage& body) {
  Append(out, body.ticket);
  Append(out, static_cast<uint32_t>(body.open.size()));
  for (const uint64_t ticket : body.open) Append(out, ticket);
  Append(out, body.service);
  AppendSized(out, body.bytes);
}
void Read(ByteReader& reader, RequestMessage& body) {
  body.ticket = reader.Read<uint64_t>();
  const uint32_t count = ReadCount(reader, limits::kTicketsOpenMax, sizeof(uint64_t));
  bool listed = false;
  for (uint32_t i = 0; i < count; ++i) {
    const auto ticket = reader.Read<uint64_t>();
    if (ticket == 0 || (i > 0 && ticket <= body.open.back())) Refuse(reader);
    listed |= ticket == body.ticket;
    body.open.push_back(ticket);
  }
  if (!listed) Refuse(reader);
  body.service = reader.Read<uint16_t>();
  body.bytes = ReadSized(reader, limits::kServiceBytesMax);
}

void Write(std::string& out, const AnswerMessage& body) {
  Append(out, body.ticket);
  Append(out, static_cast<uint8_t>(body.code));
  AppendSized(out, body.bytes);
}
void Read(ByteReader& reader, AnswerMessage& body) {
  body.ticket = reader.Read<uint64_t>();
  body.code = ReadCode(reader);
  body.bytes = ReadSized(reader, limits::kServiceBytesMax);
}

void Write(std::string& out, const Change& change) {
  Append(out, static_cast<uint8_t>(change.kind));
  AppendRank(out, change.rank);
  Append(out, change.order);
  Append(out, static_cast<uint8_t>(change.may_host));
}
void Read(ByteReader& reader, Change& change) {
  const auto kind = reader.Read<uint8_t>();
  if (kind < 1 || kind > 3) Refuse(reader);
  change.kind = static_cast<Change::Kind>(kind);
  change.rank = ReadRank(reader);
  change.order = reader.Read<uint64_t>();
  change.may_host = ReadTruth(reader);
}

void Write(std::string& out, const LoggedRequest& event) {
  AppendRank(out, event.from);
  Write(out, event.request);
}
void Read(ByteReader& reader, LoggedRequest& event) {
  event.from = ReadRank(reader);
  Read(reader, event.request);
}

void Write(std::string& out, const LoggedTick& event) { Append(out, event.service); }
void Read(ByteReader& reader, LoggedTick& event) { event.service = reader.Read<uint16_t>(); }

template <typename Variant, size_t kIndex = 0>
void ReadAlternative(ByteReader& reader, size_t index, Variant& variant);

void Write(std::string& out, const EventMessage& body) {
  Append(out, body.sequence);
  Append(out, body.now_ns);
  Append(out, static_cast<uint8_t>(body.event.index() + 1));
  std::visit([&](const auto& event) { Write(out, event); }, body.event);
}
void Read(ByteReader& reader, EventMessage& body) {
  body.sequence = reader.Read<uint64_t>();
  body.now_ns = reader.Read<int64_t>();
  ReadAlternative(reader, reader.Read<uint8_t>(), body.event);
}

void Write(std::string& out, const AckMessage& body) {
  Append(out, body.sequence);
  Append(out, body.digest);
}
void Read(ByteReader& reader, AckMessage& body) {
  body.sequence = reader.Read<uint64_t>();
  body.digest = reader.Read<uint64_t>();
}

void Write(std::string& out, const StateMessage& body) { AppendSized(out, body.bytes); }
void Read(ByteReader& reader, StateMessage& body) {
  body.bytes = ReadSized(reader, limits::kParcelBytesMax);
}

void Write(std::string& out, const ReportMessage& body) {
  Append(out, static_cast<uint32_t>(body.reports.size()));
  for (const std::string& report : body.reports) AppendSized(out, report);
}
void Read(ByteReader& reader, ReportMessage& body) {
  const uint32_t count = ReadCount(reader, limits::kServicesMax, sizeof(uint32_t));
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    body.reports.push_back(ReadSized(reader, limits::kServiceBytesMax));
  }
}

void Write(std::string& out, const EndedMessage& body) {
  Append(out, static_cast<uint8_t>(body.code));
  AppendSized(out, body.reason);
}
void Read(ByteReader& reader, EndedMessage& body) {
  body.code = ReadCode(reader);
  if (body.code == absl::StatusCode::kOk) Refuse(reader);
  body.reason = ReadSized(reader, limits::kServiceErrorBytesMax);
}

void Write(std::string&, const ReportWantedMessage&) {}
void Read(ByteReader&, ReportWantedMessage&) {}
void Write(std::string&, const LeavingMessage&) {}
void Read(ByteReader&, LeavingMessage&) {}
void Write(std::string&, const MayLeaveMessage&) {}
void Read(ByteReader&, MayLeaveMessage&) {}

// Reads alternative `index` (from 1) of the variant.
template <typename Variant, size_t kIndex>
void ReadAlternative(ByteReader& reader, size_t index, Variant& variant) {
  if constexpr (kIndex < std::variant_size_v<Variant>) {
    if (index != kIndex + 1) return ReadAlternative<Variant, kIndex + 1>(reader, index, variant);
    Read(reader, variant.template emplace<kIndex>());
  } else {
    Refuse(reader);
  }
}

}  // namespace

std::string EncodeMessage(const ServiceMessage& message) {
  std::string out;
  Append(out, static_cast<uint8_t>(message.body.index() + 1));
  Append(out, message.incarnation);
  std::visit([&](const auto& body) { Write(out, body); }, message.body);
  return out;
}

absl::StatusOr<ServiceMessage> DecodeMessage(absl::string_view bytes) {
  ByteReader reader(bytes);
  ServiceMessage message;
  const auto type = reader.Read<uint8_t>();
  message.incarnation = reader.Read<uint64_t>();
  ReadAlternative(reader, type, message.body);
  if (!reader.AtEnd()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", bytes.size(), " bytes to the services (type ", type,
                     type >= 1 && type <= kNames.size() ? absl::StrCat(", ", kNames[type - 1]) : "",
                     ") cannot be read"));
  }
  return message;
}

absl::string_view NameOf(const ServiceMessage& message) { return kNames[message.body.index()]; }

}  // namespace syncopate::services
