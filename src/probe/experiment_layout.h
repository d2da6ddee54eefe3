// Where an experiment of the probe keeps things in a worker's memory, and how its steps are
// numbered.
//
// All workers derive the same offsets and numbers from the instruction alone, so that nothing of
// this travels. Offsets are within the memory that the probe allocates from the transport.
#ifndef SYNCOPATE_PROBE_EXPERIMENT_LAYOUT_H_
#define SYNCOPATE_PROBE_EXPERIMENT_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "probe/measure_protocol.h"

namespace syncopate::probe {

// The steps that one session may have.
inline constexpr uint32_t kStepsMax = 1 << 16;

// First comes what an experiment needs for itself, once for each of those that can be under way at
// the same time, then the bytes that all flows send.
inline constexpr size_t kUnderWayMax = 4;
inline constexpr uint64_t kHeadOffset = 0;
inline constexpr uint64_t kFlowsOffset = 64;
inline constexpr uint64_t kAnswerOffset = kFlowsOffset + kFlowBytes * kFlowsMax;
inline constexpr uint64_t kSmallOffset =
    kAnswerOffset + kAnswerHeadBytes + kAnswerFlowBytes * kFlowsMax;
inline constexpr uint64_t kExperimentBytes = kSmallOffset + 8 * uint64_t{kStepsMax};
inline constexpr uint64_t kPiecesOffset = kUnderWayMax * kExperimentBytes;
inline constexpr uint64_t kMemoryBytes = kPiecesOffset + kPieceBytesMax;

// Rank 0 uses step RANK to send a head, SIZE + RANK to take an answer and 2 * SIZE + RANK to send a
// list of flows. The other ranks use these.
inline constexpr uint32_t kHeadStep = 0, kAnswerStep = 1, kFlowsStep = 2;
// The steps of flows and pings come after all of those.
inline constexpr uint32_t FirstStep(int size) { return 3 * static_cast<uint32_t>(size) + 3; }

// The index of a flow among those that the worker `rank` sends or receives.
inline uint32_t SlotOf(const Instruction& instruction, size_t flow, uint32_t rank) {
  uint32_t slot = 0;
  for (size_t i = 0; i < flow; ++i) {
    slot += instruction.flows[i].from == rank || instruction.flows[i].to == rank ? 1 : 0;
  }
  return slot;
}

// How many flows of the instruction the worker `rank` receives.
inline uint64_t Received(const Instruction& instruction, uint32_t rank) {
  uint64_t received = 0;
  for (const Instruction::Flow& flow : instruction.flows) received += flow.to == rank ? 1 : 0;
  return received;
}

// The size of the answer of the worker `rank`.
inline uint64_t AnswerBytes(const Instruction& instruction, uint32_t rank) {
  if (instruction.kind == Instruction::Kind::kName) return kNameBytes;
  return kAnswerHeadBytes + kAnswerFlowBytes * Received(instruction, rank);
}

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_EXPERIMENT_LAYOUT_H_
