#include "transport/shm/shm_transport.h"

#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transport/shm/futex.h"
#include "transport/shm/introduction.h"
#include "transport/shm/peers.h"
#include "transport/shm/shm_mail.h"
#include "transport/shm/shm_session.h"

namespace syncopate::transport {
namespace {

class ShmTransport final : public Transport {
 public:
  explicit ShmTransport(std::unique_ptr<shm::Peers> peers)
      : peers_(std::move(peers)), context_(*peers_), mail_(*peers_) {}

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  // With a core for every worker, spinning is the quickest way to wait. With more workers than
  // cores the one that we wait for may need our core: give it away at once.
  Patience patience() const override {
    const bool crowded = peers_->size() > peers_->options().cores;
    return crowded ? Patience{.spins = 0, .yields = 200} : Patience{.spins = 3000, .yields = 50};
  }

  absl::StatusOr<std::unique_ptr<GroupPort>> OpenGroup(uint64_t key,
                                                       const std::vector<int>& members) override {
    return shm::ShmGroupPort::Make(context_, key, members);
  }

  void Renounce(uint64_t key) override { context_.entries.Renounce(key); }

  absl::StatusOr<std::byte*> Allocate(size_t bytes) override {
    return peers_->arena().Allocate(bytes);
  }
  bool Populate(size_t bytes) override { return peers_->arena().Populate(bytes); }
  void Free(std::byte* memory) override { peers_->arena().Free(memory); }
  bool Owns(const void* memory, size_t bytes) const override {
    return peers_->arena().Owns(memory, bytes);
  }

  uint32_t PrepareToPark() override {
    shm::Control& own = peers_->own();
    own.sleepers.fetch_add(1);
    return own.doorbell.load();
  }
  void Park(uint32_t ticket, int64_t deadline_ns) override {
    shm::FutexWait(peers_->own().doorbell, ticket, deadline_ns);
    CancelPark();
  }
  void CancelPark() override { peers_->own().sleepers.fetch_sub(1); }
  void Wake() override { peers_->Ring(peers_->rank()); }
  int bell() const override { return peers_->bell(); }

  absl::Status Post(int to, MailKind kind, std::string bytes) override {
    return mail_.Post(to, kind, std::move(bytes));
  }
  void TakeMail(std::vector<Mail>& mail) override { mail_.Take(mail); }
  int mail_bell() const override { return peers_->mail_bell(); }
  void SetControlWork(std::function<void()> work) override {
    peers_->SetControlWork(std::move(work));
  }
  void WakeControl() override { peers_->WakeControl(); }
  void WakeControlAt(int64_t when_ns) override { peers_->WakeControlAt(when_ns); }

  uint64_t losses() const override { return shm::CountVerdicts(peers_->board()); }
  std::vector<Loss> Lost() const override {
    return shm::ReadVerdicts(peers_->board(), peers_->size());
  }
  void Expel(int rank) override { peers_->Expel(rank, shm::Cause::kLate); }

 private:
  const std::unique_ptr<shm::Peers> peers_;
  shm::SessionContext context_;
  shm::ShmMail mail_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> StartShmTransport(const ShmOptions& options,
                                                             const Clock& clock) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<shm::Peers> peers, shm::Peers::Meet(options, clock));
  return std::make_unique<ShmTransport>(std::move(peers));
}

bool CannotFence(const absl::Status& status) {
  return status.GetPayload(shm::kCannotFencePayload).has_value();
}

absl::StatusOr<std::vector<std::string>> ExchangeTexts(const std::string& job, int rank, int size,
                                                       const std::string& text, const Clock& clock,
                                                       int64_t deadline_ns) {
  shm::IntroductionSpec spec;
  spec.job = job;
  spec.rank = rank;
  spec.size = size;
  spec.text = text;
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<shm::Introduction> met,
                             shm::MeetPeers(spec, clock, deadline_ns));
  std::vector<std::string> texts;
  for (shm::Introduction& peer : met) texts.push_back(std::move(peer.text));
  texts[static_cast<size_t>(rank)] = text;
  return texts;
}

}  // namespace syncopate::transport
