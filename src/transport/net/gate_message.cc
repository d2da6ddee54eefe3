#include "transport/net/gate_message.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/limits.h"

namespace syncopate::transport::net {
namespace {

using Item = GateMessage::Item;
using Kind = GateMessage::Kind;

// An item without the members in its lists.
constexpr size_t kItemBytes = 8 + 4 + 4 + 8 + 8 + 4 + 8 + 2 + 2;
// Even of all workers that there may be, an item fits, and so does all else.
static_assert(kItemBytes + 2 * 2 * limits::kWorkersMax < kGateMessageBytesMax / 4);

void AppendList(std::string& out, const std::vector<int32_t>& list) {
  Append(out, static_cast<uint16_t>(list.size()));
  for (const int32_t member : list) Append(out, static_cast<uint16_t>(member));
}

std::vector<int32_t> ReadList(ByteReader& reader) {
  const uint16_t count = reader.Read<uint16_t>();
  std::vector<int32_t> list;
  for (uint16_t i = 0; i < count && reader.ok(); ++i) list.push_back(reader.Read<uint16_t>());
  return list;
}

bool IsState(uint8_t value) { return value <= static_cast<uint8_t>(GateState::kBroken); }

}  // namespace

bool operator==(const GateMessage& a, const GateMessage& b) {
  const auto same = [](const Hello& x, const Hello& y) {
    return x.digest == y.digest && x.weight == y.weight && x.staged == y.staged;
  };
  return a.kind == b.kind && a.gate == b.gate && a.all == b.all && a.round == b.round &&
         a.items == b.items && a.ranks == b.ranks &&
         std::equal(a.hellos.begin(), a.hellos.end(), b.hellos.begin(), b.hellos.end(), same);
}

std::string Encode(const GateMessage& message) {
  std::string out;
  Append(out, static_cast<uint8_t>(message.kind));
  Append(out, static_cast<uint8_t>(message.gate));
  Append(out, static_cast<uint8_t>(message.all));
  Append(out, message.round);
  Append(out, static_cast<uint16_t>(message.items.size()));
  for (const Item& item : message.items) {
    Append(out, item.sequence);
    Append(out, item.start);
    Append(out, item.finish);
    Append(out,
           static_cast<uint8_t>(item.opened | item.entered_start << 1 | item.entered_finish << 2 |
                                item.staged << 3 | item.for_loss << 4));
    Append(out, item.mode);
    Append(out, item.provider);
    Append(out, item.digest);
    Append(out, item.digest_odd);
    Append(out, item.member_odd);
    Append(out, item.weight);
    AppendList(out, item.not_opened);
    AppendList(out, item.not_finished);
  }
  Append(out, static_cast<uint16_t>(message.hellos.size()));
  for (const Hello& hello : message.hellos) {
    Append(out, hello.digest);
    Append(out, hello.weight);
    Append(out, static_cast<uint8_t>(hello.staged));
  }
  AppendList(out, message.ranks);
  return out;
}

std::vector<GateMessage> Split(GateMessage message) {
  const std::vector<Item> items = std::exchange(message.items, {});
  const size_t head_bytes = Encode(message).size();
  std::vector<GateMessage> parts = {message};
  size_t bytes = head_bytes;
  for (const Item& item : items) {
    const size_t item_bytes =
        kItemBytes + sizeof(uint16_t) * (item.not_opened.size() + item.not_finished.size());
    if (parts.back().items.size() == kGateItemsMax || bytes + item_bytes > kGateMessageBytesMax) {
      parts.push_back(message);
      bytes = head_bytes;
    }
    parts.back().items.push_back(item);
    bytes += item_bytes;
  }
  return parts;
}

absl::StatusOr<GateMessage> DecodeGateMessage(absl::string_view bytes) {
  const absl::Status bad = absl::InvalidArgumentError("a message about gates that makes no sense");
  ByteReader reader(bytes);
  GateMessage message;
  const uint8_t kind = reader.Read<uint8_t>();
  const uint8_t gate = reader.Read<uint8_t>();
  if (kind < static_cast<uint8_t>(Kind::kEnter) || kind > static_cast<uint8_t>(Kind::kDecision) ||
      gate > static_cast<uint8_t>(Gate::kFinish)) {
    return bad;
  }
  message.kind = static_cast<Kind>(kind);
  message.gate = static_cast<Gate>(gate);
  message.all = reader.Read<uint8_t>() != 0;
  message.round = reader.Read<uint64_t>();
  const uint16_t items = reader.Read<uint16_t>();
  if (items > kGateItemsMax) return bad;
  for (uint16_t i = 0; i < items && reader.ok(); ++i) {
    Item item;
    item.sequence = reader.Read<uint64_t>();
    item.start = reader.Read<uint8_t>();
    item.finish = reader.Read<uint8_t>();
    const uint8_t flags = reader.Read<uint8_t>();
    item.opened = (flags & 1) != 0;
    item.entered_start = (flags & 2) != 0;
    item.entered_finish = (flags & 4) != 0;
    item.staged = (flags & 8) != 0;
    item.for_loss = (flags & 16) != 0;
    item.mode = reader.Read<uint8_t>();
    item.provider = reader.Read<int32_t>();
    item.digest = reader.Read<uint64_t>();
    item.digest_odd = reader.Read<uint64_t>();
    item.member_odd = reader.Read<int32_t>();
    item.weight = reader.Read<double>();
    item.not_opened = ReadList(reader);
    item.not_finished = ReadList(reader);
    if (!IsState(item.start) || !IsState(item.finish) ||
        item.mode > static_cast<uint8_t>(GateMessage::Mode::kShared)) {
      return bad;
    }
    message.items.push_back(std::move(item));
  }
  const uint16_t hellos = reader.Read<uint16_t>();
  if (hellos > limits::kWorkersMax) return bad;
  for (uint16_t i = 0; i < hellos && reader.ok(); ++i) {
    Hello hello;
    hello.digest = reader.Read<uint64_t>();
    hello.weight = reader.Read<double>();
    hello.staged = reader.Read<uint8_t>() != 0;
    message.hellos.push_back(hello);
  }
  message.ranks = ReadList(reader);
  if (!reader.AtEnd()) return bad;
  return message;
}

}  // namespace syncopate::transport::net
