#include "services/rendezvous.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/parse.h"

namespace syncopate::services {
namespace {

using Phase = RendezvousState::Phase;
using Seat = RendezvousState::Seat;

// The most missing ranks that are named with their hosts; nobody would read more.
constexpr size_t kNamedMax = 8;

std::string RankAt(int rank, const std::string& host) {
  return host.empty() ? absl::StrCat("rank ", rank) : absl::StrCat("rank ", rank, " on ", host);
}

std::string Workers(size_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

// Ends the meeting: every waiting worker is told `status`.
RendezvousStep Fail(const absl::Status& status, RendezvousState& state) {
  state.phase = Phase::kFailed;
  state.reason = std::string(status.message());
  RendezvousStep step = {.answers = {}, .reason = state.reason};
  for (const Seat& seat : state.seats) {
    if (seat.taken) step.answers.push_back({seat.call, status});
  }
  return step;
}

// Why this worker cannot take part; OK if it can.
absl::Status MayJoin(const JoinEvent& join, const RendezvousState& state) {
  const int size = static_cast<int>(state.seats.size());
  const std::string who = RankAt(join.rank, join.host);
  if (join.job != state.job) {
    return absl::PermissionDeniedError(absl::StrCat(
        who, " belongs to job \"", join.job, "\", but this is the rendezvous of job \"", state.job,
        "\"; check SYNCOPATE_RENDEZVOUS and SYNCOPATE_JOB"));
  }
  if (join.size != size) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " says that the job has ", Workers(static_cast<size_t>(join.size)),
                     ", but it has ", size, "; check SYNCOPATE_SIZE"));
  }
  if (join.rank < 0 || join.rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " is not below the size ", size, "; check SYNCOPATE_RANK"));
  }
  if (join.payload.size() > limits::kMeetingPayloadBytesMax ||
      join.host.size() > limits::kHostNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", join.rank, " brings ", join.payload.size(),
                     " bytes and a host name of ", join.host.size(), "; the limits are ",
                     limits::kMeetingPayloadBytesMax, " and ", limits::kHostNameBytesMax));
  }
  const bool again = state.phase == Phase::kComplete && join.round == state.round + 1;
  if (again) return absl::OkStatus();
  if (state.phase == Phase::kComplete || join.round < state.round) {
    return absl::FailedPreconditionError(absl::StrCat(
        who, " comes too late: all ", Workers(state.seats.size()), " of the job have met already"));
  }
  if (join.round > state.round) {
    return absl::FailedPreconditionError(absl::StrCat(who, " wants to meet again, but meeting ",
                                                      state.round, " is not over for all others"));
  }
  if (state.phase == Phase::kFailed) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " comes too late: the meeting has failed: ", state.reason));
  }
  const Seat& seat = state.seats[static_cast<size_t>(join.rank)];
  if (seat.taken) {
    return absl::AlreadyExistsError(
        absl::StrCat(who, " comes, but ", RankAt(join.rank, seat.host),
                     " is here already: two workers have the same rank; check SYNCOPATE_RANK"));
  }
  return absl::OkStatus();
}

RendezvousStep OnJoin(const JoinEvent& join, RendezvousState& state) {
  const absl::Status may = MayJoin(join, state);
  if (!may.ok()) {
    if (state.phase == Phase::kGathering) state.turned_away = std::string(may.message());
    return {.answers = {{join.call, may}}, .reason = std::string(may.message())};
  }
  if (join.round > state.round) {  // the next meeting begins
    for (Seat& seat : state.seats) seat = {.host = seat.host, .payload = {}};
    state.round = join.round;
    state.taken = 0;
    state.phase = Phase::kGathering;
    state.reason.clear();
  }
  Seat& seat = state.seats[static_cast<size_t>(join.rank)];
  seat = {.taken = true,
          .call = join.call,
          .host = join.host,
          .payload = join.payload,
          .deadline_ns = join.deadline_ns};
  ++state.taken;
  RendezvousStep step = {.answers = {},
                         .reason = absl::StrCat(RankAt(join.rank, join.host), " has come")};
  if (state.taken < static_cast<int>(state.seats.size())) return step;
  state.phase = Phase::kComplete;
  state.reason = absl::StrCat("all ", Workers(state.seats.size()), " have come");
  step.reason = state.reason;
  for (const Seat& each : state.seats) step.answers.push_back({each.call, absl::OkStatus()});
  return step;
}

RendezvousStep OnLeave(const LeaveEvent& leave, RendezvousState& state) {
  if (state.phase != Phase::kGathering) return {};
  auto seat = std::find_if(state.seats.begin(), state.seats.end(),
                           [&](const Seat& each) { return each.taken && each.call == leave.call; });
  if (seat == state.seats.end()) return {};
  const int rank = static_cast<int>(seat - state.seats.begin());
  const std::string missing = DescribeMissing(state);
  seat->taken = false;  // nobody hears an answer
  --state.taken;
  return Fail(
      absl::UnavailableError(absl::StrCat(RankAt(rank, seat->host), " left before all had come (",
                                          missing, " had not); its output may say why")),
      state);
}

RendezvousStep OnTime(int64_t now_ns, RendezvousState& state) {
  if (now_ns < NextDeadlineNs(state)) return {};
  std::string text = absl::StrCat(
      "only ", state.taken, " of ", Workers(state.seats.size()),
      " came in time; missing: ", DescribeMissing(state),
      "; do they run, and does their network reach the address in SYNCOPATE_RENDEZVOUS?");
  if (!state.turned_away.empty()) {
    absl::StrAppend(&text, " One was turned away: ", state.turned_away);
  }
  return Fail(absl::DeadlineExceededError(text), state);
}

}  // namespace

absl::StatusOr<RendezvousState> NewRendezvous(std::string job, int size,
                                              std::vector<std::string> hosts) {
  if (size < 1 || size > limits::kWorkersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job of ", size, " workers; use 1 to ", limits::kWorkersMax));
  }
  if (!hosts.empty() && hosts.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(hosts.size(), " hosts for ", size, " ranks; give one for each, or none"));
  }
  RendezvousState state;
  state.job = std::move(job);
  state.seats.resize(static_cast<size_t>(size));
  for (size_t rank = 0; rank < hosts.size(); ++rank) state.seats[rank].host = hosts[rank];
  return state;
}

RendezvousStep Step(int64_t now_ns, const RendezvousEvent& event, RendezvousState& state) {
  if (const auto* join = std::get_if<JoinEvent>(&event)) return OnJoin(*join, state);
  if (const auto* leave = std::get_if<LeaveEvent>(&event)) return OnLeave(*leave, state);
  return OnTime(now_ns, state);
}

int64_t NextDeadlineNs(const RendezvousState& state) {
  int64_t next_ns = INT64_MAX;
  if (state.phase != Phase::kGathering) return next_ns;
  for (const Seat& seat : state.seats) {
    if (seat.taken) next_ns = std::min(next_ns, seat.deadline_ns);
  }
  return next_ns;
}

std::string DescribeMissing(const RendezvousState& state) {
  std::vector<int> ranks;
  std::vector<std::string> named;
  bool hosts_known = true;
  for (size_t rank = 0; rank < state.seats.size(); ++rank) {
    const Seat& seat = state.seats[rank];
    if (seat.taken) continue;
    hosts_known = hosts_known && !seat.host.empty();
    ranks.push_back(static_cast<int>(rank));
    if (ranks.size() <= kNamedMax) named.push_back(RankAt(static_cast<int>(rank), seat.host));
  }
  if (ranks.empty()) return "nobody";
  if (!hosts_known) return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", FormatRanks(ranks));
  std::string text = absl::StrJoin(named, ", ");
  if (ranks.size() > kNamedMax) {
    absl::StrAppend(&text, " and ", ranks.size() - kNamedMax, " more");
  }
  return text;
}

}  // namespace syncopate::services
