#include "transport/net/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/proof.h"
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace syncopate::transport::net {
namespace {

constexpr size_t kInBytes = 64 << 10;
// Alerts of the other end have these reasons, which are made of the alert's number.
constexpr int kAlertReasonMin = SSL_AD_REASON_OFFSET;

// Both are good; which one is fast depends on what the processor does by itself.
const char* CipherSuites() {
  bool has_aes = false;
#if defined(__x86_64__)
  has_aes = __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
#elif defined(__aarch64__)
  has_aes = (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#endif
  return has_aes ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                 : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
}

// What libssl noted last, without its numbers of files and lines. Clears its notes.
std::pair<int, std::string> TakeReason() {
  const unsigned long error = ERR_peek_last_error();
  const char* text = ERR_reason_error_string(error);
  const int reason = ERR_GET_REASON(error);
  ERR_clear_error();
  return {reason, text == nullptr ? "unknown error" : text};
}

absl::Status LibraryError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", TakeReason().second));
}

// The session that stands for an external key, as both ends make it.
SSL_SESSION* MakePskSession(SSL* ssl, const std::string& key) {
  static constexpr unsigned char kSuite[] = {0x13, 0x01};  // its hash counts: SHA-256
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kSuite);
  SSL_SESSION* session = SSL_SESSION_new();
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

}  // namespace

// What libssl calls. Objects are found by the data that was put beside theirs.
struct TlsSession::Bio {
  static int Read(BIO* bio, char* to, size_t bytes, size_t* got) {
    auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = std::min(bytes, session.in_end_ - session.in_begin_);
    if (*got == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(to, session.in_.data() + session.in_begin_, *got);
    session.in_begin_ += *got;
    if (session.in_begin_ == session.in_end_) session.in_begin_ = session.in_end_ = 0;
    return 1;
  }
  static int Write(BIO* bio, const char* from, size_t bytes, size_t* put) {
    auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
    const auto* begin = reinterpret_cast<const std::byte*>(from);
    session.out_.insert(session.out_.end(), begin, begin + bytes);
    *put = bytes;
    return 1;
  }
  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  static const BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made =
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memory of a worker");
      if (made == nullptr) return made;
      BIO_meth_set_read_ex(made, Read);
      BIO_meth_set_write_ex(made, Write);
      BIO_meth_set_ctrl(made, Control);
      return made;
    }();
    return method;
  }

  static TlsSession& Of(SSL* ssl) { return *static_cast<TlsSession*>(SSL_get_app_data(ssl)); }

  // The connector: which key it offers.
  static int Offer(SSL* ssl, const EVP_MD* hash, const unsigned char** id, size_t* id_bytes,
                   SSL_SESSION** session) {
    const TlsSession& self = Of(ssl);
    *session = nullptr;
    if (hash != nullptr && EVP_MD_get_type(hash) != NID_sha256) return 1;  // not for that hash
    *session = MakePskSession(ssl, self.key_);
    *id = reinterpret_cast<const unsigned char*>(self.identity_.data());
    *id_bytes = self.identity_.size();
    return *session == nullptr ? 0 : 1;
  }
  // The acceptor: which key belongs to what was offered. Without one there is nothing else by which
  // the connector could prove itself.
  static int Find(SSL* ssl, const unsigned char* id, size_t id_bytes, SSL_SESSION** session) {
    TlsSession& self = Of(ssl);
    *session = nullptr;
    const absl::string_view claimed(reinterpret_cast<const char*>(id), id_bytes);
    if (claimed != self.identity_) {
      self.other_identity_ = absl::CHexEscape(claimed.substr(0, 2 * self.identity_.size()));
      return 1;
    }
    *session = MakePskSession(ssl, self.key_);
    return *session == nullptr ? 0 : 1;
  }

  // One for all connections; never freed.
  static SSL_CTX* Context() {
    static SSL_CTX* const context = [] {
      SSL_CTX* made = SSL_CTX_new(TLS_method());
      if (made == nullptr) return made;
      SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION);
      SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION);
      // Every connection is made once, so there is nothing to resume.
      SSL_CTX_set_num_tickets(made, 0);
      SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
      SSL_CTX_set_max_early_data(made, 0);
      SSL_CTX_set_psk_use_session_callback(made, Offer);
      SSL_CTX_set_psk_find_session_callback(made, Find);
      if (SSL_CTX_set_ciphersuites(made, CipherSuites()) == 1 &&
          SSL_CTX_set1_groups_list(made, "X25519:P-256") == 1) {
        return made;
      }
      SSL_CTX_free(made);
      return static_cast<SSL_CTX*>(nullptr);
    }();
    return context;
  }
};

TlsSession::TlsSession(const Options& options)
    : options_(options),
      identity_(absl::StrCat("syncopate job ", options.job, " worker ", options.connector, " to ",
                             options.acceptor, " lane ", options.lane)),
      key_(ProofText("syncopate tls key").Add(identity_).ProofBy(options.key)),
      in_(kInBytes) {}

TlsSession::~TlsSession() { SSL_free(ssl_); }

absl::StatusOr<std::unique_ptr<TlsSession>> TlsSession::Make(const Options& options) {
  ERR_clear_error();
  std::unique_ptr<TlsSession> session(new TlsSession(options));
  SSL_CTX* const context = Bio::Context();
  session->ssl_ = context == nullptr ? nullptr : SSL_new(context);
  BIO* const bio = Bio::Method() == nullptr ? nullptr : BIO_new(Bio::Method());
  if (session->ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    return LibraryError("libssl cannot make a TLS 1.3 connection");
  }
  BIO_set_data(bio, session.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(session->ssl_, bio, bio);
  SSL_set_app_data(session->ssl_, session.get());
  if (options.is_connector) {
    SSL_set_connect_state(session->ssl_);
    // Nobody has a certificate: one that is shown proves nothing.
    SSL_set_verify(session->ssl_, SSL_VERIFY_PEER, nullptr);
  } else {
    SSL_set_accept_state(session->ssl_);
  }
  return session;
}

absl::StatusOr<bool> TlsSession::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) {
    // Both ends have used the key, and not something else that libssl may take for a proof.
    if (SSL_session_reused(ssl_) == 1) return true;
    return absl::PermissionDeniedError("TLS without the job's key");
  }
  if (SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ) return false;
  return HandshakeError();
}

absl::Status TlsSession::HandshakeError() const {
  const std::string reason = TakeReason().second;
  if (!other_identity_.empty()) {
    return absl::PermissionDeniedError(absl::StrCat("TLS: a connection for \"", other_identity_,
                                                    "\" came where \"", identity_,
                                                    "\" was expected"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat("TLS cannot be agreed on: what came was changed on its way, or the other end "
                   "does not know the job's key (",
                   reason, ")"));
}

absl::Status TlsSession::StreamError() const {
  const auto [number, reason] = TakeReason();
  if (number >= kAlertReasonMin) {
    return absl::DataLossError(absl::StrCat(
        "TLS: the other end got something else than this worker has sent (", reason, ")"));
  }
  return absl::DataLossError(absl::StrCat(
      "TLS: what came was changed, left out, repeated or reordered on its way (", reason, ")"));
}

absl::Span<std::byte> TlsSession::room() { return absl::MakeSpan(in_).subspan(in_end_); }

void TlsSession::Came(size_t bytes) { in_end_ += bytes; }

absl::Span<const std::byte> TlsSession::out() const {
  return absl::MakeConstSpan(out_).subspan(out_begin_);
}

void TlsSession::Gone(size_t bytes) {
  out_begin_ += bytes;
  if (out_begin_ < out_.size()) return;
  out_begin_ = 0;
  out_.clear();
}

absl::StatusOr<size_t> TlsSession::Read(std::byte* to, size_t bytes) {
  if (ended_) {
    in_begin_ = in_end_ = 0;  // nobody vouches for what follows
    return 0;
  }
  ERR_clear_error();
  size_t got = 0;
  if (SSL_read_ex(ssl_, to, bytes, &got) == 1) return got;
  switch (SSL_get_error(ssl_, 0)) {
    case SSL_ERROR_WANT_READ:
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      ended_ = true;
      return 0;
    default:
      return StreamError();
  }
}

absl::Status TlsSession::Write(const std::byte* from, size_t bytes) {
  ERR_clear_error();
  bytes_by_this_key_ += bytes;
  if (bytes_by_this_key_ > options_.bytes_per_key) {
    bytes_by_this_key_ = bytes;
    SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  size_t put = 0;
  if (SSL_write_ex(ssl_, from, bytes, &put) == 1) return absl::OkStatus();
  return StreamError();
}

void TlsSession::SayFarewell() {
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

std::string TlsSession::cipher() const { return SSL_get_cipher_name(ssl_); }

}  // namespace syncopate::transport::net
