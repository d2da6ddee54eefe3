#include "control/rendezvous_client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/wait_notice.h"
#include "control/grpc_setup.h"
#include "control/knock.h"
#include "control/rendezvous_wire.h"

namespace syncopate::control {
namespace {

// How long one address may take to let us in.
constexpr int64_t kKnockNs = 3'000'000'000;
// The pause between two rounds of all addresses.
constexpr int64_t kBetweenNs = 50'000'000;
// The server answers this long before our deadline, so that its answer, which names the missing
// workers, still reaches us.
constexpr int64_t kAnswerNs = 1'000'000'000;

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

std::shared_ptr<grpc::Channel> ChannelOver(UniqueFd fd, int size) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(RendezvousReplyBytesMax(size));
  arguments.SetMaxSendMessageSize(kRendezvousRequestBytesMax);
  return grpc::CreateCustomInsecureChannelFromFd("rendezvous", fd.Release(), arguments);
}

// Sleeps without a clock of its own.
void Rest(int64_t ns) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  never.WaitFor(&mutex, std::chrono::nanoseconds(ns));
}

absl::StatusOr<Welcome> FindServer(const MeetingOptions& options,
                                   const std::vector<std::string>& addresses, const Clock& clock) {
  absl::Status last = absl::UnavailableError("no time was left to ask");
  WaitNotice notice(clock.NowNs());
  while (true) {
    if (notice.Due(clock.NowNs())) {
      Log(LogLevel::kWarn, "waiting for the rendezvous at ", addresses.front(), ": ",
          last.message());
    }
    for (const std::string& address : addresses) {
      const int64_t now_ns = clock.NowNs();
      if (now_ns >= options.deadline_ns) {
        return absl::DeadlineExceededError(
            absl::StrCat("no rendezvous of job \"", options.job, "\" at ",
                         absl::StrJoin(addresses, " or "), "; the last try: ", last.message(),
                         "; is it started, and does the network reach it from here?"));
      }
      auto welcome =
          Knock(address, options.key, clock, std::min(options.deadline_ns, now_ns + kKnockNs));
      if (welcome.ok() || absl::IsInvalidArgument(welcome.status())) return welcome;
      last = welcome.status();
      // With one address there is no other server to ask that might know the key.
      if (addresses.size() == 1 && absl::IsPermissionDenied(last)) return At(address, last);
    }
    Rest(std::min(kBetweenNs, std::max<int64_t>(options.deadline_ns - clock.NowNs(), 0)));
  }
}

absl::Status CheckReply(const wire::JoinReply& reply, const std::string& meeting_nonce,
                        const MeetingOptions& options, const std::string& nonce) {
  if (reply.hosts_size() != options.size || reply.payloads_size() != options.size ||
      !MetProof(meeting_nonce, nonce, reply).IsProvedBy(options.key, reply.proof())) {
    return absl::PermissionDeniedError(
        "the rendezvous gave an answer that its key does not prove; somebody is between");
  }
  const bool fits = std::all_of(
      reply.payloads().begin(), reply.payloads().end(),
      [](const std::string& payload) { return payload.size() <= limits::kMeetingPayloadBytesMax; });
  if (!fits) return absl::InternalError("the rendezvous gave a payload beyond the limit");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Meeting> JoinMeeting(const MeetingOptions& options,
                                    const std::vector<std::string>& addresses, const Clock& clock) {
  const GrpcLease grpc;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string nonce, RandomBytes(kNonceBytes));
  SYNCOPATE_ASSIGN_OR_RETURN(Welcome welcome, FindServer(options, addresses, clock));
  const std::string& meeting_nonce = welcome.meeting_nonce;
  const int64_t left_ns = std::max<int64_t>(options.deadline_ns - clock.NowNs(), 0);
  wire::JoinRequest request;
  request.set_nonce(nonce);
  request.set_job(options.job);
  request.set_rank(options.rank);
  request.set_size(options.size);
  request.set_host(options.host);
  request.set_payload(options.payload);
  request.set_round(std::max(options.round, 0));
  request.set_wait_ms((left_ns - std::min(kAnswerNs, left_ns / 4)) / 1'000'000);
  request.set_proof(JoinProof(meeting_nonce, request).ProofBy(options.key));
  const auto stub = wire::Rendezvous::NewStub(ChannelOver(std::move(welcome.fd), options.size));
  grpc::ClientContext context;
  context.set_deadline(GrpcTimeout(left_ns));
  wire::JoinReply reply;
  SYNCOPATE_RETURN_IF_ERROR(At("rendezvous", FromGrpc(stub->Join(&context, request, &reply))));
  SYNCOPATE_RETURN_IF_ERROR(CheckReply(reply, meeting_nonce, options, nonce));
  Meeting meeting;
  meeting.key = MeetingKey(meeting_nonce, options.job, request.round()).ProofBy(options.key);
  meeting.hosts.assign(reply.hosts().begin(), reply.hosts().end());
  meeting.payloads.assign(reply.payloads().begin(), reply.payloads().end());
  return meeting;
}

}  // namespace syncopate::control
