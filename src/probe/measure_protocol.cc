#include "probe/measure_protocol.h"

#include <algorithm>
#include <cmath>
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

template <typename... Args>
absl::Status Refuse(const Args&... what) {
  return absl::InvalidArgumentError(absl::StrCat("an instruction of the probe has ", what...));
}

template <typename... Args>
absl::Status RefuseAnswer(const Args&... what) {
  return absl::InvalidArgumentError(absl::StrCat("an answer of the probe has ", what...));
}

bool IsSensible(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

std::string EncodeHead(const Instruction& instruction) {
  std::string out;
  Append(out, static_cast<uint32_t>(instruction.kind));
  Append(out, instruction.pieces);
  Append(out, instruction.seconds);
  Append(out, static_cast<uint64_t>(instruction.flows.size()));
  return out;
}

std::string EncodeFlows(const Instruction& instruction) {
  std::string out;
  for (const Instruction::Flow& flow : instruction.flows) {
    Append(out, flow.from);
    Append(out, flow.to);
    Append(out, flow.piece_bytes);
  }
  return out;
}

absl::StatusOr<Instruction> DecodeHead(absl::string_view bytes) {
  if (bytes.size() != kHeadBytes) return Refuse(bytes.size(), " bytes in its head");
  Instruction instruction;
  const uint32_t kind = Take<uint32_t>(bytes);
  if (kind < 1 || kind > 4) return Refuse("the unknown kind ", kind);
  instruction.kind = static_cast<Instruction::Kind>(kind);
  instruction.pieces = Take<uint32_t>(bytes);
  const bool ping = instruction.kind == Instruction::Kind::kPing;
  if (instruction.pieces > (ping ? kPingsMax : kPiecesMax))
    return Refuse(instruction.pieces, " pieces");
  instruction.seconds = Take<double>(bytes);
  if (!(instruction.seconds >= 0 && instruction.seconds <= kSecondsMax)) {
    return Refuse("a length of ", instruction.seconds, " s");
  }
  const uint64_t flows = Take<uint64_t>(bytes);
  if (flows > kFlowsMax || (ping && flows != 1)) return Refuse(flows, " flows");
  instruction.flows.resize(flows);
  return instruction;
}

absl::Status DecodeFlows(absl::string_view bytes, uint32_t ranks, Instruction& instruction) {
  if (bytes.size() != instruction.flows.size() * kFlowBytes) {
    return Refuse(bytes.size(), " bytes of flows");
  }
  for (Instruction::Flow& flow : instruction.flows) {
    flow.from = Take<uint32_t>(bytes);
    flow.to = Take<uint32_t>(bytes);
    flow.piece_bytes = Take<uint32_t>(bytes);
    if (flow.from >= ranks || flow.to >= ranks || flow.from == flow.to) {
      return Refuse("a flow from ", flow.from, " to ", flow.to);
    }
    if (flow.piece_bytes < kPieceBytesMin || flow.piece_bytes > kPieceBytesMax) {
      return Refuse("pieces of ", flow.piece_bytes, " bytes");
    }
  }
  return absl::OkStatus();
}

std::string EncodeAnswer(const FlowsAnswer& answer) {
  std::string out;
  Append(out, answer.stolen);
  Append(out, static_cast<uint64_t>(answer.flows.size()));
  for (const FlowsAnswer::Flow& flow : answer.flows) {
    Append(out, flow.rate);
    Append(out, flow.ended_seconds);
  }
  return out;
}

absl::StatusOr<FlowsAnswer> DecodeAnswer(absl::string_view bytes, uint64_t received) {
  if (received > kFlowsMax) return RefuseAnswer(received, " flows");
  if (bytes.size() != kAnswerHeadBytes + kAnswerFlowBytes * received) {
    return RefuseAnswer(bytes.size(), " bytes for ", received, " flows");
  }
  FlowsAnswer answer;
  answer.stolen = Take<double>(bytes);
  if (!(answer.stolen >= 0 && answer.stolen <= 1)) {
    return RefuseAnswer("a share of stolen time of ", answer.stolen);
  }
  const uint64_t flows = Take<uint64_t>(bytes);
  if (flows != received) return RefuseAnswer(flows, " flows instead of ", received);
  answer.flows.resize(received);
  for (FlowsAnswer::Flow& flow : answer.flows) {
    flow.rate = Take<double>(bytes);
    flow.ended_seconds = Take<double>(bytes);
    if (!IsSensible(flow.rate)) return RefuseAnswer("a rate of ", flow.rate);
    if (!IsSensible(flow.ended_seconds)) {
      return RefuseAnswer("a flow that ended after ", flow.ended_seconds, " s");
    }
  }
  return answer;
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
  for (size_t i = 0; i < arrivals.size();) {
    const double at = arrivals[i].seconds;
    double together = 0;  // pieces that were found at the same time
    for (; i < arrivals.size() && arrivals[i].seconds == at; ++i) together += arrivals[i].bytes;
    const double inside = std::min(at, end) - std::max(before, begin);
    if (inside > 0) bytes += together * std::min(1.0, inside / (at - before));
    before = at;
  }
  return end > begin ? bytes / (end - begin) : 0;
}

}  // namespace syncopate::probe
