// The state of the agreement service as bytes, and the service from what workers report.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "services/agreement.h"

namespace syncopate::services {
namespace {

using Askers = std::vector<std::pair<int, uint64_t>>;

void AppendAskers(std::string& out, const Askers& askers) {
  Append(out, static_cast<uint32_t>(askers.size()));
  for (const auto& [rank, ticket] : askers) {
    AppendRank(out, rank);
    Append(out, ticket);
  }
}

Askers ReadAskers(ByteReader& reader) {
  Askers askers;
  const uint32_t count =
      ReadCount(reader, limits::kWorkersMax * limits::kTicketsOpenMax, 2 + sizeof(uint64_t));
  for (uint32_t i = 0; i < count; ++i) {
    const int rank = ReadRank(reader);
    askers.emplace_back(rank, reader.Read<uint64_t>());
  }
  return askers;
}

}  // namespace

std::string Agreement::State() const {
  std::string out;
  const auto append_proposal = [&](const Proposal& proposal) {
    AppendTitle(out, proposal.title);
    AppendSized(out, proposal.value);
    AppendAskers(out, proposal.askers);
  };
  Append(out, static_cast<uint32_t>(members_.size()));
  for (const int rank : members_) AppendRank(out, rank);
  Append(out, static_cast<uint32_t>(in_force_.size()));
  for (const auto& [kind, value] : in_force_) {
    AppendTitle(out, value.title);
    AppendSized(out, value.value);
    Append(out, value.from);
  }
  Append(out, static_cast<uint32_t>(released_.size()));
  for (const auto& [kind, ranks] : released_) {
    AppendSized(out, kind);
    Append(out, static_cast<uint32_t>(ranks.size()));
    for (const int rank : ranks) AppendRank(out, rank);
  }
  Append(out, static_cast<uint8_t>(round_.has_value()));
  if (round_.has_value()) {
    AppendId(out, round_->id);
    append_proposal(round_->proposal);
    Append(out, static_cast<uint32_t>(round_->positions.size()));
    for (const auto& [rank, position] : round_->positions) {
      AppendRank(out, rank);
      Append(out, position);
    }
  }
  Append(out, static_cast<uint32_t>(waiting_.size()));
  for (const Proposal& proposal : waiting_) append_proposal(proposal);
  AppendAskers(out, {listeners_.begin(), listeners_.end()});
  AppendSized(out, last_.has_value() ? EncodeAnswer(*last_) : "");
  AppendId(out, before_last_);
  AppendId(out, first_);
  Append(out, rounds_);
  return out;
}

absl::Status Agreement::Load(absl::string_view state) {
  ByteReader reader(state);
  const auto read_proposal = [&] {
    Proposal proposal;
    proposal.title = ReadTitle(reader);
    proposal.value = ReadSized(reader, limits::kAgreementValueBytesMax);
    proposal.askers = ReadAskers(reader);
    return proposal;
  };
  *this = Agreement({});
  for (uint32_t left = ReadCount(reader, limits::kWorkersMax, 2); left > 0; --left) {
    members_.insert(ReadRank(reader));
  }
  for (uint32_t left = ReadCount(reader, limits::kAgreementKindsMax, kTitleBytesMin + 12);
       left > 0 && reader.ok(); --left) {
    InForce value;
    value.title = ReadTitle(reader);
    value.value = ReadSized(reader, limits::kAgreementValueBytesMax);
    value.from = reader.Read<int64_t>();
    const std::string kind = value.title.kind;
    in_force_[kind] = std::move(value);
  }
  for (uint32_t left = ReadCount(reader, kReleasedMax, 8); left > 0 && reader.ok(); --left) {
    std::set<int>& ranks = released_[ReadSized(reader, limits::kAgreementKindBytesMax)];
    for (uint32_t i = ReadCount(reader, limits::kWorkersMax, 2); i > 0; --i) {
      ranks.insert(ReadRank(reader));
    }
  }
  if (ReadTruth(reader)) {
    round_.emplace();
    round_->id = ReadId(reader);
    round_->proposal = read_proposal();
    for (uint32_t left = ReadCount(reader, limits::kWorkersMax, 10); left > 0; --left) {
      const int rank = ReadRank(reader);
      round_->positions[rank] = reader.Read<int64_t>();
    }
  }
  for (uint32_t left = ReadCount(reader, limits::kAgreementQueueMax, kTitleBytesMin + 8);
       left > 0 && reader.ok(); --left) {
    waiting_.push_back(read_proposal());
  }
  for (const auto& [rank, ticket] : ReadAskers(reader)) listeners_[rank] = ticket;
  const std::string last = ReadSized(reader, limits::kMailBytesMax);
  if (!last.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const AgreementAnswer answer, DecodeAnswer(last));
    if (!std::holds_alternative<Outcome>(answer)) Refuse(reader);
    if (reader.ok()) last_ = std::get<Outcome>(answer);
  }
  before_last_ = ReadId(reader);
  first_ = ReadId(reader);
  rounds_ = reader.Read<uint64_t>();
  if (!reader.AtEnd()) return absl::DataLossError("the agreement's state cannot be read");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Agreement::Rebuild(const ServiceContext& context,
                                               const std::vector<ServiceReport>& reports) {
  *this = Agreement({});
  // By kind and version.
  std::map<std::pair<std::string, uint64_t>, InForce> known;
  std::vector<AgreementReport::Entry> brought;  // with their bytes
  for (const ServiceReport& report : reports) {
    members_.insert(report.from);
    SYNCOPATE_ASSIGN_OR_RETURN(AgreementReport told, DecodeReport(report.bytes));
    for (AgreementReport::Entry& entry : told.entries) {
      const bool whole = entry.value.size() == entry.title.bytes;
      if (entry.in_force) {
        const auto [found, fresh] =
            known.insert({{entry.title.kind, entry.title.version}, {entry.title, "", entry.from}});
        const InForce& value = found->second;
        if (value.title != entry.title || value.from != entry.from) {
          return absl::InternalError(absl::StrCat(
              "rank ", report.from, " uses ", Describe(entry.title), " from ", entry.from,
              " on, others ", Describe(value.title), " from ", value.from, " on"));
        }
      }
      if (whole) brought.push_back(std::move(entry));
    }
  }
  // The newest of each kind. One of which no live worker has the bytes is used by none: those that used it are
  // lost or have let go of its kind, and those that fetch it go on without it.
  for (auto& [name, value] : known) {
    const auto with_bytes =
        std::find_if(brought.begin(), brought.end(),
                     [&value = value](const auto& entry) { return entry.title == value.title; });
    if (with_bytes == brought.end()) continue;
    value.value = with_bytes->value;
    in_force_[name.first] = std::move(value);
  }
  // A round that was under way is over without an outcome that anybody has heard. Who had answered is
  // told what is in force, and proposers that live ask again.
  first_ = {context.incarnation, ++rounds_};
  return "";
}

}  // namespace syncopate::services
