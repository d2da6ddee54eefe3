#include "services/group_generator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "services/fields.h"

namespace syncopate::services {
namespace {

constexpr size_t kMembersNamed = 16;

std::string Describe(const GivenGroup& given) {
  const size_t named = std::min(given.members.size(), kMembersNamed);
  std::string members = absl::StrJoin(given.members.begin(),
                                      given.members.begin() + static_cast<ptrdiff_t>(named), ", ");
  if (named < given.members.size())
    absl::StrAppend(&members, " and ", given.members.size() - named, " more");
  return absl::StrCat("group ", given.key.maker, ".", given.key.number, " of ", members, " (",
                      NameOf(given.phase), ") begins");
}

void AddReason(ServiceStep& step, absl::string_view reason) {
  absl::StrAppend(&step.reason, step.reason.empty() ? "" : "; ", reason);
}

}  // namespace

ServiceStep GroupGenerator::Step(const ServiceContext& context, const ServiceEvent& event) {
  const GroupMaker::Moment moment = {.now_ns = context.now_ns, .maker = context.incarnation};
  ServiceStep step;
  if (const auto* asked = std::get_if<Asked>(&event)) {
    OnAsked(moment, *asked, step);
  } else if (const auto* departed = std::get_if<Departed>(&event)) {
    tickets_.erase(departed->rank);
    std::vector<GivenGroup> given;
    maker_.Gone(moment, departed->rank, given);
    Answers(given, step);
  } else if (const auto* joined = std::get_if<Joined>(&event)) {
    workers_ = std::max(workers_, joined->rank + 1);
    maker_.Came(joined->rank);
  }
  return step;
}

void GroupGenerator::OnAsked(const GroupMaker::Moment& moment, const Asked& asked,
                             ServiceStep& step) {
  const auto refuse = [&](const absl::Status& why) {
    step.answers.push_back(Refusal(asked.from, asked.ticket, why));
  };
  const absl::StatusOr<StrategyMessage> message = DecodeStrategyMessage(asked.request, workers_);
  if (!message.ok()) return refuse(message.status());
  std::vector<GivenGroup> given;
  if (const auto* want = std::get_if<WantGroup>(&*message)) {
    const auto [ticket, waits_for_none] = tickets_.emplace(asked.from, asked.ticket);
    if (!waits_for_none)
      return refuse(absl::FailedPreconditionError("the worker waits for a group already"));
    if (absl::Status wants = maker_.Want(moment, asked.from, *want, given); !wants.ok()) {
      tickets_.erase(ticket);
      return refuse(wants);
    }
  } else if (const auto* done = std::get_if<GroupDone>(&*message)) {
    if (tickets_.contains(asked.from) || maker_.Done(moment, asked.from, done->key, given)) {
      step.answers.push_back(
          {.to = asked.from, .ticket = asked.ticket, .bytes = syncopate::Encode(Noted{})});
    } else {
      // It is told of its next group in place of this answer.
      tickets_[asked.from] = asked.ticket;
    }
  } else {
    return refuse(absl::InvalidArgumentError(
        "the group generator is asked for groups, and told of their ends"));
  }
  Answers(given, step);
}

void GroupGenerator::Answers(const std::vector<GivenGroup>& given, ServiceStep& step) {
  for (const GivenGroup& each : given) {
    const auto found = tickets_.find(each.rank);
    if (found == tickets_.end()) continue;
    const uint64_t ticket = found->second;
    tickets_.erase(found);
    GroupGiven message = {.key = each.key,
                          .members = each.members,
                          .version = each.version,
                          .total_samples = maker_.total_samples(),
                          .stop = each.stop};
    if (message.members.size() > limits::kMessageRanksMax) {
      if (each.phase != GroupPhase::kLast) {
        step.answers.push_back(
            Refusal(each.rank, ticket,
                    absl::ResourceExhaustedError(
                        absl::StrCat("a group of ", message.members.size(), " workers is above ",
                                     limits::kMessageRanksMax, ", which fit a message"))));
        continue;
      }
      message.members.clear();  // all that live
    }
    step.answers.push_back(
        {.to = each.rank, .ticket = ticket, .bytes = syncopate::Encode(message)});
    if (each.first && each.members.size() > 1) AddReason(step, Describe(each));
  }
}

std::string GroupGenerator::State() const {
  std::string out;
  Append(out, workers_);
  Append(out, static_cast<uint32_t>(tickets_.size()));
  for (const auto& [rank, ticket] : tickets_) {
    Append(out, rank);
    Append(out, ticket);
  }
  maker_.AppendState(out);
  return out;
}

absl::Status GroupGenerator::Load(absl::string_view state) {
  ByteReader reader(state);
  workers_ = reader.Read<int>();
  tickets_.clear();
  for (uint32_t left = ReadCount(reader, limits::kWorkersMax, 12); left > 0 && reader.ok();
       --left) {
    const int rank = reader.Read<int>();
    tickets_[rank] = reader.Read<uint64_t>();
  }
  maker_.ReadState(reader);
  if (!reader.AtEnd()) return absl::DataLossError("the group generator's state cannot be read");
  return absl::OkStatus();
}

//   report = requests:u64 samples:u64 started:u8 key list(rank:u16)
std::string GroupGenerator::Report(const GroupMaker::Known& known) {
  std::string out;
  Append(out, known.requests);
  Append(out, known.total_samples);
  Append(out, known.started);
  Append(out, known.key.maker);
  Append(out, known.key.number);
  Append(out, static_cast<uint32_t>(known.members.size()));
  for (const int member : known.members) AppendRank(out, member);
  return out;
}

absl::StatusOr<std::string> GroupGenerator::Rebuild(const ServiceContext& /*context*/,
                                                    const std::vector<ServiceReport>& reports) {
  std::vector<GroupMaker::Known> known;
  for (const ServiceReport& report : reports) {
    ByteReader reader(report.bytes);
    GroupMaker::Known each = {.rank = report.from};
    each.requests = ReadUpTo(reader, INT64_MAX);
    each.total_samples = reader.Read<uint64_t>();
    each.started = ReadTruth(reader);
    each.key.maker = reader.Read<uint64_t>();
    each.key.number = reader.Read<uint64_t>();
    for (uint32_t left = ReadCount(reader, limits::kWorkersMax, 2); left > 0 && reader.ok();
         --left) {
      each.members.push_back(ReadRank(reader));
    }
    if (!reader.AtEnd()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", report.from, " reports what is no group"));
    }
    known.push_back(std::move(each));
  }
  SYNCOPATE_RETURN_IF_ERROR(maker_.Rebuild(known));
  return "groups that nobody had started are dissolved; samples since the last answers are not "
         "counted";
}

absl::Status GroupGenerator::Resume(absl::string_view state, const std::vector<int>& ranks) {
  GroupGenerator before(*this);
  SYNCOPATE_RETURN_IF_ERROR(before.Load(state));
  std::string inner;
  before.maker_.AppendState(inner);
  return maker_.Resume(inner, ranks);
}

}  // namespace syncopate::services
