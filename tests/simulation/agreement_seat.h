// A worker's place in the agreement service of a simulated job: the mailbox and the agreement of a real
// worker (worker/live_agreement.h) over the transport of the simulation, on the worker's turns instead of
// a control thread.
#ifndef SYNCOPATE_TESTS_SIMULATION_AGREEMENT_SEAT_H_
#define SYNCOPATE_TESTS_SIMULATION_AGREEMENT_SEAT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/random.h"
#include "transport/transport.h"
#include "worker/live_agreement.h"
#include "worker/mailbox.h"

namespace syncopate::simulation {

// The part of a worker's transport that its mailbox uses. The simulation looks at all mail first: it takes
// its own and gives the rest here.
class SeatTransport final : public transport::Transport {
 public:
  explicit SeatTransport(transport::Transport& transport) : transport_(transport) {}

  // Whether it has a topic; what the simulation itself sends begins with a letter.
  static bool Wants(const transport::Mail& mail) {
    return mail.bytes.empty() ||
           static_cast<unsigned char>(mail.bytes[0]) <= limits::kMailTopicBytesMax;
  }
  void Give(transport::Mail mail) {
    mail_.push_back(std::move(mail));
    wanted_ = true;
  }
  // Whether the work is to be done now, or when; INT64_MAX: not. Forgotten when it is taken.
  bool TakeWanted() { return std::exchange(wanted_, false); }
  int64_t work_at_ns() const { return work_at_ns_; }
  void TakeWorkAt() { work_at_ns_ = INT64_MAX; }

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  Patience patience() const override { return {}; }
  absl::StatusOr<std::unique_ptr<transport::GroupPort>> OpenGroup(
      uint64_t, const std::vector<int>&) override {
    return absl::UnimplementedError("a mailbox has no groups");
  }
  absl::StatusOr<std::byte*> Allocate(size_t) override {
    return absl::UnimplementedError("a mailbox needs no memory");
  }
  void Free(std::byte*) override {}
  bool Owns(const void*, size_t) const override { return false; }
  uint32_t PrepareToPark() override { return 0; }
  void Park(uint32_t, int64_t) override {}
  void CancelPark() override {}
  void Wake() override {}
  absl::Status Post(int to, transport::MailKind kind, std::string bytes) override {
    return transport_.Post(to, kind, std::move(bytes));
  }
  void TakeMail(std::vector<transport::Mail>& mail) override {
    mail.insert(mail.end(), std::make_move_iterator(mail_.begin()),
                std::make_move_iterator(mail_.end()));
    mail_.clear();
  }
  void WakeControl() override { wanted_ = true; }
  void WakeControlAt(int64_t when_ns) override { work_at_ns_ = std::min(work_at_ns_, when_ns); }
  uint64_t losses() const override { return transport_.losses(); }
  std::vector<transport::Loss> Lost() const override { return transport_.Lost(); }
  void Expel(int rank) override { transport_.Expel(rank); }

 private:
  transport::Transport& transport_;
  std::vector<transport::Mail> mail_;
  bool wanted_ = false;
  int64_t work_at_ns_ = INT64_MAX;
};

struct AgreementSeat {
  AgreementSeat(transport::Transport& worker, const Clock& clock, uint64_t seed, int proposals)
      : random(seed), left(proposals), transport(worker), mailbox(transport, clock) {}
  ~AgreementSeat() { mailbox.Stop(); }

  struct Proposal {
    std::string kind;
    uint64_t version = 0;
    int64_t proposed_ns = 0;
  };
  struct Adopted {
    Digest digest;
    int64_t from = 0;
    int64_t at_ns = 0;

    bool IsAs(const Adopted& other) const { return digest == other.digest && from == other.from; }
  };
  // Where the worker is in a kind, and what it used on its way: the version at each position.
  struct Way {
    int64_t position = 0;
    int64_t next_ns = 0;      // when it goes on
    int64_t blocked_ns = -1;  // since when; -1: it is not
    uint64_t version = 0;     // in use
    std::map<int64_t, uint64_t> used = {};
    std::map<uint64_t, Adopted> adopted = {};  // by version
  };

  Random random;
  int left = 0;  // how often it will still propose
  std::map<std::string, Way> ways = {};
  std::vector<std::pair<Proposal, int64_t>> settled = {};  // and from where they count
  int open = 0;                                            // proposals without a decision
  absl::Status ended;                                      // not OK: why it goes no further
  int64_t late_ns = 0;                                     // the longest for which it had to wait
  SeatTransport transport;
  worker::Mailbox mailbox;
  std::unique_ptr<worker::LiveAgreement> agreement;
};

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_AGREEMENT_SEAT_H_
