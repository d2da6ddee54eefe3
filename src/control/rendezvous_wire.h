// What server and client of the rendezvous must agree on: the texts that are proved (docs/wire.md)
// and the limits of messages.
#ifndef SYNCOPATE_CONTROL_RENDEZVOUS_WIRE_H_
#define SYNCOPATE_CONTROL_RENDEZVOUS_WIRE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/limits.h"
#include "base/proof.h"
#include "control/rendezvous.grpc.pb.h"

namespace syncopate::control {

// A request, with room for what protobuf adds.
inline constexpr int kRendezvousRequestBytesMax =
    static_cast<int>(limits::kMeetingPayloadBytesMax + limits::kHostNameBytesMax +
                     limits::kEnvironmentValueBytesMax + 1024);
// The answer to a worker of a job of `size`.
inline int RendezvousReplyBytesMax(int size) {
  return size * static_cast<int>(limits::kMeetingPayloadBytesMax + limits::kHostNameBytesMax + 16) +
         1024;
}
inline constexpr int64_t kRendezvousWaitMsMax = 7 * 24 * 3'600'000;

inline ProofText JoinProof(absl::string_view meeting_nonce, const wire::JoinRequest& request) {
  return ProofText("syncopate rendezvous join")
      .Add(meeting_nonce)
      .Add(request.nonce())
      .Add(request.job())
      .AddNumber(request.rank())
      .AddNumber(request.size())
      .Add(request.host())
      .Add(request.payload())
      .AddNumber(request.wait_ms())
      .AddNumber(request.round());
}

inline ProofText MetProof(absl::string_view meeting_nonce, absl::string_view worker_nonce,
                          const wire::JoinReply& reply) {
  ProofText text("syncopate rendezvous met");
  text.Add(meeting_nonce).Add(worker_nonce).AddNumber(reply.hosts_size());
  for (const std::string& host : reply.hosts()) text.Add(host);
  for (const std::string& payload : reply.payloads()) text.Add(payload);
  return text;
}

// The key of the met workers: a new one for every meeting, also where the job's key repeats.
inline ProofText MeetingKey(absl::string_view meeting_nonce, absl::string_view job, int round) {
  return ProofText("syncopate meeting key").Add(meeting_nonce).Add(job).AddNumber(round);
}

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_RENDEZVOUS_WIRE_H_
