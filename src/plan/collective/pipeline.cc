// Several pieces of data that take the same way through the network.
#include "plan/collective/pipeline.h"

#include <algorithm>

namespace syncopate::plan {

void Pipeline::Emit(int pieces, ProgramBuilder* builder) const {
  const int stages = static_cast<int>(stages_.size());
  for (int time = 0; time < pieces + stages - 1; ++time) {
    for (int piece = std::max(0, time - stages + 1); piece <= std::min(time, pieces - 1); ++piece) {
      const uint32_t q = static_cast<uint32_t>(piece);
      for (const Message& message : stages_[static_cast<size_t>(time - piece)]) {
        const Chunks source = InPiece(message.source, q);
        const Chunks destination = InPiece(message.destination, q);
        if (message.reduce) {
          builder->MoveReduce(message.from, source, message.to, destination);
        } else {
          builder->Move(message.from, source, message.to, destination);
        }
      }
    }
  }
}

void Pipeline::Add(int stage, const Message& message) {
  const size_t index = static_cast<size_t>(stage);
  if (stages_.size() <= index) stages_.resize(index + 1);
  stages_[index].push_back(message);
}

Chunks Pipeline::InPiece(Chunks chunks, uint32_t piece) const {
  chunks.first += piece * (chunks.space == Space::kData ? data_chunks_ : scratch_chunks_);
  return chunks;
}

}  // namespace syncopate::plan
