#include "probe/measure_protocol.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace syncopate::probe {
namespace {

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T Take(absl::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

}  // namespace

std::string Encode(const Command& command) {
  std::string out;
  Append(out, static_cast<uint32_t>(command.kind));
  Append(out, command.pieces);
  Append(out, command.seconds);
  Append(out, static_cast<uint64_t>(command.flows.size()));
  for (const Command::Flow& flow : command.flows) {
    Append(out, flow.from);
    Append(out, flow.to);
    Append(out, flow.piece_bytes);
  }
  out.resize(CommandBytes());
  return out;
}

absl::StatusOr<Command> DecodeCommand(absl::string_view bytes, uint32_t ranks) {
  if (bytes.size() != CommandBytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a command of the probe has ", CommandBytes(), " bytes, not ", bytes.size()));
  }
  const auto refuse = [](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("a command of the probe has ", what...));
  };
  Command command;
  const uint32_t kind = Take<uint32_t>(bytes);
  if (kind < 1 || kind > 4) return refuse("the unknown kind ", kind);
  command.kind = static_cast<Command::Kind>(kind);
  command.pieces = Take<uint32_t>(bytes);
  const bool ping = command.kind == Command::Kind::kPing;
  if (command.pieces > (ping ? kPingsMax : kPiecesMax)) return refuse(command.pieces, " pieces");
  command.seconds = Take<double>(bytes);
  if (!(command.seconds >= 0 && command.seconds <= kSecondsMax)) {
    return refuse("a length of ", command.seconds, " s");
  }
  const uint64_t flows = Take<uint64_t>(bytes);
  if (flows > kFlowsMax || (ping && flows != 1)) return refuse(flows, " flows");
  for (uint64_t i = 0; i < flows; ++i) {
    Command::Flow flow;
    flow.from = Take<uint32_t>(bytes);
    flow.to = Take<uint32_t>(bytes);
    flow.piece_bytes = Take<uint32_t>(bytes);
    if (flow.from >= ranks || flow.to >= ranks || flow.from == flow.to) {
      return refuse("a flow from ", flow.from, " to ", flow.to);
    }
    if (flow.piece_bytes < kPieceBytesMin || flow.piece_bytes > kPieceBytesMax) {
      return refuse("pieces of ", flow.piece_bytes, " bytes");
    }
    command.flows.push_back(flow);
  }
  return command;
}

double RateBetween(const std::vector<Arrival>& arrivals, double from_seconds, double to_seconds,
                   bool ended) {
  if (arrivals.empty()) return 0;
  double begin = from_seconds, end = to_seconds;
  if (ended && arrivals.back().seconds < end) {
    end = arrivals.back().seconds;
    begin = std::min(begin, end / 3);
  }
  double bytes = 0, before = 0;
  for (const Arrival& arrival : arrivals) {
    const double span = arrival.seconds - before;
    const double inside = std::min(arrival.seconds, end) - std::max(before, begin);
    if (inside > 0) bytes += arrival.bytes * std::min(1.0, inside / span);
    before = arrival.seconds;
  }
  return end > begin ? bytes / (end - begin) : 0;
}

}  // namespace syncopate::probe
