#include "sync/agreed_values.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/status.h"
#include "model/schedule.h"
#include "model/topology.h"
#include "worker/job_services.h"

namespace syncopate::sync {
namespace {

using worker::LiveValues;

absl::StatusOr<Digest> DigestOfSchedule(absl::string_view text, int tensors) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Schedule schedule, ParseSchedule(text));
  SYNCOPATE_RETURN_IF_ERROR(Validate(schedule, tensors));
  return DigestOf(schedule);
}

absl::StatusOr<Digest> DigestOfTopology(absl::string_view json) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Topology topology, ParseTopology(json));
  return DigestOf(topology);
}

LiveValues::Kind KindOf(absl::string_view what, int number,
                        std::function<absl::StatusOr<Digest>(absl::string_view)> check,
                        bool long_check, bool contended = false) {
  return {.name = absl::StrCat(what, " of synchronizer ", number),
          .scale = worker::LiveAgreement::Scale::kIteration,
          .further = AgreedValues::kIterationsFurther,
          .check = std::move(check),
          .long_check = long_check,
          .contended = contended};
}

}  // namespace

AgreedValues::AgreedValues(Worker& worker, int number, int tensors)
    : rank_(worker.rank()),
      workers_(worker.size()),
      schedules_(worker::ServicesOf(worker),
                 KindOf(
                     "schedule", number,
                     [tensors](absl::string_view text) { return DigestOfSchedule(text, tensors); },
                     /*long_check=*/true)),
      topologies_(worker::ServicesOf(worker),
                  KindOf("topology", number, DigestOfTopology, /*long_check=*/true)),
      batches_(worker::ServicesOf(worker),
               KindOf(
                   "batches", number,
                   [workers = worker.size()](absl::string_view bytes) -> absl::StatusOr<Digest> {
                     SYNCOPATE_ASSIGN_OR_RETURN(const Batches batches, Decode(bytes, workers));
                     return DigestOf(Encode(batches));
                   },
                   /*long_check=*/false, /*contended=*/true)) {}

AgreedValues::~AgreedValues() {
  schedules_.End();
  topologies_.End();
  batches_.End();
}

// Batch sizes on their way are count:u32, then as many (rank:u32, samples:u64).
std::string AgreedValues::Encode(const Batches& batches) {
  std::string out;
  Append(out, static_cast<uint32_t>(batches.size()));
  for (const auto& [rank, samples] : batches) {
    Append(out, static_cast<uint32_t>(rank));
    Append(out, samples);
  }
  return out;
}

absl::StatusOr<AgreedValues::Batches> AgreedValues::Decode(absl::string_view bytes, int workers) {
  ByteReader reader(bytes);
  const auto count = reader.Read<uint32_t>();
  Batches batches;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto rank = reader.Read<uint32_t>();
    const auto samples = reader.Read<uint64_t>();
    if (!reader.ok() || rank >= static_cast<uint32_t>(workers) || samples == 0 ||
        samples > limits::kSamplesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("batches of ", samples, " samples for rank ", rank));
    }
    batches[static_cast<int>(rank)] = samples;
  }
  if (!reader.AtEnd()) return absl::InvalidArgumentError("no list of batch sizes");
  return batches;
}

void AgreedValues::WantBatch(uint64_t samples) {
  const auto found = newest_.find(rank_);
  if ((found != newest_.end() && found->second == samples) || batches_.Undecided()) return;
  Batches wanted = newest_;
  wanted[rank_] = samples;
  batches_.Propose(batches_.NextVersion(), Encode(wanted));
}

std::optional<AgreedValues::Batches> AgreedValues::TakeBatches(int64_t iteration) {
  std::optional<Batches> taken;
  while (!coming_.empty() && coming_.front().first <= iteration) {
    taken = std::move(coming_.front().second);
    coming_.pop_front();
  }
  return taken;
}

void AgreedValues::Propose(const strategy::Value& value) {
  if (const auto* schedule = std::get_if<std::shared_ptr<const Schedule>>(&value)) {
    schedules_.Propose(schedules_.NextVersion(), ToText(**schedule));
  } else {
    const Topology& topology = *std::get<std::shared_ptr<const Topology>>(value);
    topologies_.Propose(topologies_.NextVersion(), ToJson(topology));
  }
}

absl::StatusOr<std::vector<strategy::NewValue>> AgreedValues::Reach(int64_t iteration,
                                                                    int64_t deadline_ns) {
  std::vector<strategy::NewValue> values;
  SYNCOPATE_RETURN_IF_ERROR(schedules_.Reach(iteration, deadline_ns));
  SYNCOPATE_RETURN_IF_ERROR(topologies_.Reach(iteration, deadline_ns));
  SYNCOPATE_RETURN_IF_ERROR(batches_.Reach(iteration, deadline_ns));
  // All of them have passed the check of their kind.
  for (const LiveValues::Value& value : schedules_.TakeNew()) {
    SYNCOPATE_ASSIGN_OR_RETURN(Schedule schedule, ParseSchedule(value.bytes));
    values.push_back({std::make_shared<const Schedule>(std::move(schedule)), value.from});
  }
  for (const LiveValues::Value& value : topologies_.TakeNew()) {
    SYNCOPATE_ASSIGN_OR_RETURN(Topology topology, ParseTopology(value.bytes));
    values.push_back({std::make_shared<const Topology>(std::move(topology)), value.from});
  }
  for (const LiveValues::Value& value : batches_.TakeNew()) {
    SYNCOPATE_ASSIGN_OR_RETURN(newest_, Decode(value.bytes, workers_));
    coming_.emplace_back(value.from, newest_);
  }
  return values;
}

}  // namespace syncopate::sync
