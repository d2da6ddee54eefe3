#include "train/checkpoint_marks.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

void AppendStatus(std::string& out, const CheckpointStatus& status) {
  for (const int64_t number : {status.passed, status.written, status.noted, status.end}) {
    Append(out, number);
  }
}

CheckpointStatus ReadStatus(ByteReader& reader) {
  CheckpointStatus status;
  for (int64_t* number : {&status.passed, &status.written, &status.noted, &status.end}) {
    *number = reader.Read<int64_t>();
  }
  return status;
}

void AppendView(std::string& out, const CheckpointView& view) {
  Append(out, view.version);
  Append(out, view.open);
  Append(out, static_cast<uint32_t>(view.ranks.size()));
  for (const int rank : view.ranks) Append(out, static_cast<uint16_t>(rank));
  Append(out, view.noted);
  Append(out, view.previous);
  Append(out, static_cast<uint8_t>(view.over));
}

CheckpointView ReadView(ByteReader& reader) {
  CheckpointView view;
  view.version = reader.Read<uint64_t>();
  view.open = reader.Read<int64_t>();
  const auto ranks = reader.Read<uint32_t>();
  if (ranks > limits::kWorkersMax || ranks > reader.left() / 2) reader.ReadBytes(SIZE_MAX);
  for (uint32_t i = 0; i < ranks && reader.ok(); ++i) view.ranks.push_back(reader.Read<uint16_t>());
  view.noted = reader.Read<int64_t>();
  view.previous = reader.Read<int64_t>();
  view.over = reader.Read<uint8_t>() == 1;
  return view;
}

}  // namespace

std::string EncodeStatus(const CheckpointStatus& status, uint64_t seen) {
  std::string out;
  AppendStatus(out, status);
  Append(out, seen);
  return out;
}

std::string EncodeView(const CheckpointView& view) {
  std::string out;
  AppendView(out, view);
  return out;
}

absl::StatusOr<CheckpointView> DecodeView(absl::string_view bytes) {
  ByteReader reader(bytes);
  CheckpointView view = ReadView(reader);
  if (!reader.AtEnd()) return absl::InvalidArgumentError("no view of the checkpoints");
  return view;
}

std::string EncodeReport(const CheckpointStatus& status, const CheckpointView& view) {
  std::string out;
  AppendStatus(out, status);
  AppendView(out, view);
  return out;
}

CheckpointMarks::CheckpointMarks(int workers, int64_t noted, int64_t previous) {
  view_.noted = noted;
  view_.previous = previous;
  for (int rank = 0; rank < workers; ++rank) live_[rank] = {};
}

ServiceStep CheckpointMarks::Step(const ServiceContext& /*context*/, const ServiceEvent& event) {
  ServiceStep step;
  if (const auto* asked = std::get_if<ServiceAsked>(&event)) {
    ByteReader reader(asked->request);
    const CheckpointStatus status = ReadStatus(reader);
    const auto seen = reader.Read<uint64_t>();
    if (!reader.AtEnd()) {
      step.answers.push_back(Refusal(asked->from, asked->ticket,
                                     absl::InvalidArgumentError("no status of checkpoints")));
      return step;
    }
    Tell(asked->from, status);
    // Nobody needs an answer to what it asked before.
    if (const auto older = waiting_.find(asked->from); older != waiting_.end()) {
      step.answers.push_back(
          {.to = asked->from, .ticket = older->second.ticket, .bytes = EncodeView(view_)});
    }
    waiting_[asked->from] = {asked->ticket, seen};
  } else if (const auto* departed = std::get_if<ServiceDeparted>(&event)) {
    live_.erase(departed->rank);
    waiting_.erase(departed->rank);
  } else if (const auto* joined = std::get_if<ServiceJoined>(&event)) {
    live_[joined->rank] = {};
  }
  Update(step);
  Answer(step);
  return step;
}

void CheckpointMarks::Tell(int rank, const CheckpointStatus& status) {
  const auto found = live_.find(rank);
  if (found == live_.end()) return;
  CheckpointStatus& known = found->second;
  known.passed = std::max(known.passed, status.passed);
  known.written = std::max(known.written, status.written);
  known.noted = std::max(known.noted, status.noted);
  known.end = std::max(known.end, status.end);
}

void CheckpointMarks::Update(ServiceStep& step) {
  while (!live_.empty() && UpdateOnce(step)) ++view_.version;
}

bool CheckpointMarks::UpdateOnce(ServiceStep& step) {
  if (view_.open < 0) {
    int64_t mark = -1, end = -1;
    bool all_ended = true;
    for (const auto& [rank, status] : live_) {
      mark = std::max(mark, status.passed);
      end = std::max(end, status.end);
      all_ended = all_ended && status.end >= 0;
    }
    if (all_ended) mark = std::max(mark, end);
    if (mark > view_.noted) {
      view_.open = mark;
      step.reason = absl::StrCat("checkpoint ", mark, " begins");
      return true;
    }
    return all_ended && !std::exchange(view_.over, true);
  }
  std::vector<int> ranks;
  for (const auto& [rank, status] : live_) {
    if (status.noted >= view_.open && !view_.ranks.empty()) {
      step.reason = absl::StrCat("checkpoint ", view_.open, " counts");
      view_.previous = view_.noted;
      view_.noted = view_.open;
      view_.open = -1;
      view_.ranks.clear();
      return true;
    }
    if (status.written < view_.open) return false;
    ranks.push_back(rank);
  }
  if (ranks == view_.ranks) return false;
  view_.ranks = std::move(ranks);
  return true;
}

void CheckpointMarks::Answer(ServiceStep& step) {
  std::erase_if(waiting_, [&](const auto& item) {
    const auto& [rank, waiting] = item;
    if (waiting.seen >= view_.version) return false;
    step.answers.push_back({.to = rank, .ticket = waiting.ticket, .bytes = EncodeView(view_)});
    return true;
  });
}

std::string CheckpointMarks::State() const {
  std::string out;
  AppendView(out, view_);
  Append(out, static_cast<uint32_t>(live_.size()));
  for (const auto& [rank, status] : live_) {
    Append(out, static_cast<uint16_t>(rank));
    AppendStatus(out, status);
  }
  Append(out, static_cast<uint32_t>(waiting_.size()));
  for (const auto& [rank, waiting] : waiting_) {
    Append(out, static_cast<uint16_t>(rank));
    Append(out, waiting.ticket);
    Append(out, waiting.seen);
  }
  return out;
}

absl::Status CheckpointMarks::Load(absl::string_view state) {
  ByteReader reader(state);
  view_ = ReadView(reader);
  live_.clear();
  waiting_.clear();
  const auto live = reader.Read<uint32_t>();
  for (uint32_t i = 0; i < live && reader.ok(); ++i) {
    const int rank = reader.Read<uint16_t>();
    live_[rank] = ReadStatus(reader);
  }
  const auto waiting = reader.Read<uint32_t>();
  for (uint32_t i = 0; i < waiting && reader.ok(); ++i) {
    const int rank = reader.Read<uint16_t>();
    Waiting& each = waiting_[rank];
    each.ticket = reader.Read<uint64_t>();
    each.seen = reader.Read<uint64_t>();
  }
  if (!reader.AtEnd()) return absl::DataLossError("the state of the checkpoints cannot be read");
  return absl::OkStatus();
}

// The newest view that anybody has is what all that was said led to; what was not heard is said again.
absl::StatusOr<std::string> CheckpointMarks::Rebuild(const ServiceContext& /*context*/,
                                                     const std::vector<ServiceReport>& reports) {
  live_.clear();
  for (const ServiceReport& report : reports) {
    ByteReader reader(report.bytes);
    const CheckpointStatus status = ReadStatus(reader);
    CheckpointView view = ReadView(reader);
    if (!reader.AtEnd()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", report.from, " reports no checkpoints"));
    }
    live_[report.from] = status;
    if (view.version > view_.version) view_ = std::move(view);
  }
  ++view_.version;
  ServiceStep step;
  Update(step);
  return "";
}

}  // namespace syncopate::train
