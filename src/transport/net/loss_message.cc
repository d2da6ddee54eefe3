#include "transport/net/loss_message.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/limits.h"

namespace syncopate::transport::net {
namespace {

constexpr uint8_t kCertainBit = 0x80;  // of the byte with the cause

static_assert(limits::kWorkersMax <= 1 << 16);  // a rank travels in two bytes

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("loss message: ", what));
}

void AppendMarks(std::string& out, const std::vector<Mark>& marks) {
  for (const Mark& mark : marks) {
    Append(out, static_cast<uint16_t>(mark.rank));
    Append(out, static_cast<uint8_t>(static_cast<uint8_t>(mark.cause) |
                                     (mark.certain ? kCertainBit : uint8_t{0})));
    Append(out, static_cast<uint16_t>(mark.by));
  }
}

bool ReadMarks(ByteReader& in, size_t count, int size, std::vector<Mark>& marks) {
  for (size_t i = 0; i < count; ++i) {
    const int rank = in.Read<uint16_t>();
    const uint8_t byte = in.Read<uint8_t>();
    const uint8_t cause = byte & ~kCertainBit;
    const int by = in.Read<uint16_t>();
    if (!in.ok() || rank >= size || by >= size || cause < static_cast<uint8_t>(Cause::kSilent) ||
        cause > static_cast<uint8_t>(Cause::kLeft)) {
      return false;
    }
    marks.push_back({.rank = rank,
                     .cause = static_cast<Cause>(cause),
                     .by = by,
                     .certain = (byte & kCertainBit) != 0});
  }
  return true;
}

}  // namespace

std::string Describe(Cause cause) {
  switch (cause) {
    case Cause::kSilent:
      return "gave no sign for too long (it is stopped, or the network to it is cut)";
    case Cause::kStuck:
      return "is stuck (it did not finish an operation in time)";
    case Cause::kCutOff:
      return "was cut off from the others and gave up";
    case Cause::kDied:
      return "died (its process ended)";
    case Cause::kLeft:
      return "left the job";
  }
  return "is lost";
}

std::string Encode(const LossMessage& message) {
  std::string out;
  Append(out, static_cast<uint8_t>(message.kind));
  Append(out, static_cast<uint8_t>(message.verdicts.size()));
  Append(out, static_cast<uint8_t>(message.proposals.size()));
  Append(out, static_cast<uint8_t>(message.opinions.size()));
  Append(out, static_cast<uint16_t>(message.known));
  Append(out, static_cast<uint16_t>(message.first));
  AppendMarks(out, message.verdicts);
  AppendMarks(out, message.proposals);
  for (const RankOpinion& opinion : message.opinions) {
    Append(out, static_cast<uint16_t>(opinion.rank));
    Append(out, static_cast<uint8_t>(opinion.opinion));
  }
  return out;
}

absl::StatusOr<LossMessage> DecodeLossMessage(absl::string_view bytes, int size) {
  if (bytes.size() > kLossMessageBytesMax) {
    return Malformed(absl::StrCat(bytes.size(), " bytes are more than the ", kLossMessageBytesMax,
                                  " that it can have"));
  }
  ByteReader in(bytes);
  const uint8_t kind = in.Read<uint8_t>();
  const size_t verdicts = in.Read<uint8_t>();
  const size_t proposals = in.Read<uint8_t>();
  const size_t opinions = in.Read<uint8_t>();
  LossMessage message;
  message.known = in.Read<uint16_t>();
  message.first = in.Read<uint16_t>();
  if (!in.ok()) return Malformed("it is shorter than its header");
  if (kind < static_cast<uint8_t>(LossMessage::Kind::kState) ||
      kind > static_cast<uint8_t>(LossMessage::Kind::kExpelled)) {
    return Malformed(absl::StrCat("kind ", kind, " is unknown"));
  }
  message.kind = static_cast<LossMessage::Kind>(kind);
  if (verdicts > LossMessage::kVerdictsMax || proposals > LossMessage::kProposalsMax ||
      opinions > LossMessage::kOpinionsMax) {
    return Malformed("it counts more entries than one message can have");
  }
  if (message.known > size || message.first + static_cast<int>(verdicts) > message.known) {
    return Malformed("its verdicts are more than it says that stand");
  }
  if (!ReadMarks(in, verdicts, size, message.verdicts)) return Malformed("a verdict is wrong");
  if (!ReadMarks(in, proposals, size, message.proposals)) return Malformed("a proposal is wrong");
  for (size_t i = 0; i < opinions; ++i) {
    const int rank = in.Read<uint16_t>();
    const uint8_t opinion = in.Read<uint8_t>();
    if (!in.ok() || rank >= size || opinion < static_cast<uint8_t>(Opinion::kHeard) ||
        opinion > static_cast<uint8_t>(Opinion::kStuck)) {
      return Malformed("an opinion is wrong");
    }
    message.opinions.push_back({.rank = rank, .opinion = static_cast<Opinion>(opinion)});
  }
  if (!in.AtEnd()) return Malformed("bytes follow its end");
  return message;
}

}  // namespace syncopate::transport::net
