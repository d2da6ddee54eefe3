// What the workers of a simulated job agree on: some propose values at random moments, all go on as far as
// they may, and use the values from the points on that were said. Afterwards all survivors must have had
// the same values at the same points, whoever of those that hosted the service was struck.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulation/simulation_run.h"

namespace syncopate::simulation {
namespace {

using transport::Loss;
using worker::LiveAgreement;

// Without trouble an outcome comes within this time; after the last trouble, too. Much of it is what a
// proposal waits for those before it.
constexpr int64_t kOutcomeNs = 3 * kSecond;

// Of the first kind, workers soon come to the end of what they may go.
constexpr absl::string_view kKinds[] = {"tight", "wide"};

LiveAgreement::Kind KindOf(absl::string_view name) {
  LiveAgreement::Kind kind{.name = std::string(name), .scale = services::Scale::kIteration};
  if (name == kKinds[0]) {
    kind.further = 2;
  } else {
    kind.scale = services::Scale::kSamples;
    kind.unit = 3;
    kind.further = 8;
  }
  return kind;
}

std::string ValueOf(uint64_t seed, const std::string& kind, uint64_t version, uint64_t variant) {
  const std::string name = absl::StrCat(kind, " ", version, " ", variant, " ");
  Random random(Mix(seed, DigestOf(reinterpret_cast<const std::byte*>(name.data()), name.size())));
  // Long ones are not asked about, but fetched, and do not fit a message.
  const uint64_t most = random.Below(4) != 0 ? 60 : 6000;
  return absl::StrCat(name, std::string(random.Below(most), static_cast<char>('a' + version % 26)));
}

}  // namespace

void Simulation::JoinAgreement(Worker& worker) {
  if (worker.seat == nullptr || worker.dead) return;
  AgreementSeat& seat = *worker.seat;
  absl::StatusOr<std::unique_ptr<LiveAgreement>> started = LiveAgreement::Start(
      seat.mailbox, worker.clock,
      {.rank = worker.rank, .size = scenario_.size, .candidates = scenario_.candidates});
  if (!started.ok()) return Fail("no agreement: ", started.status().ToString());
  seat.agreement = *std::move(started);
  for (const absl::string_view name : kKinds) {
    LiveAgreement::Kind kind = KindOf(name);
    kind.check = [this, &worker, name = kind.name](uint64_t version, const std::string& value,
                                                   LiveAgreement::Checked checked) {
      Check(worker, name, version, value, std::move(checked));
    };
    kind.adopt = [this, &worker, name = kind.name](uint64_t version, const std::string& value,
                                                   int64_t from) {
      Adopt(worker, name, version, value, from);
    };
    seat.ways[kind.name];
    if (const absl::Status status = seat.agreement->Register(std::move(kind), 0); !status.ok()) {
      Fail("no agreement on ", name, ": ", status.ToString());
    }
  }
}

bool Simulation::Agree(Worker& worker) {
  if (worker.seat == nullptr || worker.seat->agreement == nullptr) return false;
  AgreementSeat& seat = *worker.seat;
  bool any = false;
  if (worker.clock.NowNs() >= seat.transport.work_at_ns() || seat.transport.TakeWanted()) {
    seat.transport.TakeWorkAt();
    seat.mailbox.Work();
    any = true;
  }
  if (!seat.ended.ok()) return any;
  if (posting_ && seat.left > 0 && !worker.out && seat.random.Below(30) == 0) {
    --seat.left;
    Propose(worker, std::string(kKinds[seat.random.Below(std::size(kKinds))]));
    any = true;
  }
  for (const absl::string_view kind : kKinds) {
    Advance(worker, std::string(kind));
  }
  return any;
}

// The next version as far as this worker knows. Several may propose the same, or different values.
void Simulation::Propose(Worker& worker, const std::string& kind) {
  AgreementSeat& seat = *worker.seat;
  const auto& adopted = seat.ways.at(kind).adopted;
  const uint64_t version = adopted.empty() ? 1 : adopted.rbegin()->first + 1;
  const uint64_t variant = seat.random.Below(5) == 0 ? 1 + static_cast<uint64_t>(worker.rank) : 0;
  const std::string value = ValueOf(scenario_.seed, kind, version, variant);
  const AgreementSeat::Proposal proposal{kind, version, time_.now_ns()};
  ++seat.open;
  const absl::Status status =
      seat.agreement->Propose(kind, version, syncopate::DigestOf(value), value,
                              [this, &worker, proposal](const absl::StatusOr<int64_t>& from) {
                                Decide(worker, proposal, from);
                              });
  Note("propose ", worker.rank, " ", kind, " ", version, " ", variant);
  if (!status.ok()) Fail("worker ", worker.rank, " cannot propose: ", status.ToString());
}

void Simulation::Decide(Worker& worker, const AgreementSeat::Proposal& proposal,
                        const absl::StatusOr<int64_t>& from) {
  AgreementSeat& seat = *worker.seat;
  --seat.open;
  seat.late_ns = std::max(seat.late_ns, LateNs(proposal.proposed_ns));
  Note("decided ", worker.rank, " ", proposal.kind, " ", proposal.version, " ",
       from.ok() ? absl::StrCat("from ", *from) : std::string(from.status().message()));
  if (from.ok()) {
    seat.settled.emplace_back(proposal, *from);
    return;
  }
  ++report_.values_refused;
  switch (from.status().code()) {
    case absl::StatusCode::kFailedPrecondition:  // another value, or a later version, was first
    case absl::StatusCode::kCancelled:
      break;
    case absl::StatusCode::kUnavailable:  // nobody is left that may host
      seat.ended = from.status();
      break;
    default:
      if (!worker.out) Fail("worker ", worker.rank, " proposed: ", from.status().ToString());
  }
}

// Not at once, as where it is read on another thread.
void Simulation::Check(Worker& worker, const std::string& kind, uint64_t version,
                       const std::string& value, LiveAgreement::Checked checked) {
  AgreementSeat& seat = *worker.seat;
  absl::StatusOr<Digest> digest = syncopate::DigestOf(value);
  if (static_cast<int>(seat.random.Below(100)) < scenario_.odd_checks) {
    Note("odd ", worker.rank, " ", kind, " ", version);
    if (seat.random.Below(2) == 0) {
      digest->low ^= 1;
    } else {
      digest = absl::InvalidArgumentError("it cannot be read");
    }
  }
  if (seat.random.Below(2) == 0) return checked(digest);
  time_.After(seat.random.Between(0, 30 * kMs),
              [this, &worker, digest, checked = std::move(checked)] {
                if (worker.dead) return;
                checked(digest);
                Wake(worker.rank);
              });
}

void Simulation::Adopt(Worker& worker, const std::string& kind, uint64_t version,
                       const std::string& value, int64_t from) {
  AgreementSeat& seat = *worker.seat;
  AgreementSeat::Way& way = seat.ways.at(kind);
  Note("adopt ", worker.rank, " ", kind, " ", version, " from ", from, " at ", way.position);
  ++report_.values_adopted;
  const std::string who = absl::StrCat("worker ", worker.rank, ", ", kind, " ", version);
  if (from <= way.position) Fail(who, ": it counts from ", from, ", told at ", way.position);
  if (!way.adopted.empty() && way.adopted.rbegin()->first >= version) Fail(who, ": told again");
  if (value.rfind(absl::StrCat(kind, " ", version, " "), 0) != 0) Fail(who, ": another value");
  way.adopted[version] = {syncopate::DigestOf(value), from, time_.now_ns()};
}

// One step further, if it is time for it and allowed. Workers that are busy have many more turns than others,
// and must not be far ahead for it.
void Simulation::Advance(Worker& worker, const std::string& kind) {
  AgreementSeat& seat = *worker.seat;
  AgreementSeat::Way& way = seat.ways.at(kind);
  if (way.blocked_ns < 0 && time_.now_ns() < way.next_ns) return;
  const int64_t next = way.position + static_cast<int64_t>(1 + seat.random.Below(4));
  if (!seat.agreement->MayReach(kind, next)) {
    if (way.blocked_ns < 0) {
      ++report_.values_awaited;
      way.blocked_ns = time_.now_ns();
    }
    return;
  }
  if (way.blocked_ns >= 0) seat.late_ns = std::max(seat.late_ns, LateNs(way.blocked_ns));
  way.blocked_ns = -1;
  if (const absl::Status status = seat.agreement->Reach(kind, next, worker.clock.NowNs());
      !status.ok()) {
    Note("ended ", worker.rank, " ", kind, " at ", way.position, ": ", status.message());
    seat.ended = status;
    return;
  }
  way.position = next;
  way.next_ns = time_.now_ns() + seat.random.Between(kMs, 60 * kMs);
  for (const auto& [version, adopted] : way.adopted) {
    if (adopted.from <= next && version > way.version) {
      way.version = version;
      ++report_.values_used;
    }
  }
  way.used[next] = way.version;
}

// ---- the end

bool Simulation::MayHost(const std::vector<int>& survivors) const {
  return std::any_of(scenario_.candidates.begin(), scenario_.candidates.end(), [&](int rank) {
    return std::find(survivors.begin(), survivors.end(), rank) != survivors.end();
  });
}

// Those that are left can still agree.
void Simulation::AgreeOnce(const std::vector<int>& survivors) {
  if (scenario_.proposals < 0 || survivors.empty() || !MayHost(survivors)) return;
  const std::string kind(kKinds[0]);
  Worker& first = worker(survivors[scenario_.seed % survivors.size()]);
  const auto& adopted = first.seat->ways.at(kind).adopted;
  const uint64_t version = adopted.empty() ? 1 : adopted.rbegin()->first + 1;
  Propose(first, kind);
  const bool refused = scenario_.odd_checks > 0;  // perhaps
  const auto has_it = [&](int rank) {
    const AgreementSeat& seat = *worker(rank).seat;
    return seat.open == 0 && seat.agreement->MayReach(kind, INT64_MAX - 1) &&
           (refused || seat.ways.at(kind).adopted.contains(version));
  };
  const auto waiting = [&] { return !std::all_of(survivors.begin(), survivors.end(), has_it); };
  if (!RunWhile(waiting, time_.now_ns() + 20 * kSecond)) {
    Fail("the survivors do not come to the last value");
  }
  // Who was asked late, after another one had refused it, hears at once what became of it.
  if (!refused) return;
  const int64_t heard_ns = time_.now_ns() + 500 * kMs;
  RunWhile([&] { return time_.now_ns() < heard_ns; }, heard_ns + kSecond);
}

void Simulation::CheckAgreement(const std::vector<int>& survivors) {
  if (scenario_.proposals < 0) return;
  // From the order of losses, which all have in common.
  if (!survivors.empty()) {
    std::vector<int> left = scenario_.candidates;
    for (const Loss& loss : worker(survivors.front()).transport->Lost()) {
      if (!left.empty() && left.front() == loss.rank) ++report_.hosts_lost;
      std::erase(left, loss.rank);
    }
  }
  for (const int rank : survivors) {
    for (const auto& [kind, way] : worker(rank).seat->ways) {
      for (const auto& [version, adopted] : way.adopted) {
        AgreementSeat::Adopted& value = agreed_.try_emplace({kind, version}, adopted).first->second;
        value.at_ns = std::min(value.at_ns, adopted.at_ns);
        if (!value.IsAs(adopted)) {
          Fail("worker ", rank, " has another ", kind, " ", version, ", from ", adopted.from,
               " instead of ", value.from);
        }
      }
    }
  }
  const bool hosted = MayHost(survivors);
  report_.unhosted = !hosted && !survivors.empty();
  for (const int rank : survivors) {
    const AgreementSeat& seat = *worker(rank).seat;
    const std::string who = absl::StrCat("worker ", rank);
    report_.outcome_ns = std::max(report_.outcome_ns, seat.late_ns);
    if (seat.late_ns > kOutcomeNs) {
      Fail(who, " waited ", seat.late_ns / kMs, " ms for an outcome after the last trouble");
    }
    if (!hosted) {
      const bool says = seat.ended.message().find("may host services") != std::string::npos ||
                        seat.ended.message().find("will not learn") != std::string::npos;
      if (!says) Fail(who, " does not know that nobody hosts: ", seat.ended.ToString());
      continue;
    }
    if (!seat.ended.ok()) Fail(who, " does not agree any more: ", seat.ended.ToString());
    if (seat.open > 0) Fail(who, " has ", seat.open, " proposals without a decision");
    CheckValues(worker(rank));
  }
}

// Of a survivor, while somebody hosts.
void Simulation::CheckValues(const Worker& worker) {
  const std::string who = absl::StrCat("worker ", worker.rank);
  size_t values = 0;
  for (const auto& [kind, way] : worker.seat->ways) {
    values += way.adopted.size();
    if (way.blocked_ns >= 0 || !worker.seat->agreement->MayReach(kind, INT64_MAX - 1)) {
      Fail(who, " still waits for an outcome at ", kind, " ", way.position);
    }
    for (const auto& [position, version] : way.used) {
      uint64_t right = 0;
      for (const auto& [id, value] : agreed_) {
        if (id.first == kind && value.from <= position) right = std::max(right, id.second);
      }
      if (version != right) {
        Fail(who, " used ", kind, " ", version, " at ", position, " instead of ", right);
      }
    }
  }
  if (values != agreed_.size()) Fail(who, " has ", values, " of ", agreed_.size(), " values");
  for (const auto& [proposal, from] : worker.seat->settled) {
    const auto found = agreed_.find({proposal.kind, proposal.version});
    if (found == agreed_.end() || found->second.from != from) {
      Fail(who, " was told that ", proposal.kind, " ", proposal.version, " counts from ", from);
    }
  }
}

}  // namespace syncopate::simulation
