#include "worker/round_mail.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/limits.h"

namespace syncopate::worker {
namespace {

constexpr uint16_t kNoRoot = 0xffff;
static_assert(limits::kWorkersMax < kNoRoot);
static_assert(kRoundNameBytesMax <= 255);
static_assert(1 + 1 + 8 + 2 + 1 + kRoundNameBytesMax <= kRoundHeadBytesMax);
static_assert(kRoundFaultBytesMax <= limits::kMailBytesMax - kRoundHeadBytesMax);

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("mail of a round is malformed: ", why));
}

}  // namespace

std::string Encode(const RoundMail& mail) {
  std::string out;
  out.reserve(kRoundHeadBytesMax + mail.text.size());
  Append(out, static_cast<uint8_t>(mail.lane));
  Append(out, static_cast<uint8_t>(mail.kind));
  Append(out, mail.round);
  if (mail.kind == RoundMail::Kind::kTaken) return out;
  if (mail.kind == RoundMail::Kind::kText) {
    Append(out, mail.root < 0 ? kNoRoot : static_cast<uint16_t>(mail.root));
    Append(out, static_cast<uint8_t>(mail.what.size()));
    out += mail.what;
  }
  out += mail.text;
  return out;
}

absl::StatusOr<RoundMail> DecodeRoundMail(absl::string_view bytes) {
  ByteReader reader(bytes);
  RoundMail mail;
  const auto lane = reader.Read<uint8_t>();
  const auto kind = reader.Read<uint8_t>();
  mail.round = reader.Read<uint64_t>();
  if (!reader.ok()) return Malformed("it is too short");
  if (lane >= kRoundLanes) return Malformed(absl::StrCat("there is no lane ", lane));
  mail.lane = static_cast<RoundLane>(lane);
  mail.kind = static_cast<RoundMail::Kind>(kind);
  switch (mail.kind) {
    case RoundMail::Kind::kTaken:
      if (!reader.AtEnd()) return Malformed("something follows its end");
      return mail;
    case RoundMail::Kind::kFault:
      if (reader.left() > kRoundFaultBytesMax) return Malformed("its reason is too long");
      mail.text = std::string(reader.ReadBytes(reader.left()));
      return mail;
    case RoundMail::Kind::kText: {
      const auto root = reader.Read<uint16_t>();
      if (root != kNoRoot && root >= limits::kWorkersMax) {
        return Malformed(absl::StrCat(root, " is no root"));
      }
      mail.root = root == kNoRoot ? -1 : root;
      const auto name_bytes = reader.Read<uint8_t>();
      if (name_bytes > kRoundNameBytesMax) return Malformed("its name is too long");
      mail.what = std::string(reader.ReadBytes(name_bytes));
      if (!reader.ok()) return Malformed("it is too short");
      if (reader.left() > kRoundTextBytesMax) return Malformed("its text is too long");
      mail.text = std::string(reader.ReadBytes(reader.left()));
      return mail;
    }
  }
  return Malformed(absl::StrCat("there is no kind ", kind));
}

}  // namespace syncopate::worker
