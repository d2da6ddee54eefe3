// One end of a TLS 1.3 connection between two workers, by libssl and without a socket: ciphertext is
// put into its memory and taken from it, so the owner of the socket keeps its own system calls and
// their timestamps.
//
// Both ends know the key of the met workers. Each connection has an external pre-shared key derived
// from it, and an identity that says which job, which two workers and which lane it is for: bytes of
// one connection mean nothing on another. Keys are exchanged anew (psk_dhe_ke), so whoever learns the
// job's key later cannot read what was recorded.
//
// Not thread-safe.
#ifndef SYNCOPATE_TRANSPORT_NET_TLS_SESSION_H_
#define SYNCOPATE_TRANSPORT_NET_TLS_SESSION_H_

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace syncopate::transport::net {

// What a record carries at most. Larger writes fill several of them.
inline constexpr size_t kTlsRecordBytes = 16 << 10;

class TlsSession {
 public:
  struct Options {
    std::string key;  // of the met workers
    uint32_t job = 0;
    int connector = 0;  // ranks; the connector is the client
    int acceptor = 0;
    int lane = 0;
    bool is_connector = false;  // which of the two this end is
    // After this many bytes the sender takes a new key. AES-GCM stays safe for about 2^24.5 records
    // (RFC 8446, 5.5), which are 380 GiB of full ones.
    uint64_t bytes_per_key = uint64_t{64} << 30;
  };
  static absl::StatusOr<std::unique_ptr<TlsSession>> Make(const Options& options);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;

  // Goes on as far as what has come allows; true when both ends are proved. To be called until then.
  absl::StatusOr<bool> Handshake();

  // Memory for ciphertext that comes. It has room when Read() or Handshake() wants more.
  absl::Span<std::byte> room();
  void Came(size_t bytes);
  // Ciphertext that is to be sent, and how much of it is gone.
  absl::Span<const std::byte> out() const;
  void Gone(size_t bytes);

  // Decrypts up to `bytes`; 0: more ciphertext is needed, or ended(). DataLoss: what came is not what
  // the other end has sent.
  absl::StatusOr<size_t> Read(std::byte* to, size_t bytes);
  // Encrypts all of it; it is not needed any more then.
  absl::Status Write(const std::byte* from, size_t bytes);
  // Nothing more will be written. An end of the stream that this did not announce is a cut.
  void SayFarewell();
  bool ended() const { return ended_; }  // the other end has said its farewell

  std::string cipher() const;  // of the connection, as "TLS_AES_128_GCM_SHA256"

 private:
  struct Bio;  // the functions by which libssl reaches the memory
  friend struct Bio;

  explicit TlsSession(const Options& options);
  absl::Status HandshakeError() const;
  absl::Status StreamError() const;

  const Options options_;
  const std::string identity_;
  const std::string key_;  // of this connection
  SSL* ssl_ = nullptr;
  std::vector<std::byte> in_;
  size_t in_begin_ = 0, in_end_ = 0;
  std::vector<std::byte> out_;
  size_t out_begin_ = 0;
  uint64_t bytes_by_this_key_ = 0;
  bool ended_ = false;
  std::string other_identity_;  // that the connector claimed, if it is not ours
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_TLS_SESSION_H_
