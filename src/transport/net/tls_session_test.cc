// TLS between two ends in memory: without a socket every byte can be looked at and changed.
#include "transport/net/tls_session.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TlsSession::Options Options(bool is_connector) {
  return {.key = std::string(32, 'k'),
          .job = 17,
          .connector = 5,
          .acceptor = 2,
          .lane = 1,
          .is_connector = is_connector};
}

std::unique_ptr<TlsSession> Make(const TlsSession::Options& options) {
  auto session = TlsSession::Make(options);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

std::string TakeOut(TlsSession& session) {
  const auto out = session.out();
  std::string bytes(reinterpret_cast<const char*>(out.data()), out.size());
  session.Gone(out.size());
  return bytes;
}
// As much as fits; the rest stays in `bytes`.
void PutIn(TlsSession& session, std::string& bytes) {
  const auto room = session.room();
  const size_t count = std::min(room.size(), bytes.size());
  std::memcpy(room.data(), bytes.data(), count);
  session.Came(count);
  bytes.erase(0, count);
}
void Deliver(TlsSession& from, TlsSession& to) {
  std::string bytes = TakeOut(from);
  PutIn(to, bytes);
  EXPECT_EQ(bytes, "");
}

struct SessionPair {
  std::unique_ptr<TlsSession> connector = Make(Options(true));
  std::unique_ptr<TlsSession> acceptor = Make(Options(false));
  absl::Status failed = absl::OkStatus();  // the first error

  // The handshake; true if both ends have agreed.
  bool Meet() {
    bool done[2] = {false, false};
    for (int round = 0; round < 4 && !(done[0] && done[1]); ++round) {
      TlsSession* ends[2] = {connector.get(), acceptor.get()};
      for (int i : {0, 1}) {
        if (done[i]) continue;
        const absl::StatusOr<bool> proved = ends[i]->Handshake();
        Deliver(*ends[i], *ends[1 - i]);
        if (!proved.ok()) {
          if (failed.ok()) failed = proved.status();
          return false;
        }
        done[i] = *proved;
      }
    }
    return done[0] && done[1];
  }
};

absl::StatusOr<std::string> ReadAll(TlsSession& session, std::string ciphertext) {
  std::string all;
  while (true) {
    char buffer[20'000];
    const auto got = session.Read(reinterpret_cast<std::byte*>(buffer), sizeof(buffer));
    if (!got.ok()) return got.status();
    all.append(buffer, *got);
    if (*got > 0) continue;
    if (ciphertext.empty() || session.ended()) return all;
    PutIn(session, ciphertext);
  }
}
absl::StatusOr<std::string> Pass(TlsSession& from, TlsSession& to, const std::string& text) {
  const absl::Status written =
      from.Write(reinterpret_cast<const std::byte*>(text.data()), text.size());
  if (!written.ok()) return written;
  return ReadAll(to, TakeOut(from));
}

TEST(TlsSessionTest, BothEndsAgreeAndCarryAllSizes) {
  SessionPair pair;
  ASSERT_TRUE(pair.Meet()) << pair.failed;
  EXPECT_THAT(pair.connector->cipher(),
              AnyOf("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"));
  EXPECT_EQ(pair.connector->cipher(), pair.acceptor->cipher());
  EXPECT_TRUE(pair.acceptor->out().empty()) << "tickets for a connection that is made once";
  for (const size_t size : {1u, 72u, 16384u, 16385u, 300'000u}) {
    const std::string text(size, 'x');
    EXPECT_EQ(*Pass(*pair.connector, *pair.acceptor, text), text);
    EXPECT_EQ(*Pass(*pair.acceptor, *pair.connector, text), text);
  }
}

TEST(TlsSessionTest, NothingIsReadable) {
  SessionPair pair;
  ASSERT_TRUE(pair.Meet()) << pair.failed;
  const std::string text = "the weights of a layer, and what its gradients say of the data";
  ASSERT_TRUE(
      pair.connector->Write(reinterpret_cast<const std::byte*>(text.data()), text.size()).ok());
  EXPECT_THAT(TakeOut(*pair.connector), Not(HasSubstr("weights")));
}

TEST(TlsSessionTest, ConnectionsForSomethingElseAreRefused) {
  const auto expect_refused = [](const TlsSession::Options& other, const std::string& words) {
    SessionPair pair;
    pair.connector = Make(other);
    EXPECT_FALSE(pair.Meet());
    EXPECT_TRUE(absl::IsPermissionDenied(pair.failed)) << pair.failed;
    EXPECT_THAT(std::string(pair.failed.message()),
                AllOf(HasSubstr(words), Not(HasSubstr("kkkk"))));
  };
  TlsSession::Options other = Options(true);
  other.lane = 0;
  expect_refused(other, "lane 0\" came where \"syncopate job 17 worker 5 to 2 lane 1\"");
  other = Options(true);
  other.connector = 6;
  expect_refused(other, "worker 6 to 2");
  other = Options(true);
  other.job = 18;
  expect_refused(other, "job 18");
  other = Options(true);
  other.key = std::string(32, 'q');
  expect_refused(other, "does not know the job's key");
}

TEST(TlsSessionTest, AChangedHandshakeIsRefused) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SessionPair pair;
    TlsSession* ends[2] = {pair.connector.get(), pair.acceptor.get()};
    const uint64_t harmed = random.Next() % 3;  // the message
    bool done[2] = {false, false}, refused = false, changed = false;
    for (uint64_t message = 0; message < 3 && !refused; ++message) {
      const size_t from = message % 2;
      const auto proved = ends[from]->Handshake();
      refused = !proved.ok();
      if (refused) break;
      done[from] = *proved;
      std::string bytes = TakeOut(*ends[from]);
      if (message == harmed && !bytes.empty()) {
        // The first three bytes of a greeting's record are not looked at (RFC 8446, 5.1), and a few
        // more say nothing that counts; nothing may come of changing those.
        const size_t at = 5 + random.Next() % (bytes.size() - 5);
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Next() % 8));
        changed = true;
      }
      PutIn(*ends[1 - from], bytes);
    }
    if (!refused) {
      for (const size_t end : {1u, 0u}) {
        const auto proved = ends[end]->Handshake();
        refused = refused || !proved.ok();
        done[end] = proved.ok() && *proved;
      }
    }
    EXPECT_TRUE(changed);
    EXPECT_FALSE(done[0] && done[1]);
  }
}

TEST(TlsSessionTest, AnyChangedBitIsFound) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SessionPair pair;
    ASSERT_TRUE(pair.Meet()) << pair.failed;
    const std::string text(random.Next() % 40'000 + 1, 'x');
    ASSERT_TRUE(
        pair.connector->Write(reinterpret_cast<const std::byte*>(text.data()), text.size()).ok());
    std::string bytes = TakeOut(*pair.connector);
    const size_t at = random.Next() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Next() % 8));
    // A length that was changed shows with what follows.
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(
          pair.connector->Write(reinterpret_cast<const std::byte*>(text.data()), text.size()).ok());
    }
    bytes += TakeOut(*pair.connector) + std::string(20'000, '\0');
    const auto got = ReadAll(*pair.acceptor, bytes);
    ASSERT_FALSE(got.ok());
    EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
    // The other end is told.
    EXPECT_FALSE(pair.acceptor->out().empty());
    const auto told = ReadAll(*pair.connector, TakeOut(*pair.acceptor));
    EXPECT_THAT(std::string(told.status().message()),
                HasSubstr("got something else than this worker has sent"));
  }
}

TEST(TlsSessionTest, KeysAreReplacedAfterSomeBytes) {
  TlsSession::Options small = Options(true);
  small.bytes_per_key = 100'000;
  SessionPair pair;
  pair.connector = Make(small);
  ASSERT_TRUE(pair.Meet()) << pair.failed;
  const std::string text(40'000, 'x');
  size_t bytes_min = SIZE_MAX, bytes_max = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        pair.connector->Write(reinterpret_cast<const std::byte*>(text.data()), text.size()).ok());
    bytes_min = std::min(bytes_min, pair.connector->out().size());
    bytes_max = std::max(bytes_max, pair.connector->out().size());
    EXPECT_EQ(*ReadAll(*pair.acceptor, TakeOut(*pair.connector)), text);
  }
  EXPECT_GT(bytes_max, bytes_min) << "there was no message about a new key";
}

TEST(TlsSessionTest, AFarewellTellsAGoodEndFromACut) {
  SessionPair pair;
  ASSERT_TRUE(pair.Meet()) << pair.failed;
  EXPECT_EQ(*Pass(*pair.connector, *pair.acceptor, "last words"), "last words");
  EXPECT_FALSE(pair.acceptor->ended());
  pair.connector->SayFarewell();
  EXPECT_EQ(*ReadAll(*pair.acceptor, TakeOut(*pair.connector)), "");
  EXPECT_TRUE(pair.acceptor->ended());
  // The other direction is still open.
  EXPECT_EQ(*Pass(*pair.acceptor, *pair.connector, "an answer"), "an answer");
}

}  // namespace
}  // namespace syncopate::transport::net
