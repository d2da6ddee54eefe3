#include "transport/net/tcp_wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/copy_count.h"
#include "base/status.h"
#include "transport/net/tcp_wire_internal.h"

namespace syncopate::transport::net {
namespace {

constexpr size_t kStagingBytes = 32 << 10;
constexpr size_t kSinkBytes = 64 << 10;
// How much a lane takes from the queues at once: more could not be overtaken by urgent frames.
constexpr size_t kTakenBytes = 256 << 10;
constexpr size_t kTakenFrames = 16;
// How much the kernel may hold that it cannot send yet. It is bounded for the same reason.
constexpr int kUnsentBytes = 256 << 10;
// The longest pause before lost bytes are sent again. It doubles each time, and what waits behind
// them, such as signs of life, must not wait for long. Kernels before 6.15 do not know the option.
constexpr int kRetransmitMsMax = 1000;
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif
// Buffers that differ by less than this factor count as equal.
constexpr double kBuffersAlike = 1.25;
// However small its share of the traffic, a connection may have this many segments in flight.
constexpr int kSegmentsLeast = 8;
// A smaller buffer drops what the peer may still send, so it must have been wanted this often in a
// row.
constexpr int kShrinkAfter = 8;

}  // namespace

ssize_t ReadAt(int fd, iovec* parts, int count, int64_t& time_ns) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(count);
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(fd, &message, 0);
  time_ns = 0;
  if (got <= 0) return got;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time;
    std::memcpy(&time, CMSG_DATA(part), sizeof(time));
    time_ns = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }
  return got;
}

absl::StatusOr<std::unique_ptr<TcpWire>> TcpWire::Make(std::vector<std::vector<UniqueFd>> sockets,
                                                       WireHandler& handler, int buffer_bytes,
                                                       TlsMesh sessions) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return SystemError("cannot make an epoll");
  std::unique_ptr<TcpWire> wire(new TcpWire(std::move(epoll), handler, buffer_bytes));
  wire->sink_.resize(kSinkBytes);
  wire->peers_ = std::vector<Peer>(sockets.size());
  const auto connected = std::count_if(sockets.begin(), sockets.end(),
                                       [](const auto& lanes) { return !lanes.empty(); });
  for (size_t rank = 0; rank < sockets.size(); ++rank) {
    Peer& peer = wire->peers_[rank];
    for (size_t index = 0; index < sockets[rank].size(); ++index) {
      UniqueFd& fd = sockets[rank][index];
      if (!fd.ok()) continue;
      peer.open = true;
      auto lane = std::make_unique<Lane>();
      lane->peer = static_cast<int>(rank);
      lane->first = peer.lanes.empty();
      if (!sessions.empty()) lane->tls = std::move(sessions[rank][index]);
      lane->readable = lane->tls != nullptr;  // frames may have come right after the handshake
      lane->staging.resize(kStagingBytes);
      const int one = 1;
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
      setsockopt(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));  // for ReadAt()
      setsockopt(fd.get(), IPPROTO_TCP, TCP_RTO_MAX_MS, &kRetransmitMsMax,
                 sizeof(kRetransmitMsMax));
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof(kUnsentBytes));
      if (buffer_bytes > 0) {
        const int send_bytes = 2 * buffer_bytes;
        setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
        int segment = 0;
        socklen_t size = sizeof(segment);
        getsockopt(fd.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, &size);
        lane->least_buffer = kSegmentsLeast * segment;
      }
      epoll_event event = {};
      event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
      event.data.ptr = lane.get();
      if (epoll_ctl(wire->epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
        return SystemError("cannot watch a connection");
      }
      lane->fd = std::move(fd);
      if (lane->readable) wire->List(*lane);
      peer.lanes.push_back(std::move(lane));
    }
    // Until the shares are known, all peers count as sending the same.
    if (peer.open) wire->Expect(static_cast<int>(rank), 1.0 / static_cast<double>(connected));
  }
  return wire;
}

TcpWire::~TcpWire() = default;

void TcpWire::List(Lane& lane) {
  if (lane.listed) return;
  lane.listed = true;
  ready_.push_back(&lane);
}

void TcpWire::Send(int rank, const FrameHeader& header, const std::byte* payload, uint64_t cookie) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!peer.open || peer.closing) {
    if (cookie != 0) handler_.Sent(cookie);
    return;
  }
  peer.queue.Add(header, payload, cookie);
  const bool data = CarriesData(header.type);
  for (auto& lane : peer.lanes) {
    if (!lane->writable || !(data || lane->first)) continue;
    Write(*lane);
    break;
  }
}

bool TcpWire::Take(Lane& lane) {
  Peer& peer = peers_[static_cast<size_t>(lane.peer)];
  size_t bytes = 0;
  for (const OutgoingFrame& frame : lane.active) bytes += kFrameHeaderBytes + frame.payload_bytes;
  while (lane.active.size() < kTakenFrames && bytes < kTakenBytes) {
    std::optional<OutgoingFrame> frame;
    if (lane.first) frame = peer.queue.TakeControl();
    if (!frame.has_value()) frame = peer.queue.TakeData();
    if (!frame.has_value()) break;
    bytes += kFrameHeaderBytes + frame->payload_bytes;
    lane.active.push_back(*std::move(frame));
  }
  return !lane.active.empty();
}

bool TcpWire::Write(Lane& lane) {
  if (lane.tls != nullptr) return WriteTls(lane);
  bool moved = false;
  while (lane.writable && peers_[static_cast<size_t>(lane.peer)].open && Take(lane)) {
    iovec parts[2 * kTakenFrames];
    int count = 0;
    size_t skip = lane.written;
    size_t wanted = 0;
    const auto add = [&](const void* bytes, size_t size) {
      const size_t skipped = std::min(skip, size);
      skip -= skipped;
      if (size == skipped) return;
      parts[count++] = {const_cast<char*>(static_cast<const char*>(bytes)) + skipped,
                        size - skipped};
      wanted += size - skipped;
    };
    for (const OutgoingFrame& frame : lane.active) {
      add(frame.header.data(), kFrameHeaderBytes);
      add(frame.bytes(), frame.payload_bytes);
    }
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t sent = sendmsg(lane.fd.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      lane.writable = false;
      if (errno != EAGAIN) End(lane.peer, SystemError("cannot write"));
      return moved;
    }
    moved = true;
    if (static_cast<size_t>(sent) < wanted) lane.writable = false;
    Wrote(lane, static_cast<size_t>(sent));
  }
  if (peers_[static_cast<size_t>(lane.peer)].closing) FinishClosing(lane.peer);
  return moved;
}

void TcpWire::Wrote(Lane& lane, size_t bytes) {
  lane.written += bytes;
  while (!lane.active.empty() &&
         lane.written >= kFrameHeaderBytes + lane.active.front().payload_bytes) {
    lane.written -= kFrameHeaderBytes + lane.active.front().payload_bytes;
    const uint64_t cookie = lane.active.front().cookie;
    lane.active.pop_front();
    if (cookie != 0) handler_.Sent(cookie);
  }
}

void TcpWire::PayloadRead(Lane& lane) {
  lane.place = nullptr;
  if (!std::exchange(lane.dropping, false)) handler_.Arrived(lane.peer, lane.header);
}

bool TcpWire::Parse(Lane& lane) {
  while (lane.missing == 0 && lane.end - lane.begin >= kFrameHeaderBytes) {
    absl::StatusOr<FrameHeader> header =
        DecodeFrameHeader(absl::MakeConstSpan(lane.staging).subspan(lane.begin, kFrameHeaderBytes));
    if (!header.ok()) {
      End(lane.peer, header.status());
      return false;
    }
    if (!lane.first && !CarriesData(header->type)) {
      End(lane.peer, absl::InvalidArgumentError("a control frame beside the first lane"));
      return false;
    }
    lane.begin += kFrameHeaderBytes;
    lane.header = *header;
    if (header->payload_bytes == 0) {
      handler_.Arrived(lane.peer, *header);
      continue;
    }
    lane.place = handler_.Place(lane.peer, *header);
    lane.dropping = lane.place == nullptr;
    lane.missing = header->payload_bytes;
    const size_t here = std::min(lane.missing, lane.end - lane.begin);
    if (here > 0 && !lane.dropping) {
      CountCopy(CopyStage::kReceived, here);
      std::memcpy(lane.place, lane.staging.data() + lane.begin, here);
      lane.place += here;
    }
    lane.begin += here;
    lane.missing -= here;
    if (lane.missing == 0) PayloadRead(lane);
    if (!peers_[static_cast<size_t>(lane.peer)].open) return false;  // the handler closed it
  }
  if (lane.begin > 0) {
    std::memmove(lane.staging.data(), lane.staging.data() + lane.begin, lane.end - lane.begin);
    lane.end -= lane.begin;
    lane.begin = 0;
  }
  return true;
}

bool TcpWire::Took(Lane& lane, size_t bytes) {
  const size_t payload = std::min(bytes, lane.missing);
  lane.end += bytes - payload;
  if (payload > 0) {
    lane.missing -= payload;
    if (!lane.dropping) lane.place += payload;
    if (lane.missing == 0) PayloadRead(lane);
  }
  return peers_[static_cast<size_t>(lane.peer)].open && Parse(lane);
}

void TcpWire::EndOfStream(Lane& lane) {
  lane.readable = false;
  lane.ended = true;
  const auto& lanes = peers_[static_cast<size_t>(lane.peer)].lanes;
  if (!std::all_of(lanes.begin(), lanes.end(), [](const auto& other) { return other->ended; })) {
    return;
  }
  for (const auto& other : lanes) {
    if (other->tls == nullptr || other->farewell) continue;
    other->tls->SayFarewell();
    SendLast(*other);
  }
  End(lane.peer, absl::OkStatus());
}

bool TcpWire::Read(Lane& lane) {
  if (lane.tls != nullptr) return ReadTls(lane);
  size_t budget = kReadBytes;
  bool moved = false;
  while (lane.readable && budget > 0 && peers_[static_cast<size_t>(lane.peer)].open) {
    // First what is missing of a payload, then whatever follows it.
    iovec parts[2];
    int count = 0;
    size_t wanted = 0;
    if (lane.missing > 0) {
      const size_t bytes = lane.dropping ? std::min(lane.missing, sink_.size()) : lane.missing;
      parts[count++] = {lane.dropping ? sink_.data() : lane.place, bytes};
      wanted += bytes;
    }
    if (lane.missing == wanted) {
      parts[count++] = {lane.staging.data() + lane.end, lane.staging.size() - lane.end};
      wanted += lane.staging.size() - lane.end;
    }
    const ssize_t got = ReadAt(lane.fd.get(), parts, count, read_ns_);
    if (got == 0) {
      EndOfStream(lane);
      return true;
    }
    if (got < 0) {
      if (errno == EINTR) continue;
      lane.readable = false;
      if (errno == EAGAIN) return moved;
      End(lane.peer, SystemError("cannot read"));
      return true;
    }
    moved = true;
    // The socket is empty, unless the end of the stream is still to be read.
    if (static_cast<size_t>(got) < wanted && !lane.hung_up) lane.readable = false;
    budget -= std::min(budget, static_cast<size_t>(got));
    if (!Took(lane, static_cast<size_t>(got))) return true;
  }
  return moved;
}

void TcpWire::Expect(int rank, double share) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (buffer_bytes_ == 0 || !peer.open) return;
  for (auto& lane : peer.lanes) {
    const int wanted = std::clamp(static_cast<int>(share * buffer_bytes_),
                                  std::min(lane->least_buffer, buffer_bytes_), buffer_bytes_);
    if (wanted > kBuffersAlike * lane->buffer) {
      SetBuffer(*lane, wanted);
    } else if (wanted * kBuffersAlike >= lane->buffer) {
      lane->wanted_less = 0;
    } else if (++lane->wanted_less >= kShrinkAfter) {
      SetBuffer(*lane, wanted);
    }
  }
}

void TcpWire::SetBuffer(Lane& lane, int bytes) {
  lane.buffer = bytes;
  lane.wanted_less = 0;
  // A buffer never becomes smaller: what the peer has in flight by its old window would be dropped, and with it, by
  // kernels from 6.17 on, what it acknowledges; two workers that did so to each other stood still for seconds. A window
  // that is bounded shrinks as what it promised comes.
  const bool largest = bytes >= lane.largest_buffer;
  if (largest) {
    lane.largest_buffer = bytes;
    setsockopt(lane.fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
  }
  // The window may stay bounded by the buffer that there was when the first large segments came
  // (kernels from 6.6 on), so say that it may have all of the buffer, which the kernel doubles.
  const int window = largest ? 2 * bytes : bytes;
  setsockopt(lane.fd.get(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof(window));
}

bool TcpWire::Progress() {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    Lane& lane = *static_cast<Lane*>(events[i].data.ptr);
    if ((events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
      lane.readable = true;
      lane.drained = false;
      lane.hung_up = lane.hung_up || (events[i].events & ~(EPOLLIN | EPOLLOUT)) != 0;
    }
    if ((events[i].events & (EPOLLOUT | EPOLLERR)) != 0) lane.writable = true;
    List(lane);
  }
  bool moved = false;
  const std::vector<Lane*> ready = std::exchange(ready_, {});
  for (Lane* lane : ready) {
    lane->listed = false;
    if (!peers_[static_cast<size_t>(lane->peer)].open) continue;
    if (lane->readable) moved |= Read(*lane);
    if (lane->writable) moved |= Write(*lane);
    if (lane->readable && peers_[static_cast<size_t>(lane->peer)].open) List(*lane);
  }
  return TellEnded() || moved;
}

void TcpWire::Detach(uint64_t cookie) {
  for (Peer& peer : peers_) {
    peer.queue.Remove(cookie);
    for (auto& lane : peer.lanes) {
      for (size_t i = 0; i < lane->active.size();) {
        OutgoingFrame& frame = lane->active[i];
        if (frame.cookie != cookie) {
          ++i;
        } else if (i == 0 && lane->written > 0) {
          frame.Keep();
          ++i;
        } else {
          lane->active.erase(lane->active.begin() + static_cast<ptrdiff_t>(i));
        }
      }
    }
  }
}

void TcpWire::Abandon(const std::byte* memory, size_t bytes) {
  for (Peer& peer : peers_) {
    for (auto& lane : peer.lanes) {
      if (lane->missing == 0 || lane->dropping) continue;
      if (lane->place >= memory && lane->place < memory + bytes) lane->dropping = true;
    }
  }
}

bool TcpWire::Flushed(int rank) const {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!peer.open) return true;
  return peer.queue.empty() &&
         std::all_of(peer.lanes.begin(), peer.lanes.end(), [](const auto& lane) {
           return lane->active.empty() && (lane->tls == nullptr || lane->tls->out().empty());
         });
}

void TcpWire::End(int rank, absl::Status why) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!peer.open) return;
  peer.open = false;
  NoteEnd(rank, std::move(why));
  for (auto& lane : peer.lanes) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, lane->fd.get(), nullptr);
    lane->fd.Reset();
    lane->readable = lane->writable = false;
  }
  DropQueue(peer);
}

void TcpWire::DropQueue(Peer& peer) {
  std::vector<uint64_t> cookies = peer.queue.Clear();
  for (auto& lane : peer.lanes) {
    for (const OutgoingFrame& frame : lane->active) {
      if (frame.cookie != 0) cookies.push_back(frame.cookie);
    }
    lane->active.clear();
    lane->written = 0;
  }
  for (const uint64_t cookie : cookies) handler_.Sent(cookie);
}

void TcpWire::PrepareReset(int rank) {
  for (auto& lane : peers_[static_cast<size_t>(rank)].lanes) ResetOnClose(lane->fd.get());
}

void TcpWire::SayFarewell(int rank) {
  for (auto& lane : peers_[static_cast<size_t>(rank)].lanes) {
    if (lane->tls == nullptr) {
      shutdown(lane->fd.get(), SHUT_WR);
      continue;
    }
    lane->tls->SayFarewell();
    lane->farewell = true;
    SendSealed(*lane);
  }
}

}  // namespace syncopate::transport::net
