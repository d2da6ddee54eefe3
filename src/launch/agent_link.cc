#include "launch/agent_link.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace syncopate::launch {
namespace {

constexpr size_t kTailBytesMax = 2048;
constexpr size_t kTailLinesMax = 5;
// The longest greeting of a login shell that is skipped.
constexpr size_t kBeforeMarkBytesMax = 64 << 10;

bool NothingYet() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

void Tail::Add(absl::string_view bytes) {
  bytes_.append(bytes.data(), bytes.size());
  if (bytes_.size() > 2 * kTailBytesMax) bytes_.erase(0, bytes_.size() - kTailBytesMax);
}

std::string Tail::Lines(absl::string_view before) const {
  const std::vector<absl::string_view> lines = absl::StrSplit(bytes_, '\n', absl::SkipWhitespace());
  std::string text;
  for (size_t i = lines.size() - std::min(lines.size(), kTailLinesMax); i < lines.size(); ++i) {
    absl::StrAppend(&text, before, lines[i].substr(0, kTailBytesMax / kTailLinesMax), "\n");
  }
  return text;
}

AgentLink::AgentLink(HostRanks place, WorkerProcess process, UniqueFd to_agent,
                     Heartbeat first_heartbeat)
    : heartbeat(first_heartbeat),
      place_(std::move(place)),
      process_(std::move(process)),
      to_agent_fd_(std::move(to_agent)),
      to_agent_(to_agent_fd_.get()),
      err_tagger_(absl::StrCat("[", place_.host, "] ")) {}

std::string AgentLink::Name() const {
  return absl::StrCat("host ", place_.host, place_.ranks == 1 ? " (rank " : " (ranks ", Ranks(),
                      ")");
}

std::string AgentLink::Ranks() const {
  if (place_.ranks == 1) return absl::StrCat(place_.first_rank);
  return absl::StrCat(place_.first_rank, "-", place_.first_rank + place_.ranks - 1);
}

void AgentLink::Send(FrameKind kind, int rank, absl::string_view bytes) {
  AppendFrame(kind, rank, bytes, to_agent_.bytes());
}

void AgentLink::SendBeat(int64_t now_ns) {
  if (heartbeat.TakeBeat(now_ns) && to_agent_.Empty()) Send(FrameKind::kBeat, 0, "");
}

bool AgentLink::PassMark() {
  const size_t at = before_mark_.find(kAgentMark);
  if (at == std::string::npos) return false;
  const size_t end = at + absl::string_view(kAgentMark).size();
  tail_.Add(absl::string_view(before_mark_).substr(0, at));
  reader_.Add(absl::string_view(before_mark_).substr(end));
  before_mark_.clear();
  marked_ = true;
  return true;
}

absl::StatusOr<std::vector<Frame>> AgentLink::ReadOut(bool drain) {
  std::vector<Frame> frames;
  char buffer[32 << 10];
  const ssize_t count = read(process_.out.get(), buffer, sizeof(buffer));
  if (count <= 0) {
    if (count == 0 || !NothingYet() || drain) {
      if (!marked_) tail_.Add(before_mark_);
      process_.out.Reset();
    }
    return frames;
  }
  const absl::string_view bytes(buffer, static_cast<size_t>(count));
  if (marked_) {
    reader_.Add(bytes);
  } else {
    before_mark_.append(bytes.data(), bytes.size());
    if (!PassMark()) {
      if (before_mark_.size() <= kBeforeMarkBytesMax) return frames;
      tail_.Add(before_mark_);
      return absl::InvalidArgumentError("the agent writes, but does not run syncopate launch");
    }
  }
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::optional<Frame> frame, reader_.Next());
    if (!frame.has_value()) return frames;
    const int local = frame->rank - place_.first_rank;
    const bool about_a_rank =
        frame->kind >= FrameKind::kOut && frame->kind <= FrameKind::kCannotStart;
    if (about_a_rank && (local < 0 || local >= place_.ranks)) {
      return absl::InvalidArgumentError("the agent speaks of ranks that are not there");
    }
    frames.push_back(*std::move(frame));
  }
}

void AgentLink::ReadErr(bool drain, std::string& lines) {
  char buffer[8 << 10];
  const ssize_t count = read(process_.err.get(), buffer, sizeof(buffer));
  if (count > 0) {
    const absl::string_view bytes(buffer, static_cast<size_t>(count));
    tail_.Add(bytes);
    err_tagger_.Add(bytes, lines);
  } else if (count == 0 || !NothingYet() || drain) {
    err_tagger_.Finish(lines);
    process_.err.Reset();
  }
}

}  // namespace syncopate::launch
