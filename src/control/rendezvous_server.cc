#include "control/rendezvous_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/wait_notice.h"
#include "control/door.h"
#include "control/grpc_setup.h"
#include "control/interfaces.h"
#include "control/rendezvous_wire.h"

namespace syncopate::control {
namespace {

// The time for answers that are in flight when the server ends.
constexpr int64_t kShutdownNs = 1'000'000'000;
constexpr int kMetadataBytesMax = 4'096;
// The most answers in flight. It bounds the memory, since each holds what all workers brought.
constexpr int kUnsentMax = 32;
// The most calls at once on one connection.
constexpr int kStreamsMax = 4;
constexpr int kKeepaliveMs = 10'000;
// With more memory in use, gRPC turns new calls away.
constexpr size_t kMemoryBytesMax = size_t{128} << 20;

// A call that gRPC's queue tells about. It counts what the queue still owes it and is deleted when
// that is nothing.
class Call {
 public:
  // What the queue hands back.
  struct Tag {
    Call* call;
    void (Call::*happened)(bool ok);
  };
  virtual ~Call() = default;

  static void Handle(void* tag, bool ok) {
    const Tag& event = *static_cast<Tag*>(tag);
    Call* call = event.call;
    --call->owed_;
    (call->*event.happened)(ok);
    if (call->owed_ == 0) delete call;
  }

 protected:
  void* Expect(Tag& tag) {
    ++owed_;
    return &tag;
  }

 private:
  int owed_ = 0;
};

class Server final : public RendezvousServer {
 public:
  Server(RendezvousServerOptions options, services::RendezvousState state, std::string nonce,
         const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        nonce_(std::move(nonce)),
        state_(std::move(state)) {}

  ~Server() override {
    door_.reset();
    if (!thread_.joinable()) return;  // never served
    stop_.Set(queue_.get(), GrpcTimeout(0), this);
    thread_.join();
  }

  absl::Status Listen();
  const std::string& address() const override { return address_; }
  bool WaitUntilAnswered(int64_t deadline_ns) override;

 private:
  class JoinCall;

  void Serve();
  void Drain();
  int64_t TellWaiting();
  void Apply(const services::RendezvousEvent& event);
  void Answer(services::CallId id, const absl::Status& status);
  void SendAnswers();
  void Forget(const JoinCall& call);
  void NoteAnswered();

  const RendezvousServerOptions options_;
  const Clock& clock_;
  const std::string nonce_;
  std::string address_;

  const GrpcLease grpc_;  // before what needs it
  wire::Rendezvous::AsyncService methods_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  grpc::Alarm stop_;
  std::unique_ptr<Door> door_;

  // The serving thread's own.
  services::RendezvousState state_;
  services::CallId next_call_ = 1;
  std::optional<WaitNotice> notice_;  // since the first worker came
  std::map<services::CallId, JoinCall*> waiting_;
  struct Decided {
    JoinCall* call;
    absl::Status status;
    std::shared_ptr<const wire::JoinReply> met;  // if OK
  };
  std::deque<Decided> decided_;  // not sent yet
  // What all brought to the meeting `met_round_`. A copy, since they may meet again before all
  // answers are sent.
  std::shared_ptr<const wire::JoinReply> met_;
  int met_round_ = -1;
  int unsent_ = 0;  // answers that gRPC has not taken to the network yet
  bool stopping_ = false;

  Mutex mutex_;
  CondVar changed_;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

// A call of a worker, or of something that claims to be one, to take part.
class Server::JoinCall final : public Call {
 public:
  explicit JoinCall(Server& server) : server_(server) {
    context_.AsyncNotifyWhenDone(&done_);
    server_.methods_.RequestJoin(&context_, &request_, &writer_, server_.queue_.get(),
                                 server_.queue_.get(), Expect(arrived_));
  }

  // `met` is what all brought, if OK.
  void Finish(const absl::Status& status, const wire::JoinReply* met) {
    finished_ = true;
    ++server_.unsent_;
    if (!status.ok()) {
      writer_.FinishWithError({static_cast<grpc::StatusCode>(status.code()),
                               std::string(status.message().substr(0, kErrorBytesMax))},
                              Expect(sent_));
      return;
    }
    wire::JoinReply reply = *met;
    reply.set_proof(
        MetProof(server_.nonce_, request_.nonce(), reply).ProofBy(server_.options_.key));
    writer_.Finish(reply, grpc::Status::OK, Expect(sent_));
  }

 private:
  static constexpr size_t kErrorBytesMax = 2048;  // it travels in a header

  void Arrived(bool ok) {
    if (!ok) return;  // the server ends; nothing else comes
    Expect(done_);
    new JoinCall(server_);
    id_ = server_.next_call_++;
    if (!JoinProof(server_.nonce_, request_).IsProvedBy(server_.options_.key, request_.proof())) {
      Finish(absl::PermissionDeniedError(
                 "the worker does not know the job's key; check SYNCOPATE_KEY"),
             nullptr);
      return;
    }
    server_.waiting_[id_] = this;
    const int64_t wait_ms = std::clamp<int64_t>(request_.wait_ms(), 0, kRendezvousWaitMsMax);
    server_.Apply(services::JoinEvent{.call = id_,
                                      .job = request_.job(),
                                      .rank = request_.rank(),
                                      .size = request_.size(),
                                      .round = request_.round(),
                                      .host = request_.host(),
                                      .payload = request_.payload(),
                                      .deadline_ns = server_.clock_.NowNs() + wait_ms * 1'000'000});
  }
  void Sent(bool) {
    --server_.unsent_;
    server_.SendAnswers();
  }
  // The worker has its answer, or does not want one any more.
  void Done(bool) {
    if (finished_) return;
    if (server_.waiting_.erase(id_) > 0) return server_.Apply(services::LeaveEvent{id_});
    server_.Forget(*this);
  }

  Server& server_;
  services::CallId id_ = 0;
  bool finished_ = false;
  grpc::ServerContext context_;
  wire::JoinRequest request_;
  grpc::ServerAsyncResponseWriter<wire::JoinReply> writer_{&context_};
  Tag arrived_{this, static_cast<void (Call::*)(bool)>(&JoinCall::Arrived)};
  Tag sent_{this, static_cast<void (Call::*)(bool)>(&JoinCall::Sent)};
  Tag done_{this, static_cast<void (Call::*)(bool)>(&JoinCall::Done)};
};

absl::Status Server::Listen() {
  SYNCOPATE_ASSIGN_OR_RETURN(Listener listener, ListenAt(options_.address, options_.port));
  address_ = JoinAddress(options_.address, listener.port);
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("syncopate rendezvous");
  builder.SetResourceQuota(quota.Resize(kMemoryBytesMax));
  builder.SetMaxReceiveMessageSize(kRendezvousRequestBytesMax);
  builder.SetMaxSendMessageSize(RendezvousReplyBytesMax(options_.size));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  // A worker that vanished without a word is noticed while it waits.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.RegisterService(&methods_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC cannot start a server");
  thread_ = std::thread([this] { Serve(); });
  door_ = Door::Open(
      std::move(listener),
      {.key = options_.key,
       .meeting_nonce = nonce_,
       .welcome =
           [this](UniqueFd fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd.Release()); }},
      clock_);
  return absl::OkStatus();
}

void Server::Serve() {
  new JoinCall(*this);
  while (!stopping_) {
    const int64_t next_ns = std::min(services::NextDeadlineNs(state_), TellWaiting());
    void* tag = nullptr;
    bool ok = false;
    const auto status = queue_->AsyncNext(
        &tag, &ok, next_ns == INT64_MAX ? GrpcForever() : GrpcTimeout(next_ns - clock_.NowNs()));
    if (status == grpc::CompletionQueue::SHUTDOWN) return;
    if (status == grpc::CompletionQueue::TIMEOUT) {
      Apply(services::TimeEvent{});
    } else if (tag == this) {
      stopping_ = true;
    } else {
      Call::Handle(tag, ok);
    }
  }
  const absl::Status over = absl::UnavailableError("the rendezvous ends: its owner has ended");
  while (!waiting_.empty()) Answer(waiting_.begin()->first, over);
  SendAnswers();
  server_->Shutdown(GrpcTimeout(kShutdownNs));
  Drain();
}

// Says who is missing if that is due. Returns when to ask again.
int64_t Server::TellWaiting() {
  const bool waiting =
      state_.phase == services::RendezvousState::Phase::kGathering && state_.taken > 0;
  if (!waiting) {
    notice_.reset();
    return INT64_MAX;
  }
  const int64_t now_ns = clock_.NowNs();
  if (!notice_.has_value()) notice_.emplace(now_ns);
  if (notice_->Due(now_ns)) {
    const std::string missing = DescribeMissing(state_);
    if (options_.on_waiting) {
      options_.on_waiting(missing);
    } else {
      Log(LogLevel::kWarn, "waiting for ", missing);
    }
  }
  return notice_->next_ns();
}

void Server::Drain() {
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    if (tag != this) Call::Handle(tag, ok);
  }
}

void Server::Apply(const services::RendezvousEvent& event) {
  const services::RendezvousStep step = Step(clock_.NowNs(), event, state_);
  if (step.reason.empty()) return;
  Log(LogLevel::kInfo, "rendezvous: ", step.reason);
  for (const services::RendezvousAnswer& answer : step.answers) Answer(answer.call, answer.status);
  if (options_.on_step) options_.on_step(state_);
  SendAnswers();
}

void Server::Answer(services::CallId id, const absl::Status& status) {
  auto call = waiting_.find(id);
  if (call == waiting_.end()) return;
  if (status.ok() && met_round_ != state_.round) {
    auto met = std::make_shared<wire::JoinReply>();
    for (const services::RendezvousState::Seat& seat : state_.seats) {
      met->add_hosts(seat.host);
      met->add_payloads(seat.payload);
    }
    met_ = std::move(met);
    met_round_ = state_.round;
  }
  decided_.push_back({call->second, status, status.ok() ? met_ : nullptr});
  waiting_.erase(call);
}

void Server::SendAnswers() {
  while (!decided_.empty() && (unsent_ < kUnsentMax || stopping_)) {
    const Decided next = std::move(decided_.front());
    decided_.pop_front();
    next.call->Finish(next.status, next.met.get());
  }
  NoteAnswered();
}

void Server::Forget(const JoinCall& call) {
  std::erase_if(decided_, [&](const Decided& each) { return each.call == &call; });
  NoteAnswered();
}

void Server::NoteAnswered() {
  const bool over = state_.phase != services::RendezvousState::Phase::kGathering;
  if (!over || unsent_ > 0 || !decided_.empty() || !waiting_.empty()) return;
  MutexLock lock(&mutex_);
  answered_ = true;
  changed_.SignalAll();
}

bool Server::WaitUntilAnswered(int64_t deadline_ns) {
  MutexLock lock(&mutex_);
  while (!answered_) {
    const int64_t left_ns = deadline_ns - clock_.NowNs();
    if (left_ns <= 0) return false;
    changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    RendezvousServerOptions options, const Clock& clock) {
  SYNCOPATE_ASSIGN_OR_RETURN(services::RendezvousState state,
                             services::NewRendezvous(options.job, options.size, options.hosts));
  SYNCOPATE_ASSIGN_OR_RETURN(std::string nonce, RandomBytes(kNonceBytes));
  auto server =
      std::make_unique<Server>(std::move(options), std::move(state), std::move(nonce), clock);
  SYNCOPATE_RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace syncopate::control
