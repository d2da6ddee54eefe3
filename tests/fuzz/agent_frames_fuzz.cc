// Bytes from an agent: any of them are frames, need more, or an error; a start that is read can be
// written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "launch/agent_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  // The first byte says in which pieces they come.
  const size_t piece = 1 + data[0];
  syncopate::launch::FrameReader reader;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    reader.Add(bytes.substr(at, piece));
    while (true) {
      const auto frame = reader.Next();
      if (!frame.ok()) return 0;
      if (!frame->has_value()) break;
      const auto start = syncopate::launch::DecodeStart((*frame)->bytes);
      if (!start.ok()) continue;
      if (!syncopate::launch::DecodeStart(syncopate::launch::EncodeStart(*start)).ok())
        std::abort();
    }
  }
  return 0;
}
