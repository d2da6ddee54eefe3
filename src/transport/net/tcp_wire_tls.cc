// What TcpWire does differently with TLS: frames are encrypted into the session's memory before they
// are sent, and what was received is decrypted from there.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "transport/net/tcp_wire.h"
#include "transport/net/tcp_wire_internal.h"

namespace syncopate::transport::net {
namespace {

// How much is encrypted before it is sent, in whole records. What is encrypted cannot be overtaken.
constexpr size_t kSealedBytes = 8 * kTlsRecordBytes;

}  // namespace

bool TcpWire::WriteTls(Lane& lane) {
  bool moved = SendSealed(lane);
  while (lane.writable && peers_[static_cast<size_t>(lane.peer)].open && Seal(lane)) {
    moved |= SendSealed(lane);
  }
  if (peers_[static_cast<size_t>(lane.peer)].closing) FinishClosing(lane.peer);
  return moved;
}

bool TcpWire::Seal(Lane& lane) {
  if (!lane.tls->out().empty() || !Take(lane)) return false;
  record_.resize(kTlsRecordBytes);
  size_t filled = 0;  // of record_
  size_t sealed = 0;
  size_t skip = lane.written;
  absl::Status status = absl::OkStatus();
  // Long payloads are encrypted from where they are; what is shorter than a record is put together.
  const auto add = [&](const void* bytes, size_t size) {
    const auto* from = static_cast<const std::byte*>(bytes);
    const size_t skipped = std::min(skip, size);
    skip -= skipped;
    from += skipped;
    size -= skipped;
    while (size > 0 && sealed < kSealedBytes && status.ok()) {
      const size_t most = std::min(size, kSealedBytes - sealed);
      size_t taken = 0;
      if (filled == 0 && most >= kTlsRecordBytes) {
        taken = most / kTlsRecordBytes * kTlsRecordBytes;
        status = lane.tls->Write(from, taken);
      } else {
        taken = std::min(most, record_.size() - filled);
        std::memcpy(record_.data() + filled, from, taken);
        filled += taken;
        if (filled == record_.size()) {
          status = lane.tls->Write(record_.data(), filled);
          filled = 0;
        }
      }
      from += taken;
      size -= taken;
      sealed += taken;
    }
  };
  for (const OutgoingFrame& frame : lane.active) {
    add(frame.header.data(), kFrameHeaderBytes);
    add(frame.bytes(), frame.payload_bytes);
  }
  if (filled > 0 && status.ok()) status = lane.tls->Write(record_.data(), filled);
  if (!status.ok()) {
    End(lane.peer, status);
    return false;
  }
  Wrote(lane, sealed);
  return true;
}

bool TcpWire::SendSealed(Lane& lane) {
  bool moved = false;
  while (lane.writable && lane.fd.ok() && !lane.tls->out().empty()) {
    const auto out = lane.tls->out();
    const ssize_t sent = send(lane.fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      lane.writable = false;
      if (errno != EAGAIN) End(lane.peer, SystemError("cannot write"));
      return moved;
    }
    moved = true;
    if (static_cast<size_t>(sent) < out.size()) lane.writable = false;
    lane.tls->Gone(static_cast<size_t>(sent));
  }
  if (lane.farewell && lane.fd.ok() && lane.tls->out().empty()) shutdown(lane.fd.get(), SHUT_WR);
  return moved;
}

void TcpWire::SendLast(Lane& lane) {
  const auto out = lane.tls->out();
  if (!out.empty()) (void)!send(lane.fd.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool TcpWire::ReceiveSealed(Lane& lane) {
  while (true) {
    const auto room = lane.tls->room();
    iovec part = {room.data(), room.size()};
    const ssize_t got = ReadAt(lane.fd.get(), &part, 1, read_ns_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) {
      End(lane.peer, SystemError("cannot read"));
      return false;
    }
    if (got == 0) {
      if (lane.tls->ended()) {
        EndOfStream(lane);
      } else {
        End(lane.peer, absl::DataLossError("TLS: the stream ended without a farewell: the other "
                                           "end died, or the connection was cut"));
      }
      return false;
    }
    // The socket is empty, unless the end of the stream is still to be read.
    lane.drained = static_cast<size_t>(got) < room.size() && !lane.hung_up;
    lane.tls->Came(static_cast<size_t>(got));
    return true;
  }
}

bool TcpWire::ReadTls(Lane& lane) {
  size_t budget = kReadBytes;
  bool moved = false;
  while (lane.readable && budget > 0 && peers_[static_cast<size_t>(lane.peer)].open) {
    // A header by itself, so that what follows it is decrypted to where it belongs.
    std::byte* to = lane.staging.data() + lane.end;
    size_t wanted = kFrameHeaderBytes - lane.end;
    if (lane.missing > 0) {
      to = lane.dropping ? sink_.data() : lane.place;
      wanted = lane.dropping ? std::min(lane.missing, sink_.size()) : lane.missing;
    }
    const absl::StatusOr<size_t> got = lane.tls->Read(to, wanted);
    if (!got.ok()) {
      SendLast(lane);  // the other end shall know why
      End(lane.peer, got.status());
      return true;
    }
    if (*got > 0) {
      moved = true;
      budget -= std::min(budget, *got);
      if (!Took(lane, *got)) return true;
      continue;
    }
    if (lane.drained || !ReceiveSealed(lane)) {
      lane.readable = false;
      return moved || !peers_[static_cast<size_t>(lane.peer)].open;
    }
    moved = true;
  }
  return moved;
}

}  // namespace syncopate::transport::net
