// Mail of rounds of texts: decoding, and what a worker's book makes of a row of them, while it begins
// rounds of its own and peers are lost.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"
#include "worker/round_mail.h"
#include "worker/text_rounds.h"

// The input is a row of entries: what is done (its low bits) and to or from which worker, the length
// of the mail, the mail.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  constexpr int kSize = 3;
  worker::TextRounds rounds(0, kSize);
  std::vector<uint64_t> begun;
  ByteReader reader(absl::string_view(reinterpret_cast<const char*>(data), size));
  while (reader.left() > 0 && reader.ok()) {
    const auto action = reader.Read<uint8_t>();
    const int peer = 1 + (action >> 2) % (kSize - 1);
    if (action % 4 == 0) {
      begun.push_back(rounds.Begin({.what = "x", .text = "mine", .root = (action >> 2) % 4 - 1}));
      rounds.AwaitTaken(begun.back(), peer);
    } else if (action == 0xff) {
      rounds.Gone(peer, absl::UnavailableError("it died"));
    } else {
      const absl::string_view bytes = reader.ReadBytes(reader.Read<uint8_t>());
      absl::StatusOr<worker::RoundMail> mail = worker::DecodeRoundMail(bytes);
      if (!mail.ok()) continue;
      if (Encode(*mail) != bytes) abort();  // there is one way to write each
      rounds.Arrived(peer, *std::move(mail));
    }
  }
  for (const uint64_t round : begun) {
    const bool done = rounds.Done(round);
    if (!done && rounds.Missing(round).empty()) abort();  // it would wait for nobody
    if (!done) {
      rounds.Forget(round);
    } else if (const auto texts = rounds.Take(round); texts.ok() && texts->size() != kSize) {
      abort();
    }
  }
  return 0;
}
