// Several pieces of data that take the same way through the network, one behind the other.
//
// A planner notes the messages of one piece, each with its stage. Emit() writes them for all pieces
// in the order of time if every stage took one unit: piece q is at stage s at time q + s. So also
// transports that deliver the messages of a pair in order keep all stages busy.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_PIPELINE_H_
#define SYNCOPATE_PLAN_COLLECTIVE_PIPELINE_H_

#include <cstdint>
#include <vector>

#include "plan/collective/program_builder.h"

namespace syncopate::plan {

class Pipeline {
 public:
  // Piece q has the chunks [q * chunks, (q + 1) * chunks) of each space; calls name those of piece
  // 0.
  Pipeline(uint32_t data_chunks, uint32_t scratch_chunks)
      : data_chunks_(data_chunks), scratch_chunks_(scratch_chunks) {}

  // As in ProgramBuilder. Messages of one stage come in the order of the calls.
  void Move(int stage, int from, Chunks source, int to, Chunks destination) {
    Add(stage, {false, from, source, to, destination});
  }
  void MoveReduce(int stage, int from, Chunks source, int to, Chunks destination) {
    Add(stage, {true, from, source, to, destination});
  }
  void Move(int stage, int from, int to, Chunks chunks) { Move(stage, from, chunks, to, chunks); }
  void MoveReduce(int stage, int from, int to, Chunks chunks) {
    MoveReduce(stage, from, chunks, to, chunks);
  }

  void Emit(int pieces, ProgramBuilder* builder) const;

 private:
  struct Message {
    bool reduce = false;
    int from = 0;
    Chunks source;
    int to = 0;
    Chunks destination;
  };

  void Add(int stage, const Message& message);
  // The same chunks in another piece.
  Chunks InPiece(Chunks chunks, uint32_t piece) const;

  uint32_t data_chunks_;
  uint32_t scratch_chunks_;
  std::vector<std::vector<Message>> stages_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_PIPELINE_H_
