// Hand-made programs for tests. They are independent of the planners on purpose.
#ifndef SYNCOPATE_MODEL_PROGRAM_SAMPLES_H_
#define SYNCOPATE_MODEL_PROGRAM_SAMPLES_H_

#include <cstdint>
#include <vector>

#include "model/program.h"

namespace syncopate::samples {

using After = std::vector<uint32_t>;

// The text of docs/program.md, "A worked example".
inline constexpr char kPair[] = R"(syncopate program 1
collective all-reduce
algorithm pair
workers 2
active 0-1
data 2x512
worker 0
  0: send data 1 to 1
  1: receive-reduce data 0 from 1
  2: send data 0 to 1 after 1
  3: receive data 1 from 1 after 0
worker 1
  0: send data 0 to 0
  1: receive-reduce data 1 from 0
  2: send data 1 to 0 after 1
  3: receive data 0 from 0 after 0
end
)";

inline Step Message(StepKind kind, int peer, uint32_t chunk, const After& after, uint32_t count,
                    Space space) {
  Step step;
  step.kind = kind;
  step.space = space;
  step.peer = peer;
  step.chunk = chunk;
  step.count = count;
  step.after.assign(after.begin(), after.end());
  return step;
}
inline Step Send(int to, uint32_t chunk, const After& after = {}, uint32_t count = 1,
                 Space space = Space::kData) {
  return Message(StepKind::kSend, to, chunk, after, count, space);
}
inline Step Receive(int from, uint32_t chunk, const After& after = {}, uint32_t count = 1,
                    Space space = Space::kData) {
  return Message(StepKind::kReceive, from, chunk, after, count, space);
}
inline Step ReceiveReduce(int from, uint32_t chunk, const After& after = {}, uint32_t count = 1,
                          Space space = Space::kData) {
  return Message(StepKind::kReceiveReduce, from, chunk, after, count, space);
}
inline Step Copy(Space to, uint32_t chunk, Space from, uint32_t source, const After& after = {},
                 uint32_t count = 1) {
  Step step = Message(StepKind::kCopy, -1, chunk, after, count, to);
  step.source_space = from;
  step.source_chunk = source;
  return step;
}
inline Step Reduce(Space to, uint32_t chunk, Space from, uint32_t source, const After& after = {},
                   uint32_t count = 1) {
  Step step = Copy(to, chunk, from, source, after, count);
  step.kind = StepKind::kReduce;
  return step;
}

// A program without steps; every chunk has `chunk_elements` elements, all workers are active.
inline Program Empty(Collective collective, int workers, uint32_t chunks,
                     uint64_t chunk_elements = 4) {
  Program program;
  program.collective = collective;
  program.algorithm = "by hand";
  program.workers = workers;
  for (int worker = 0; worker < workers; ++worker) program.active.push_back(worker);
  if (HasRoot(collective)) program.root = 0;
  if (collective == Collective::kSendReceive) program.target = workers - 1;
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    program.data_bounds.push_back(program.data_bounds.back() + chunk_elements);
  }
  if (HasBlocks(collective)) {
    const uint32_t count = static_cast<uint32_t>(workers);
    for (uint32_t block = 0; block <= count; ++block) {
      program.blocks.push_back(chunks / count * block);
    }
  }
  program.steps.resize(static_cast<size_t>(workers));
  return program;
}

// The ring: partial sums travel once around, then the results do. One chunk per worker.
inline Program RingAllReduce(int workers, uint64_t chunk_elements = 4) {
  Program program =
      Empty(Collective::kAllReduce, workers, static_cast<uint32_t>(workers), chunk_elements);
  for (int worker = 0; worker < workers && workers > 1; ++worker) {
    std::vector<Step>& steps = program.steps[worker];
    const auto chunk = [&](int back) {
      return static_cast<uint32_t>((worker + 2 * workers - back) % workers);
    };
    const int next = (worker + 1) % workers;
    const int previous = (worker + workers - 1) % workers;
    for (int round = 0; round < 2 * (workers - 1); ++round) {
      After after;
      if (round > 0) after.push_back(static_cast<uint32_t>(2 * round - 1));
      steps.push_back(Send(next, chunk(round), after));
      // A chunk is received a second time n rounds later; its send must be done by then.
      After before;
      if (round + 1 >= workers) before.push_back(static_cast<uint32_t>(2 * (round + 1 - workers)));
      if (round > 0) before.push_back(static_cast<uint32_t>(2 * round - 1));
      steps.push_back(round < workers - 1 ? ReceiveReduce(previous, chunk(round + 1), before)
                                          : Receive(previous, chunk(round + 1), before));
    }
  }
  return program;
}

// The direct exchange: worker i adds up chunk i from everybody, then sends the sum to everybody.
inline Program DirectAllReduce(int workers, uint64_t chunk_elements = 4) {
  Program program =
      Empty(Collective::kAllReduce, workers, static_cast<uint32_t>(workers), chunk_elements);
  for (int worker = 0; worker < workers; ++worker) {
    std::vector<Step>& steps = program.steps[worker];
    std::vector<uint32_t> sent(workers);
    const auto index = [&] { return static_cast<uint32_t>(steps.size()); };
    for (int peer = 0; peer < workers; ++peer) {
      if (peer == worker) continue;
      sent[peer] = index();
      steps.push_back(Send(peer, static_cast<uint32_t>(peer)));
    }
    After last;
    for (int peer = 0; peer < workers; ++peer) {
      if (peer == worker) continue;
      steps.push_back(ReceiveReduce(peer, static_cast<uint32_t>(worker), last));
      last = {index() - 1};
    }
    for (int peer = 0; peer < workers; ++peer) {
      if (peer == worker) continue;
      steps.push_back(Send(peer, static_cast<uint32_t>(worker), last));
      steps.push_back(Receive(peer, static_cast<uint32_t>(peer), {sent[peer]}));
    }
  }
  return program;
}

}  // namespace syncopate::samples

#endif  // SYNCOPATE_MODEL_PROGRAM_SAMPLES_H_
