// What must hold at the end of the job of service_world_testing.h: every request of a survivor is answered once,
// survivors hold the same values from the same points, ids and sums are given once, every sample is counted once
// an epoch, and host and standby are in the same state.
#ifndef SYNCOPATE_SERVICES_SERVICE_WORLD_CHECKS_TESTING_H_
#define SYNCOPATE_SERVICES_SERVICE_WORLD_CHECKS_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "services/agreement.h"
#include "services/agreement_member.h"
#include "services/counter.h"
#include "services/sample_holder.h"
#include "services/sample_ranges.h"
#include "services/service_host.h"
#include "services/service_world_options_testing.h"

namespace syncopate::services {

inline constexpr uint16_t kWorldAgreement = 0, kWorldSamples = 1, kWorldCounter = 2;

// Kinds that workers use one after the other, each for some positions, and let go of, as those of
// synchronizers that end. Workers are at different ones at a time.
inline constexpr int kWorldBriefs = 3;
inline constexpr int64_t kBriefPositions = 60;
inline std::string WorldBriefKind(int number) { return absl::StrCat("brief ", number); }

// What a worker of the job is, and what it has seen, as the checks at the end need it.
struct WorldWorker {
  std::unique_ptr<ServiceHost> host;
  AgreementMember member;
  SampleHolder holder;
  bool runs = true;    // its code is executed
  bool in_job = true;  // no change has said that it is gone
  bool leaving = false, joined = false;
  bool over = false;  // there are no more samples
  bool blocked = false;
  bool rebuilt = false;
  std::optional<absl::Status> ended;
  int64_t position = 0;
  int brief = 0;  // the kind that it uses for a while; it has let go of those before
  std::vector<SampleRange> computing;
  std::map<uint64_t, std::vector<SampleRange>> said;  // by tag, not answered yet
  std::vector<SampleRange> counted;                   // said and answered
  std::set<uint64_t> answered;                        // tickets
  std::vector<AgreementMember::Adopt> adopted;
  std::vector<std::tuple<int64_t, std::string, uint64_t>> used;  // position, kind, version
  std::map<uint64_t, ValueTitle> proposed;
  std::vector<std::pair<ValueTitle, int64_t>> settled;
  std::vector<Counter::Sum> sums;
  uint64_t additions = 0;
  uint64_t largest_sum = 0;
};
class WorldChecks {
 public:
  // `changes`: how many there were; `joined`: whether anybody did; `rebuilt`: whether a service went on from reports.
  WorldChecks(const WorldOptions& options, const std::map<int, WorldWorker>& workers,
              size_t changes, bool joined, bool rebuilt)
      : options_(options),
        workers_(workers),
        changes_(changes),
        joined_(joined),
        rebuilt_(rebuilt) {}

  // What does not hold first; empty if all does.
  std::string Check() {
    CheckAll();
    return fault_;
  }

 private:
  void Fail(const std::string& what) {
    if (fault_.empty()) fault_ = absl::StrCat("at the end: ", what);
  }

  void CheckAll() {
    bool ended = false;
    for (const auto& [rank, worker] : workers_) ended |= worker.in_job && worker.ended.has_value();
    if (ended) return CheckEnd();
    for (const auto& [rank, worker] : workers_) {
      if (worker.in_job) CheckSurvivor(rank, worker);
    }
    CheckWorldAgreement();
    CheckCounter();
    CheckSamples();
    CheckReplicas();
  }

  // A job may only end because the counter cannot be rebuilt, and then for all.
  void CheckEnd() {
    for (const auto& [rank, worker] : workers_) {
      if (options_.counter_rebuilds && worker.ended.has_value()) {
        Fail(absl::StrCat("the job has ended though all can be rebuilt: rank ", rank, ": ",
                          worker.ended->ToString()));
      }
      // One that joins a job that has ended learns that from the others' going.
      if (!worker.in_job || (worker.joined && !worker.ended.has_value())) continue;
      if (!worker.ended.has_value()) {
        Fail(absl::StrCat("rank ", rank, " does not know that the job has ended"));
      } else if (worker.ended->code() != absl::StatusCode::kUnavailable ||
                 worker.ended->message().find("lost together") == std::string::npos ||
                 worker.ended->message().find("counter") == std::string::npos) {
        Fail(worker.ended->ToString());
      }
    }
  }

  void CheckSurvivor(int rank, const WorldWorker& worker) {
    const std::string who = absl::StrCat("rank ", rank);
    if (!worker.member.status().ok())
      Fail(absl::StrCat(who, ": ", worker.member.status().ToString()));
    if (worker.host->order().changes().size() != changes_ && !worker.joined) {
      Fail(absl::StrCat(who, " does not know all changes"));
    }
    if (worker.leaving) return Fail(absl::StrCat(who, " cannot leave"));
    if (!worker.over) {
      Fail(absl::StrCat(who, worker.blocked ? " waits at position " : " waits for samples at ",
                        worker.position));
    }
    // The one with which it listens for the next round.
    if (worker.host->open_tickets().size() != 1) {
      Fail(absl::StrCat(who, " has ", worker.host->open_tickets().size(), " open tickets"));
    }
    for (int each = 0; each < kWorldBriefs; ++each) {
      if (!worker.member.Released(WorldBriefKind(each)) ||
          worker.member.Limit(WorldBriefKind(each)) != INT64_MAX) {
        Fail(absl::StrCat(who, " has not let go of ", WorldBriefKind(each)));
      }
    }
    if (worker.member.Limit("schedule") != INT64_MAX ||
        worker.member.Limit("topology") != INT64_MAX) {
      Fail(absl::StrCat(who, " still waits for an outcome"));
    }
    for (const auto& [id, range] : worker.holder.held()) {
      Fail(absl::StrCat(who, " holds a range of epoch ", range.epoch));
    }
    if (worker.sums.size() != worker.additions) Fail(absl::StrCat(who, " lacks a sum"));
  }

  void CheckWorldAgreement() {
    // By kind and version: what it is and from where, as all survivors say (and, unless everything
    // had to be rebuilt, all that are gone).
    std::map<std::pair<std::string, uint64_t>, std::pair<Digest, int64_t>> agreed;
    for (const auto& [rank, worker] : workers_) {
      if (!worker.in_job && rebuilt_) continue;
      for (const auto& adopt : worker.adopted) {
        const std::pair<Digest, int64_t> what = {adopt.title.digest, adopt.from};
        const auto [found, added] = agreed.insert({{adopt.title.kind, adopt.title.version}, what});
        if (found->second != what)
          Fail(absl::StrCat("rank ", rank, " has another ", Describe(adopt.title)));
      }
    }
    for (const auto& [rank, worker] : workers_) {
      if (!worker.in_job) continue;
      // Of kinds that are let go of, a worker may miss the last values.
      const auto kept = [](const std::string& kind) { return !absl::StartsWith(kind, "brief"); };
      const auto wanted = std::count_if(agreed.begin(), agreed.end(),
                                        [&](const auto& entry) { return kept(entry.first.first); });
      const auto had = std::count_if(worker.adopted.begin(), worker.adopted.end(),
                                     [&](const auto& adopt) { return kept(adopt.title.kind); });
      if (!worker.joined && had != wanted) {
        Fail(absl::StrCat("rank ", rank, " has ", had, " of ", wanted, " values"));
      }
      for (const auto& [position, kind, version] : worker.used) {
        uint64_t right = 0;
        for (const auto& [key, what] : agreed) {
          if (key.first == kind && what.second <= position) right = std::max(right, key.second);
        }
        if (version != right && !worker.joined) {
          Fail(absl::StrCat("rank ", rank, " uses ", kind, " ", version, " at ", position,
                            " instead of ", right));
        }
      }
      for (const auto& [title, from] : worker.settled) {
        const auto found = agreed.find({title.kind, title.version});
        if (found == agreed.end() && !kept(title.kind)) continue;  // let go of by all since
        if (found == agreed.end() ||
            found->second != std::pair<Digest, int64_t>{title.digest, from}) {
          Fail(absl::StrCat(Describe(title), " is settled and not in force"));
        }
      }
    }
  }

  void CheckCounter() {
    std::set<ServiceId> ids;
    std::set<uint64_t> totals;
    uint64_t asked = 0, answered = 0;
    for (const auto& [rank, worker] : workers_) {
      asked += worker.additions;
      for (const Counter::Sum& sum : worker.sums) {
        ++answered;
        if (!ids.insert(sum.id).second) Fail("an id was made twice");
        if (!totals.insert(sum.total).second && !rebuilt_) Fail("a sum was given twice");
      }
    }
    if (!rebuilt_ && !totals.empty() && (*totals.rbegin() > asked || *totals.rbegin() < answered)) {
      Fail(absl::StrCat("the counter is at ", *totals.rbegin(), " after ", asked, " additions"));
    }
  }

  void CheckSamples() {
    std::vector<Intervals> seen(options_.epochs), perhaps(options_.epochs);
    for (const auto& [rank, worker] : workers_) {
      for (const SampleRange& range : worker.counted) {
        Intervals& of_epoch = seen.at(range.epoch);
        const uint64_t before = CountOf(of_epoch);
        AddInterval(of_epoch, range.samples);
        if (CountOf(of_epoch) != before + range.samples.count && !rebuilt_) {
          Fail(absl::StrCat("samples from ", range.samples.first, " of epoch ", range.epoch,
                            " are counted twice"));
        }
        AddInterval(perhaps.at(range.epoch), range.samples);
      }
      // Of one that is gone nobody knows whether what it said last was heard.
      for (const auto& [tag, ranges] : worker.said) {
        for (const SampleRange& range : ranges) AddInterval(perhaps.at(range.epoch), range.samples);
      }
    }
    for (uint64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      if (CountOf(perhaps[epoch]) != options_.samples) {
        Fail(absl::StrCat("epoch ", epoch, " has ", CountOf(perhaps[epoch]), " of ",
                          options_.samples, " samples"));
      }
    }
  }

  // Host and standby are in the same state.
  void CheckReplicas() {
    for (const auto& [rank, worker] : workers_) {
      if (!worker.in_job || !worker.host->hosts()) continue;
      const int standby = worker.host->order().standby();
      if (standby >= 0 &&
          workers_.at(standby).host->machine().State() != worker.host->machine().State()) {
        Fail("the standby is not in the state of the host");
      }
      // What all have let go of is forgotten: a job may use any number of kinds. But a joiner may let go of what
      // the others did before it came, and a service that was rebuilt does not know who did so before: such
      // kinds, without a value in force, are remembered.
      if (rebuilt_ || joined_) continue;
      const auto& agreement =
          static_cast<const Agreement&>(worker.host->machine().service(kWorldAgreement));
      for (const std::string& kind : agreement.kinds()) {
        if (absl::StartsWith(kind, "brief")) {
          Fail(absl::StrCat("the host knows ", kind, ", which all have let go of"));
        }
      }
    }
  }

  const WorldOptions& options_;
  const std::map<int, WorldWorker>& workers_;
  const size_t changes_;
  const bool joined_, rebuilt_;
  std::string fault_;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_WORLD_CHECKS_TESTING_H_
