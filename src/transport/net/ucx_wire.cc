#include "transport/net/ucx_wire.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bytes.h"
#include "base/copy_count.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/net/handshake.h"
#include "transport/net/ucx_library.h"

namespace syncopate::transport::net {
namespace {

constexpr unsigned kMessageId = 1;
// From this size on, a payload travels by rendezvous.
constexpr size_t kRendezvousBytes = 32 << 10;
// What UCX holds for one peer: more could not be overtaken by urgent frames.
constexpr size_t kInFlightBytes = 1 << 20;
// How often UCX makes progress in one Progress() before others get a turn.
constexpr int kRounds = 64;
// How long a worker that connects sleeps at most, should UCX not wake it.
constexpr int kTurnMs = 10;
// How often UCX makes progress when the wire ends.
constexpr int kLastRounds = 1000;
// The farewell of a polite end: the number of frames that were sent.
constexpr size_t kFarewellBytes = sizeof(uint64_t);

absl::Status EndedWhileConnecting(size_t rank) {
  return absl::UnavailableError(
      absl::StrCat("worker ", rank, " ended while the workers were connecting"));
}

}  // namespace

// ---- start

absl::StatusOr<std::unique_ptr<UcxWire>> UcxWire::Make(std::unique_ptr<UcxWorker> worker,
                                                       Options options, WireHandler& handler,
                                                       const Clock& clock, int64_t deadline_ns) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return SystemError("cannot make an epoll");
  std::unique_ptr<UcxWire> wire(
      new UcxWire(std::move(worker), options.rank, std::move(epoll), handler));
  SYNCOPATE_RETURN_IF_ERROR(wire->Connect(std::move(options), clock, deadline_ns));
  return wire;
}

absl::Status UcxWire::Connect(Options options, const Clock& clock, int64_t deadline_ns) {
  peers_ = std::vector<Peer>(options.sockets.size());
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<uint32_t>(rank_);  // its own place: UCX
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, worker_->event_fd(), &event) != 0) {
    return SystemError("cannot watch UCX's events");
  }
  ucp_am_handler_param_t am = {};
  am.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                  UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  am.id = kMessageId;
  am.flags = UCP_AM_FLAG_WHOLE_MSG;
  am.cb = &OnMessage;
  am.arg = this;
  ucs_status_t status = Ucx().worker_set_am_recv_handler(worker_->handle(), &am);
  if (status != UCS_OK) return UcxError("cannot take messages", status);
  // Peers connect when they know the secret.
  SYNCOPATE_RETURN_IF_ERROR(worker_->LetIn(options.sockets));
  for (size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].open = options.sockets[i].ok();
    peers_[i].socket = std::move(options.sockets[i]);
  }
  SYNCOPATE_RETURN_IF_ERROR(ExchangeSecrets(clock, deadline_ns));
  SYNCOPATE_RETURN_IF_ERROR(MakeEndpoints(options.addresses));
  SYNCOPATE_RETURN_IF_ERROR(CompleteEndpoints(clock, deadline_ns));
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open) continue;
    event.data.u32 = static_cast<uint32_t>(i);
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peers_[i].socket.get(), &event) != 0) {
      return SystemError("cannot watch a connection");
    }
  }
  return absl::OkStatus();
}

absl::Status UcxWire::MakeEndpoints(const std::vector<std::string>& addresses) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open) continue;
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(addresses[i].data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &OnFailure;
    params.err_handler.arg = this;
    const ucs_status_t status = Ucx().ep_create(worker_->handle(), &params, &peers_[i].endpoint);
    if (status != UCS_OK) {
      return UcxError(absl::StrCat("cannot make a connection with worker ", i), status);
    }
  }
  return absl::OkStatus();
}

// UCX connects with the first messages, and a peer that ends before that is done may take this
// process along (an assertion of UCX 1.13). So all connections are completed here. A flush ends when
// its endpoint is connected, for which the peer must drive UCX too: hence the first round of words,
// after which nobody needs that any more. Whoever has all words of the second round may send: the
// others no longer look at UCX before they can take messages.
absl::Status UcxWire::CompleteEndpoints(const Clock& clock, int64_t deadline_ns) {
  SYNCOPATE_RETURN_IF_ERROR(FlushEndpoints(clock, deadline_ns));
  const std::vector<std::string> words(peers_.size(), "c");
  for (const bool drive : {true, false}) {
    SYNCOPATE_RETURN_IF_ERROR(Exchange(words, drive, clock, deadline_ns).status());
  }
  return absl::OkStatus();
}

absl::Status UcxWire::FlushEndpoints(const Clock& clock, int64_t deadline_ns) {
  std::vector<std::pair<size_t, void*>> flushes;  // of ranks, those that are under way
  absl::Status status;
  const auto fail = [&](size_t rank, ucs_status_t why) {
    status = UcxError(absl::StrCat("cannot connect with worker ", rank), why);
  };
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open) continue;
    const ucp_request_param_t param = {};
    void* const request = Ucx().ep_flush_nbx(peers_[i].endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) flushes.emplace_back(i, request);
    if (UCS_PTR_IS_ERR(request)) fail(i, UCS_PTR_STATUS(request));
  }
  while (status.ok() && !flushes.empty()) {
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) {
      status = absl::DeadlineExceededError(
          absl::StrCat("no connection over UCX in time with worker ", flushes.front().first));
      break;
    }
    const int wait_ms = Drive(left_ns);
    std::erase_if(flushes, [&](const auto& flush) {
      const ucs_status_t outcome = Ucx().request_check_status(flush.second);
      if (outcome == UCS_INPROGRESS) return false;
      if (outcome != UCS_OK) fail(flush.first, outcome);
      Ucx().request_free(flush.second);
      return true;
    });
    if (flushes.empty()) break;
    // A peer whose process has ended shows at once by its socket, where UCX may try for long.
    std::vector<pollfd> polls = {{.fd = worker_->event_fd(), .events = POLLIN, .revents = 0}};
    for (const auto& flush : flushes) {
      polls.push_back({.fd = peers_[flush.first].socket.get(), .events = POLLRDHUP, .revents = 0});
    }
    poll(polls.data(), polls.size(), wait_ms);
    for (size_t i = 0; i < flushes.size(); ++i) {
      if (polls[i + 1].revents != 0) status = EndedWhileConnecting(flushes[i].first);
    }
  }
  for (const auto& flush : flushes) Ucx().request_free(flush.second);  // when it is done
  return status;
}

int UcxWire::Drive(int64_t left_ns) {
  int rounds = 0;
  while (rounds < kRounds && Ucx().worker_progress(worker_->handle()) != 0) ++rounds;
  if (rounds == kRounds) return 0;
  if (Ucx().worker_arm(worker_->handle()) != UCS_OK) return 0;
  return static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, kTurnMs));
}

absl::Status UcxWire::ExchangeSecrets(const Clock& clock, int64_t deadline_ns) {
  std::vector<std::string> secrets(peers_.size());
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(secrets[i], MakeNonce());
    secrets[i].resize(kSecretBytes);
    peers_[i].secret = secrets[i];
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> theirs,
                             Exchange(secrets, /*drive=*/false, clock, deadline_ns));
  for (size_t i = 0; i < peers_.size(); ++i) {
    Append(peers_[i].prefix, static_cast<uint32_t>(rank_));
    Append(peers_[i].prefix, uint32_t{0});
    peers_[i].prefix += theirs[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> UcxWire::Exchange(const std::vector<std::string>& messages,
                                                           bool drive, const Clock& clock,
                                                           int64_t deadline_ns) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open) continue;
    // The socket is new, so that it has room for these few bytes.
    if (send(peers_[i].socket.get(), messages[i].data(), messages[i].size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(messages[i].size())) {
      return SystemError(absl::StrCat("cannot say anything to worker ", i));
    }
  }
  std::vector<std::string> theirs(peers_.size());
  while (true) {
    std::vector<pollfd> polls;
    std::vector<size_t> missing;
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (!peers_[i].open || theirs[i].size() == messages[i].size()) continue;
      missing.push_back(i);
      polls.push_back({.fd = peers_[i].socket.get(), .events = POLLIN, .revents = 0});
    }
    if (missing.empty()) return theirs;
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer in time from workers ", absl::StrJoin(missing, ",")));
    }
    int wait_ms = static_cast<int>(left_ns / 1'000'000 + 1);
    if (drive) {
      wait_ms = Drive(left_ns);
      polls.push_back({.fd = worker_->event_fd(), .events = POLLIN, .revents = 0});
    }
    poll(polls.data(), polls.size(), wait_ms);
    for (size_t i = 0; i < missing.size(); ++i) {
      if (polls[i].revents == 0) continue;
      char bytes[kSecretBytes];
      std::string& theirs_now = theirs[missing[i]];
      const size_t left = messages[missing[i]].size() - theirs_now.size();
      const ssize_t got = recv(polls[i].fd, bytes, std::min(left, sizeof(bytes)), 0);
      if (got > 0) theirs_now.append(bytes, static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        return EndedWhileConnecting(missing[i]);
      }
    }
  }
}

UcxWire::~UcxWire() {
  std::vector<void*> closing;
  const auto close_now = [&](ucp_ep_h endpoint) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = Ucx().ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  };
  for (Peer& peer : peers_) {
    peer.open = false;
    if (peer.endpoint != nullptr) close_now(std::exchange(peer.endpoint, nullptr));
  }
  for (ucp_ep_h endpoint : to_close_) close_now(endpoint);
  // Forced closes and the messages that end with them need some rounds, but no word of the peers.
  for (int i = 0; i < kLastRounds; ++i) {
    std::erase_if(closing, [](void* request) {
      if (Ucx().request_check_status(request) == UCS_INPROGRESS) return false;
      Ucx().request_free(request);
      return true;
    });
    if (closing.empty() && transfers_.empty()) break;
    Ucx().worker_progress(worker_->handle());
  }
  if (strangers_ > 0) Log(LogLevel::kInfo, strangers_, " messages of strangers were dropped");
}

// ---- sending

UcxWire::Transfer& UcxWire::NewTransfer(int rank, size_t bytes) {
  transfers_.push_back(std::make_unique<Transfer>());
  Transfer& transfer = *transfers_.back();
  transfer.wire = this;
  transfer.peer = rank;
  transfer.buffer = buffers_.Take(bytes);
  transfer.bytes = bytes;
  transfer.place = std::prev(transfers_.end());
  return transfer;
}

void UcxWire::EndTransfer(Transfer& transfer) {
  buffers_.Give(std::move(transfer.buffer));
  transfers_.erase(transfer.place);
}

void UcxWire::Send(int rank, const FrameHeader& header, const std::byte* payload, uint64_t cookie) {
  Peer& peer = this->peer(rank);
  if (!peer.open || peer.closing) {
    if (cookie != 0) handler_.Sent(cookie);
    return;
  }
  peer.queue.Add(header, payload, cookie);
  Pump(rank);
}

void UcxWire::Pump(int rank) {
  Peer& peer = this->peer(rank);
  if (peer.pumping) return;  // Sent() led here again
  peer.pumping = true;
  while (peer.open) {
    std::optional<OutgoingFrame> frame = peer.queue.TakeControl();
    if (!frame.has_value() && peer.in_flight_bytes < kInFlightBytes) frame = peer.queue.TakeData();
    if (!frame.has_value() || !Post(rank, *std::move(frame))) break;
  }
  peer.pumping = false;
  if (peer.closing) FinishClosing(rank);
}

bool UcxWire::Post(int rank, OutgoingFrame frame) {
  Peer& peer = this->peer(rank);
  Transfer& transfer = NewTransfer(rank, kPrefixBytes + frame.payload_bytes);
  std::byte* bytes = transfer.buffer.bytes.get();
  std::memcpy(bytes, peer.prefix.data(), peer.prefix.size());
  std::memcpy(bytes + peer.prefix.size(), frame.header.data(), kFrameHeaderBytes);
  std::byte* payload = bytes + kPrefixBytes;
  if (frame.payload_bytes > 0) std::memcpy(payload, frame.bytes(), frame.payload_bytes);
  const uint64_t cookie = frame.cookie;
  peer.in_flight_bytes += transfer.bytes;
  ++peer.frames_sent;
  ucp_request_param_t param = {};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags =
      frame.payload_bytes >= kRendezvousBytes ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = &OnSent;
  param.user_data = &transfer;
  void* request = Ucx().am_send_nbx(peer.endpoint, kMessageId, bytes, kPrefixBytes, payload,
                                    frame.payload_bytes, &param);
  if (!UCS_PTR_IS_PTR(request)) {
    peer.in_flight_bytes -= transfer.bytes;
    EndTransfer(transfer);
  }
  if (UCS_PTR_IS_ERR(request)) {
    peer.failure = UCS_PTR_STATUS(request);
    unsettled_ = true;
  }
  if (cookie != 0) handler_.Sent(cookie);
  return !UCS_PTR_IS_ERR(request);
}

void UcxWire::OnSent(void* request, ucs_status_t /*status*/, void* argument) {
  // A failure is told by OnFailure() too.
  Transfer& transfer = *static_cast<Transfer*>(argument);
  UcxWire& wire = *transfer.wire;
  wire.peer(transfer.peer).in_flight_bytes -= transfer.bytes;
  wire.to_pump_.push_back(transfer.peer);
  wire.EndTransfer(transfer);
  Ucx().request_free(request);
}

void UcxWire::Detach(uint64_t cookie) {
  for (Peer& peer : peers_) peer.queue.Remove(cookie);
}

bool UcxWire::Flushed(int rank) const {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  return !peer.open || (peer.queue.empty() && peer.in_flight_bytes == 0);
}

// ---- receiving

ucs_status_t UcxWire::OnMessage(void* wire, const void* prefix, size_t prefix_bytes, void* data,
                                size_t bytes, const ucp_am_recv_param_t* param) {
  return static_cast<UcxWire*>(wire)->Message(prefix, prefix_bytes, data, bytes, *param);
}

// Whatever is wrong with a message, UCX hears that it was dealt with: it is dropped.
ucs_status_t UcxWire::Message(const void* prefix, size_t prefix_bytes, void* data, size_t bytes,
                              const ucp_am_recv_param_t& param) {
  ByteReader reader(absl::string_view(static_cast<const char*>(prefix), prefix_bytes));
  const uint32_t rank = reader.Read<uint32_t>();
  reader.Read<uint32_t>();
  const absl::string_view secret = reader.ReadBytes(kSecretBytes);
  const absl::string_view encoded = reader.ReadBytes(kFrameHeaderBytes);
  if (!reader.AtEnd() || rank >= peers_.size() || static_cast<int>(rank) == rank_ ||
      secret != peers_[rank].secret) {
    ++strangers_;
    return UCS_OK;
  }
  Peer& peer = peers_[rank];
  if (!peer.open) return UCS_OK;
  const absl::StatusOr<FrameHeader> header = DecodeFrameHeader(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(encoded.data()), encoded.size()));
  if (!header.ok() || header->payload_bytes != bytes) {
    End(static_cast<int>(rank),
        header.ok() ? absl::InvalidArgumentError("a message is not as long as its header says")
                    : header.status());
    return UCS_OK;
  }
  if ((param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    CountFrame(peer);
    Deliver(static_cast<int>(rank), *header, static_cast<const std::byte*>(data));
    return UCS_OK;
  }
  Transfer& transfer = NewTransfer(static_cast<int>(rank), bytes);
  transfer.header = *header;
  ucp_request_param_t receive = {};
  receive.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  receive.cb.recv_am = &OnReceived;
  receive.user_data = &transfer;
  void* request =
      Ucx().am_recv_data_nbx(worker_->handle(), data, transfer.buffer.bytes.get(), bytes, &receive);
  if (UCS_PTR_IS_ERR(request)) {
    End(static_cast<int>(rank), UcxError("cannot read", UCS_PTR_STATUS(request)));
    EndTransfer(transfer);
  }
  return UCS_INPROGRESS;  // the data is UCX's until it has come
}

void UcxWire::OnReceived(void* request, ucs_status_t status, size_t /*bytes*/, void* argument) {
  Transfer& transfer = *static_cast<Transfer*>(argument);
  UcxWire& wire = *transfer.wire;
  Peer& peer = wire.peer(transfer.peer);
  if (status == UCS_OK && peer.open) {
    wire.CountFrame(peer);
    wire.Deliver(transfer.peer, transfer.header, transfer.buffer.bytes.get());
  } else if (peer.open) {
    peer.failure = status;
    wire.unsettled_ = true;
  }
  wire.EndTransfer(transfer);
  Ucx().request_free(request);
}

void UcxWire::CountFrame(Peer& peer) {
  ++peer.frames_got;
  if (peer.hung_up) unsettled_ = true;  // it may have been the last one
}

void UcxWire::Deliver(int rank, const FrameHeader& header, const std::byte* payload) {
  if (header.payload_bytes > 0) {
    std::byte* place = handler_.Place(rank, header);
    if (place == nullptr) return;
    CountCopy(CopyStage::kReceived, header.payload_bytes);
    std::memcpy(place, payload, header.payload_bytes);
  }
  handler_.Arrived(rank, header);
}

// ---- progress and ends

bool UcxWire::Progress() {
  bool moved = false;
  for (int i = 0; i < kRounds && Ucx().worker_progress(worker_->handle()) != 0; ++i) moved = true;
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    const int rank = static_cast<int>(events[i].data.u32);
    if (rank == rank_) continue;
    ReadSocket(rank);
    moved = true;
  }
  for (const int rank : std::exchange(to_pump_, {})) {
    moved = true;
    if (peer(rank).open) Pump(rank);
  }
  Settle();
  for (ucp_ep_h endpoint : std::exchange(to_close_, {})) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = Ucx().ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) Ucx().request_free(request);  // when it is done
  }
  return TellEnded() || moved;
}

bool UcxWire::Arm() {
  if (unsettled_ || HasEnded() || !to_pump_.empty() || !to_close_.empty()) return false;
  return Ucx().worker_arm(worker_->handle()) == UCS_OK;
}

void UcxWire::OnFailure(void* argument, ucp_ep_h endpoint, ucs_status_t status) {
  UcxWire& wire = *static_cast<UcxWire*>(argument);
  for (Peer& peer : wire.peers_) {
    if (peer.endpoint != endpoint || !peer.open) continue;
    peer.failure = status;
    wire.unsettled_ = true;
  }
}

void UcxWire::ReadSocket(int rank) {
  Peer& peer = this->peer(rank);
  while (peer.open && !peer.hung_up) {
    char bytes[kFarewellBytes];
    const ssize_t got = recv(peer.socket.get(), bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0 && peer.farewell.size() + static_cast<size_t>(got) <= kFarewellBytes) {
      peer.farewell.append(bytes, static_cast<size_t>(got));
      continue;
    }
    if (got > 0) peer.farewell.clear();  // no farewell is that long
    peer.hung_up = true;
    unsettled_ = true;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
  }
}

void UcxWire::Settle() {
  if (!unsettled_) return;
  unsettled_ = false;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    Peer& peer = this->peer(rank);
    if (!peer.open || (!peer.hung_up && peer.failure == UCS_OK)) continue;
    if (!peer.hung_up) ReadSocket(rank);
    if (peer.shut) {
      End(rank, absl::OkStatus());
    } else if (peer.farewell.size() == kFarewellBytes) {
      uint64_t frames = 0;
      std::memcpy(&frames, peer.farewell.data(), sizeof(frames));
      if (peer.frames_got >= frames) {
        End(rank, absl::OkStatus());
      } else if (peer.failure != UCS_OK) {
        End(rank, UcxError("it did not come to its end", peer.failure));
      }  // else what is in flight still comes
    } else if (peer.hung_up) {
      End(rank, absl::UnavailableError("its process ended"));
    } else {
      End(rank, UcxError("it failed", peer.failure));
    }
  }
}

void UcxWire::End(int rank, absl::Status why) {
  Peer& peer = this->peer(rank);
  if (!peer.open) return;
  peer.open = false;
  NoteEnd(rank, std::move(why));
  if (!peer.hung_up) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
  peer.socket.Reset();
  if (peer.endpoint != nullptr) to_close_.push_back(std::exchange(peer.endpoint, nullptr));
  DropQueue(peer);
}

void UcxWire::DropQueue(Peer& peer) {
  for (const uint64_t cookie : peer.queue.Clear()) handler_.Sent(cookie);
}

void UcxWire::PrepareReset(int rank) { ResetOnClose(peer(rank).socket.get()); }

void UcxWire::SayFarewell(int rank) {
  Peer& peer = this->peer(rank);
  if (send(peer.socket.get(), &peer.frames_sent, kFarewellBytes, MSG_NOSIGNAL) < 0 ||
      shutdown(peer.socket.get(), SHUT_WR) != 0) {
    End(rank, absl::OkStatus());
  }
}

}  // namespace syncopate::transport::net
