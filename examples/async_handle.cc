// Communication behind computation: start an all-reduce, compute something else, wait for it.
//
//   syncopate launch -n 4 -- ./async_handle
#include <cstdio>
#include <vector>

#include "syncopate/syncopate.h"

absl::Status Run() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  constexpr uint64_t kElements = 1 << 20;
  constexpr int kParts = 4;

  // Two operations under way at once. Until its handle is done, the data belongs to the operation.
  std::vector<syncopate::Buffer> buffers;
  std::vector<syncopate::Handle> handles;
  for (int part = 0; part < 2; ++part) {
    auto buffer = (*worker)->Allocate(kElements * sizeof(float));
    if (!buffer.ok()) return buffer.status();
    float* numbers = buffer->as<float>();
    for (uint64_t i = 0; i < kElements; ++i) {
      numbers[i] = static_cast<float>((*worker)->rank() + part);
    }
    handles.push_back((*worker)->world().Start({.data = syncopate::Array::Of(numbers, kElements),
                                                .op = syncopate::ReduceOp::kAverage,
                                                .priority = part}));  // the second goes first
    buffers.push_back(*std::move(buffer));
  }

  // Something to do meanwhile, in parts; Done() tells without waiting.
  double series = 0;
  int parts_before_the_end = 0;
  for (int part = 0; part < kParts; ++part) {
    for (int i = part; i < 1'000'000; i += kParts) series += 1.0 / (1.0 + i) / (1.0 + i);
    if (!handles[0].Done()) ++parts_before_the_end;
  }

  // Every handle is waited for: Wait() is where an error comes to light.
  for (syncopate::Handle& handle : handles) {
    if (const absl::Status status = handle.Wait(); !status.ok()) return status;
  }
  std::printf("rank %d of %d: the means are %g and %g, the series is %.3f\n", (*worker)->rank(),
              (*worker)->size(), buffers[0].as<float>()[7], buffers[1].as<float>()[7], series);
  std::fprintf(stderr, "rank %d: %d of %d parts were computed while data was under way\n",
               (*worker)->rank(), parts_before_the_end, kParts);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
