// One byte for the kind of message, then its fields in their order: numbers little-endian, a text
// and a list of ranks after a count of 2 bytes, a rank in 2 bytes, a truth value in 1.
#include "model/strategy_message.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"

namespace syncopate {
namespace {

void Put(std::string& out, int64_t value) { Append(out, value); }
void Put(std::string& out, uint64_t value) { Append(out, value); }
void Put(std::string& out, double value) { Append(out, value); }
void Put(std::string& out, bool value) { Append(out, static_cast<uint8_t>(value ? 1 : 0)); }
void Put(std::string& out, const GroupKey& key) {
  Append(out, key.maker);
  Append(out, key.number);
}
void Put(std::string& out, const std::vector<int>& ranks) {
  Append(out, static_cast<uint16_t>(ranks.size()));
  for (const int rank : ranks) Append(out, static_cast<uint16_t>(rank));
}
void Put(std::string& out, const std::string& text) {
  Append(out, static_cast<uint16_t>(text.size()));
  out += text;
}

// Makes the reader not ok.
void RefuseRest(ByteReader& reader) { reader.ReadBytes(SIZE_MAX); }

void Get(ByteReader& reader, int64_t& value) { value = reader.Read<int64_t>(); }
void Get(ByteReader& reader, uint64_t& value) { value = reader.Read<uint64_t>(); }
void Get(ByteReader& reader, double& value) { value = reader.Read<double>(); }
void Get(ByteReader& reader, bool& value) {
  const auto byte = reader.Read<uint8_t>();
  if (byte > 1) RefuseRest(reader);
  value = byte == 1;
}
void Get(ByteReader& reader, GroupKey& key) {
  key.maker = reader.Read<uint64_t>();
  key.number = reader.Read<uint64_t>();
}
void Get(ByteReader& reader, std::vector<int>& ranks) {
  const auto count = reader.Read<uint16_t>();
  if (count > limits::kMessageRanksMax || reader.left() < count * sizeof(uint16_t)) {
    return RefuseRest(reader);
  }
  for (uint16_t i = 0; i < count; ++i) ranks.push_back(reader.Read<uint16_t>());
}
void Get(ByteReader& reader, std::string& text) {
  const auto bytes = reader.Read<uint16_t>();
  if (bytes > limits::kMessageTextBytesMax) return RefuseRest(reader);
  text = std::string(reader.ReadBytes(bytes));
}

// What is wrong with a field, or nothing.
absl::string_view FaultOf(int64_t value, int) { return value < 0 ? "is negative" : ""; }
absl::string_view FaultOf(uint64_t, int) { return ""; }
absl::string_view FaultOf(double value, int) {
  return std::isfinite(value) && value >= 0 ? "" : "is no number from 0 on";
}
absl::string_view FaultOf(bool, int) { return ""; }
absl::string_view FaultOf(const GroupKey&, int) { return ""; }
absl::string_view FaultOf(const std::string& text, int) {
  return text.size() > limits::kMessageTextBytesMax ? "is too long" : "";
}
absl::string_view FaultOf(const std::vector<int>& ranks, int workers) {
  if (ranks.size() > limits::kMessageRanksMax) return "has too many ranks";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= workers) return "names a rank that is not there";
    if (i > 0 && ranks[i] <= ranks[i - 1]) return "has ranks that do not ascend";
  }
  return "";
}

// The alternative with this number, with its defaults.
template <size_t kIndex = 0>
StrategyMessage Alternative(size_t index) {
  if constexpr (kIndex + 1 < std::variant_size_v<StrategyMessage>) {
    if (index > kIndex) return Alternative<kIndex + 1>(index);
  }
  return std::variant_alternative_t<kIndex, StrategyMessage>{};
}

}  // namespace

absl::Status Validate(const StrategyMessage& message, int workers) {
  absl::Status status;
  std::visit(
      [&](const auto& m) {
        m.Fields(m, [&](const char* name, const auto& value, const auto&... /*usual*/) {
          const absl::string_view fault = FaultOf(value, workers);
          if (fault.empty() || !status.ok()) return;
          status = absl::InvalidArgumentError(absl::StrCat(m.kName, ": ", name, " ", fault));
        });
      },
      message);
  return status;
}

std::string Encode(const StrategyMessage& message) {
  std::string bytes;
  Append(bytes, static_cast<uint8_t>(message.index()));
  std::visit(
      [&](const auto& m) {
        m.Fields(m, [&](const char*, const auto& value, const auto&...) { Put(bytes, value); });
      },
      message);
  return bytes;
}

absl::StatusOr<StrategyMessage> DecodeStrategyMessage(absl::string_view bytes, int workers) {
  ByteReader reader(bytes);
  const size_t kind = reader.Read<uint8_t>();
  if (!reader.ok() || kind >= std::variant_size_v<StrategyMessage>) {
    return absl::InvalidArgumentError("a message of a strategy of no known kind");
  }
  StrategyMessage message = Alternative(kind);
  absl::string_view name;
  std::visit(
      [&](auto& m) {
        name = m.kName;
        m.Fields(m, [&](const char*, auto& value, const auto&...) { Get(reader, value); });
      },
      message);
  if (!reader.AtEnd()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message ", name, " of ", bytes.size(), " bytes is too short or too long"));
  }
  if (absl::Status status = Validate(message, workers); !status.ok()) return status;
  return message;
}

StrategyMessage MessageOfAnswer(const absl::StatusOr<std::string>& answer, int workers) {
  absl::Status fault = answer.status();
  if (answer.ok()) {
    absl::StatusOr<StrategyMessage> message = DecodeStrategyMessage(*answer, workers);
    if (message.ok()) return *std::move(message);
    fault = message.status();
  }
  return Refused{std::string(fault.message().substr(0, limits::kMessageTextBytesMax))};
}

}  // namespace syncopate
