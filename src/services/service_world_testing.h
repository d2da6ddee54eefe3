// A job whose workers have the services of this room, in virtual time and from one seed: delays of
// messages and parcels, workers that die, are held for lost though they still run, leave or join, at
// chosen steps of requests. No threads, so a run takes about a millisecond.
#ifndef SYNCOPATE_SERVICES_SERVICE_WORLD_TESTING_H_
#define SYNCOPATE_SERVICES_SERVICE_WORLD_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/random.h"
#include "services/agreement.h"
#include "services/agreement_member.h"
#include "services/counter.h"
#include "services/sample_holder.h"
#include "services/sample_ranges.h"
#include "services/service_host.h"
#include "services/service_message.h"
#include "services/service_world_checks_testing.h"
#include "services/service_world_options_testing.h"

namespace syncopate::services {

class ServiceWorld {
 public:
  struct Counts {
    uint64_t events = 0, messages = 0, parcels = 0, answers = 0;
    uint64_t adopted = 0, refused = 0, repeated = 0, blocked = 0, released = 0;
    uint64_t takeovers = 0, rebuilt = 0, ended = 0, left = 0, joined = 0;
    std::map<std::string, uint64_t> faults;  // that happened, by name
  };

  explicit ServiceWorld(WorldOptions options)
      : options_(std::move(options)), random_(options_.seed) {
    for (int rank = 0; rank < options_.workers; ++rank) AddWorker(rank, {});
    for (int i = 0; i < options_.joiners; ++i) {
      Schedule(random_.Between(0, 400), {.what = Event::kJoin, .to = options_.workers + i});
    }
  }

  // Runs until nothing happens any more. What did not hold; empty if all did.
  std::string Run() {
    for (auto& [rank, worker] : workers_) Drain(rank);
    while (!queue_.empty() && fault_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      now_ = event.time;
      if (++counts_.events > 200'000) Fail("the job does not come to an end");
      Handle(event);
    }
    if (fault_.empty()) {
      fault_ =
          WorldChecks(options_, workers_, changes_.size(), counts_.joined > 0, rebuilt_).Check();
    }
    return fault_;
  }

  const Counts& counts() const { return counts_; }

 private:
  struct Event {
    enum What { kMail, kChange, kAct, kChecked, kDie, kJoin, kLeave };
    What what = kAct;
    int to = -1;
    int from = -1;
    std::string bytes = {};
    Change change = {};
    ServiceId round = {};
    Digest digest = {};
    int64_t time = 0;
    uint64_t number = 0;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return std::tie(a.time, a.number) > std::tie(b.time, b.number);
    }
  };
  using Worker = WorldWorker;

  void Fail(const std::string& what) {
    if (fault_.empty()) fault_ = absl::StrCat("at ", now_, ": ", what);
  }

  void Schedule(int64_t time, Event event) {
    event.time = std::max(time, now_);
    event.number = ++events_;
    queue_.push(std::move(event));
  }

  Worker& worker(int rank) { return workers_.at(rank); }
  bool InJob(int rank) const { return workers_.at(rank).in_job; }

  void AddWorker(int rank, std::vector<Change> history) {
    std::vector<int> all, candidates;
    for (int i = 0; i < options_.workers; ++i) {
      all.push_back(i);
      if (i < options_.workers - options_.servers) candidates.push_back(i);
    }
    Services services;
    services.push_back(std::make_unique<Agreement>(all));
    services.push_back(std::make_unique<SampleRanges>(SampleRangesOptions{
        .samples = options_.samples, .epochs = options_.epochs, .ahead = options_.seed % 2}));
    services.push_back(std::make_unique<Counter>(options_.counter_rebuilds));
    Worker& worker = workers_[rank];
    worker.joined = !history.empty();
    auto host = ServiceHost::Make({.rank = rank,
                                   .size = options_.workers,
                                   .candidates = candidates,
                                   .history = std::move(history)},
                                  std::move(services), now_ + Skew(rank));
    if (!host.ok()) return Fail(host.status().ToString());
    worker.host = *std::move(host);
    Schedule(now_ + random_.Between(0, 20), {.what = Event::kAct, .to = rank});
    Ask(rank, kWorldSamples, worker.holder.Take(BatchOf(rank)));
  }

  // Clocks of workers have nothing in common.
  int64_t Skew(int rank) const { return 1000 * ((rank * 7) % 5); }
  uint64_t BatchOf(int rank) const { return 2 + static_cast<uint64_t>(rank) % 3; }

  void Handle(const Event& event) {
    if (event.what == Event::kJoin) return Join(event.to);
    Worker& to = worker(event.to);
    if (event.what == Event::kDie) {
      to.runs = false;
      return;
    }
    if (!to.runs || to.ended.has_value()) return;
    const int64_t now = now_ + Skew(event.to);
    switch (event.what) {
      case Event::kMail:
        // Nothing comes from a worker that is known to be gone, or from one that died before it sent.
        if (!to.host->order().IsLive(event.from)) return;
        if (const auto cut = cuts_.find({event.from, event.to});
            cut != cuts_.end() && event.time > cut->second) {
          return;
        }
        to.host->Arrived(event.from, event.bytes, now);
        break;
      case Event::kChange: {
        const bool hosted = to.host->hosts();
        to.host->Changed(event.change, now);
        counts_.takeovers += !hosted && to.host->hosts();
        break;
      }
      case Event::kAct:
        Act(event.to);
        break;
      case Event::kChecked:
        to.member.Checked(event.round, event.digest);
        break;
      default:
        break;
    }
    Drain(event.to);
  }

  void Join(int rank) {
    Change change = {
        .kind = Change::Kind::kJoined, .rank = rank, .may_host = random_.Below(2) == 0};
    ++counts_.joined;
    change.order = changes_.size() + 1;
    std::vector<Change> history = changes_;
    history.push_back(change);
    Announce(change);
    AddWorker(rank, std::move(history));
    Drain(rank);
  }

  // A change is agreed now; workers learn it one after the other.
  void Announce(Change change) {
    change.order = changes_.size() + 1;
    changes_.push_back(change);
    for (auto& [rank, worker] : workers_) {
      if (!worker.in_job || rank == change.rank) continue;
      int64_t& learnt = learnt_[rank];
      learnt = std::max(learnt + 1, now_ + random_.Between(1, 30));
      knows_[{rank, change.order}] = learnt;
      Schedule(learnt, {.what = Event::kChange, .to = rank, .change = change});
      if (change.kind != Change::Kind::kJoined) {
        cuts_[{change.rank, rank}] = random_.Below(3) == 0 ? now_ : random_.Between(now_, learnt);
      } else {
        not_before_[{change.rank, rank}] = learnt;
      }
    }
  }

  void Gone(int rank, Change::Kind kind) {
    Worker& gone = worker(rank);
    if (!gone.in_job) return;
    gone.in_job = false;
    Announce({.kind = kind, .rank = rank});
  }

  bool MayGo(int rank) const {
    // One that may host stays.
    int others = 0;
    for (int i = 0; i < options_.workers - options_.servers; ++i) {
      const Worker& each = workers_.at(i);
      others += i != rank && each.in_job && !each.leaving && !leave_soon_.contains(i);
    }
    return others > 0;
  }

  // Whose request a message is about; -1: nobody's. Of a state it is any worker that only asks.
  int AskerOf(int from, int to, const ServiceMessage& message) {
    if (std::holds_alternative<RequestMessage>(message.body)) return from;
    if (std::holds_alternative<AnswerMessage>(message.body)) return to;
    if (const auto* event = std::get_if<EventMessage>(&message.body)) {
      const auto* request = std::get_if<LoggedRequest>(&event->event);
      const int asker = request == nullptr ? -1 : request->from;
      askers_[{message.incarnation, event->sequence}] = asker;
      return asker;
    }
    if (const auto* ack = std::get_if<AckMessage>(&message.body)) {
      const auto found = askers_.find({message.incarnation, ack->sequence});
      return found == askers_.end() ? -1 : found->second;
    }
    int last = -1;
    for (const auto& [rank, worker] : workers_) last = worker.in_job ? rank : last;
    return last;
  }

  // The worker in this role as the sender sees it; -1: there is none that is still there.
  int VictimOf(const std::string& role, int from, int asker) const {
    const HostOrder& order = workers_.at(from).host->order();
    int victim = role == "host" ? order.host() : role == "standby" ? order.standby() : asker;
    if (role == "asker" && (victim == order.host() || victim == order.standby())) victim = -1;
    if (victim < 0) return -1;
    const Worker& worker = workers_.at(victim);
    return worker.runs && worker.in_job && !worker.leaving ? victim : -1;
  }

  void MeetFaults(int from, int asker, const std::string& message, bool after) {
    for (WorldFault& fault : options_.faults) {
      if (fault.times <= 0 || fault.message != message || fault.after != after) continue;
      const int victim = VictimOf(fault.role, from, asker);
      if (victim < 0 || --fault.times > 0 || !MayGo(victim)) continue;
      ++counts_.faults[fault.Name()];
      if (fault.kind == "leave") {
        leave_soon_.insert(victim);  // not inside of a step
        Schedule(now_, {.what = Event::kLeave, .to = victim});
      } else {
        if (fault.kind == "death") {
          worker(victim).runs = false;
        } else {
          Schedule(now_ + random_.Between(0, 100), {.what = Event::kDie, .to = victim});
        }
        Gone(victim, Change::Kind::kLost);
      }
    }
  }

  void Mail(int from, int to, std::string bytes, bool parcel) {
    const auto message = DecodeMessage(bytes);
    if (!message.ok()) return Fail(message.status().ToString());
    const std::string name(NameOf(*message));
    const int asker = AskerOf(from, to, *message);
    if (parcel != (bytes.size() > limits::kMailBytesMax)) Fail("a parcel for a short message");
    MeetFaults(from, asker, name, /*after=*/false);
    if (!worker(from).runs) return;
    ++(parcel ? counts_.parcels : counts_.messages);
    int64_t& last = last_mail_[{from, to, parcel}];
    last = std::max(last + 1, now_ + random_.Between(1, parcel ? 40 : 12));
    if (const auto not_before = not_before_.find({from, to}); not_before != not_before_.end()) {
      last = std::max(last, not_before->second + 1);
    }
    Schedule(last, {.what = Event::kMail, .to = to, .from = from, .bytes = std::move(bytes)});
    MeetFaults(from, asker, name, /*after=*/true);
  }

  template <typename Request>
  void Ask(int rank, uint16_t service, const Request& request) {
    const auto ticket =
        worker(rank).host->Ask(service, request.tag, request.bytes, now_ + Skew(rank));
    if (!ticket.ok() && !worker(rank).ended.has_value()) Fail(ticket.status().ToString());
  }

  // Does what the machines of a worker ask for, until they ask for nothing.
  void Drain(int rank) {
    Worker& self = worker(rank);
    bool more = true;
    while (more && self.runs) {
      more = false;
      for (ServiceCommand& command : self.host->TakeCommands()) {
        more = true;
        if (!self.runs) return;  // it died in the middle
        Do(rank, std::move(command));
      }
      for (AgreementMember::Command& command : self.member.TakeCommands()) {
        more = true;
        Do(rank, std::move(command));
      }
      if (self.ended.has_value()) return;
      if (leave_soon_.erase(rank) > 0) {
        self.leaving = true;
        self.host->Leave(now_ + Skew(rank));
        more = true;
      }
      if (self.blocked && self.runs) Proceed(rank);
    }
  }

  void Do(int rank, ServiceCommand command) {
    Worker& self = worker(rank);
    if (auto* send = std::get_if<Send>(&command)) {
      Mail(rank, send->to, std::move(send->bytes), false);
    } else if (auto* parcel = std::get_if<SendParcel>(&command)) {
      Mail(rank, parcel->to, std::move(parcel->bytes), true);
    } else if (auto* answered = std::get_if<Answered>(&command)) {
      ++counts_.answers;
      if (!self.answered.insert(answered->ticket).second) Fail("a ticket is answered twice");
      OnAnswer(rank, *answered);
    } else if (auto* wanted = std::get_if<ReportWanted>(&command)) {
      self.host->GiveReports(
          wanted->incarnation,
          {self.member.Report(), self.holder.Report(), Counter::Report(self.largest_sum)},
          now_ + Skew(rank));
    } else if (std::holds_alternative<MayLeave>(command)) {
      ++counts_.left;
      Schedule(now_ + random_.Between(0, 30), {.what = Event::kDie, .to = rank});
      Gone(rank, Change::Kind::kLeft);
    } else if (auto* end = std::get_if<EndJob>(&command)) {
      ++counts_.ended;
      self.ended = end->status;
    } else if (auto* remark = std::get_if<Remark>(&command)) {
      if (remark->important) {
        if (remark->text.find("has rebuilt") == std::string::npos) Fail(remark->text);
        rebuilt_ = true;
        ++counts_.rebuilt;
      }
    }
  }

  void OnAnswer(int rank, const Answered& answered) {
    Worker& self = worker(rank);
    if (answered.service == kWorldAgreement) {
      self.member.Answered(answered.tag, answered.code, answered.bytes);
      return;
    }
    if (answered.service == kWorldCounter) {
      const auto sum = Counter::Read(answered.bytes);
      if (answered.code != absl::StatusCode::kOk || !sum.ok()) return Fail("no sum");
      self.sums.push_back(*sum);
      self.largest_sum = std::max(self.largest_sum, sum->total);
      return;
    }
    auto grant = self.holder.Answered(answered.tag, answered.code, answered.bytes);
    if (!grant.ok()) return Fail(absl::StrCat("rank ", rank, ": ", grant.status().ToString()));
    const auto said = self.said.extract(answered.tag);
    if (!said.empty()) {
      self.counted.insert(self.counted.end(), said.mapped().begin(), said.mapped().end());
    }
    self.over = grant->over;
    if (self.over) return ReleaseBriefs(rank, kWorldBriefs);
    self.computing = std::move(grant->ranges);
    Schedule(now_ + random_.Between(1, 10) * (rank % 3 + 1), {.what = Event::kAct, .to = rank});
  }

  void Do(int rank, AgreementMember::Command command) {
    Worker& self = worker(rank);
    if (auto* ask = std::get_if<AgreementMember::Ask>(&command)) {
      Ask(rank, kWorldAgreement, *ask);
    } else if (auto* check = std::get_if<AgreementMember::Check>(&command)) {
      Digest digest = DigestOf(check->value);
      if (random_.Unit() < options_.bad_digests) digest.low ^= 1;
      Schedule(now_ + random_.Between(0, 5),
               {.what = Event::kChecked, .to = rank, .round = check->round, .digest = digest});
    } else if (auto* adopt = std::get_if<AgreementMember::Adopt>(&command)) {
      ++counts_.adopted;
      if (adopt->from <= self.position && !self.joined) {
        Fail(absl::StrCat("rank ", rank, " is told too late of ", Describe(adopt->title)));
      }
      if (DigestOf(adopt->value) != adopt->title.digest) Fail("another value than was agreed");
      self.adopted.push_back(std::move(*adopt));
    } else if (auto* decided = std::get_if<AgreementMember::Decided>(&command)) {
      if (decided->status.ok()) {
        self.settled.emplace_back(self.proposed.at(decided->proposal), decided->from);
      } else {
        ++counts_.refused;
      }
    }
  }

  // A batch is computed.
  void Act(int rank) {
    Worker& self = worker(rank);
    if (self.computing.empty() || self.blocked) return;
    if (random_.Below(6) == 0) {
      ++self.additions;
      Ask(rank, kWorldCounter, SampleHolder::Ask{.tag = 0, .bytes = Counter::Add(1)});
    }
    if (random_.Below(12) == 0) ProposeSomething(rank);
    Proceed(rank);
  }

  void ProposeSomething(int rank) {
    Worker& self = worker(rank);
    std::string kind = random_.Below(2) == 0 ? "schedule" : "topology";
    if (random_.Below(2) == 0 && self.brief < kWorldBriefs) kind = WorldBriefKind(self.brief);
    uint64_t version = 1;
    for (const auto& adopted : self.adopted) {
      if (adopted.title.kind == kind) version = adopted.title.version + 1;
    }
    const size_t bytes = random_.Below(3) == 0 ? random_.Below(6000) : random_.Below(100);
    // Several workers may propose the same.
    std::string value(bytes, static_cast<char>('a' + version % 26));
    ValueTitle title = {.kind = kind,
                        .version = version,
                        .scale = Scale::kIteration,
                        .further = kind == "schedule" ? uint8_t{2} : kUnitsFurtherMax};
    title.digest = DigestOf(value);
    title.bytes = value.size();
    const auto number = self.member.Propose(title, value);
    if (!number.ok()) return Fail(number.status().ToString());
    self.proposed[*number] = title;
  }

  // Lets go of those below `end`.
  void ReleaseBriefs(int rank, int end) {
    Worker& self = worker(rank);
    for (; self.brief < end; ++self.brief) {
      self.member.Release(WorldBriefKind(self.brief));
      ++counts_.released;
    }
  }

  // Takes the step for which the batch was computed, unless it is at the end of its margin.
  void Proceed(int rank) {
    Worker& self = worker(rank);
    const int64_t next = self.position + 5 + (rank * 3 + self.position) % 41;
    int64_t limit = std::min(self.member.Limit("schedule"), self.member.Limit("topology"));
    for (int each = self.brief; each < kWorldBriefs; ++each) {
      limit = std::min(limit, self.member.Limit(WorldBriefKind(each)));
    }
    if (next > limit) {
      counts_.blocked += !self.blocked;
      self.blocked = true;
      return;
    }
    self.blocked = false;
    self.position = next;
    for (const char* kind : {"schedule", "topology"}) self.member.Reached(kind, next);
    ReleaseBriefs(rank, static_cast<int>(std::min<int64_t>(next / kBriefPositions, kWorldBriefs)));
    for (int each = self.brief; each < kWorldBriefs; ++each)
      self.member.Reached(WorldBriefKind(each), next);
    std::map<std::string, uint64_t> versions;
    for (const auto& adopted : self.adopted) {
      if (adopted.from <= next) versions[adopted.title.kind] = adopted.title.version;
    }
    for (const std::string kind : {"schedule", "topology"}) {
      self.used.emplace_back(next, kind, versions[kind]);
    }
    std::vector<ServiceId> ids;
    for (const SampleRange& range : self.computing) ids.push_back(range.id);
    self.holder.Use(ids);
    const SampleHolder::Ask ask = self.holder.Take(BatchOf(rank));
    self.said[ask.tag] = std::exchange(self.computing, {});
    Ask(rank, kWorldSamples, ask);
  }

  WorldOptions options_;
  Random random_;
  Counts counts_;
  int64_t now_ = 0;
  uint64_t events_ = 0;
  std::string fault_;
  bool rebuilt_ = false;
  std::map<int, Worker> workers_;
  std::vector<Change> changes_;
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::map<std::tuple<int, int, bool>, int64_t> last_mail_;
  std::map<std::pair<int, int>, int64_t> cuts_;        // from, to: what comes later is lost
  std::map<std::pair<int, int>, int64_t> not_before_;  // from a joiner, to
  std::map<int, int64_t> learnt_;                      // rank: when it learns its last change
  std::map<std::pair<int, uint64_t>, int64_t> knows_;
  std::set<int> leave_soon_;
  std::map<std::pair<uint64_t, uint64_t>, int>
      askers_;  // incarnation, number of an event: who asked
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_WORLD_TESTING_H_
