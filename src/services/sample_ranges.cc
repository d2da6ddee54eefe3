#include "services/sample_ranges.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::services {

absl::Status SampleRanges::Validate(const SampleRangesOptions& options) {
  if (options.samples < 1 || options.samples > limits::kSamplesMax || options.epochs < 1 ||
      options.epochs > limits::kEpochsMax || options.ahead > limits::kRangesHeldMax) {
    return absl::InvalidArgumentError(absl::StrCat("cannot hand out ", options.samples,
                                                   " samples in ", options.epochs, " epochs, ",
                                                   options.ahead, " ahead"));
  }
  return absl::OkStatus();
}

ServiceStep SampleRanges::Step(const ServiceContext& context, const ServiceEvent& event) {
  ServiceStep step;
  if (const auto* departed = std::get_if<Departed>(&event)) {
    Return(departed->rank, step);
    Serve(context, step);
  } else if (const auto* asked = std::get_if<Asked>(&event)) {
    const absl::StatusOr<SampleRequest> request = DecodeSampleRequest(asked->request);
    if (!request.ok()) {
      step.answers.push_back(Refusal(asked->from, asked->ticket, request.status()));
    } else if (const auto* next = std::get_if<NextRequest>(&*request)) {
      OnNext(context, asked->from, asked->ticket, *next, step);
    } else {
      const SummaryAnswer summary = {.done = done_,
                                     .counted = open_.empty() ? 0 : open_.front().counted,
                                     .repeated = repeated_};
      step.answers.push_back({.to = asked->from,
                              .ticket = asked->ticket,
                              .bytes = EncodeSampleAnswer(summary),
                              .kept = false});
    }
  }
  return step;
}

void SampleRanges::OnNext(const ServiceContext& context, int from, uint64_t ticket,
                          const NextRequest& request, ServiceStep& step) {
  for (const ServiceId& id : request.said) {
    const auto found = held_.find(id);
    if (found != held_.end() && found->second.rank == from) continue;
    // Its epoch was complete when the service was rebuilt: the host that is lost had heard of it.
    if (found == held_.end() && id.incarnation < rebuilt_) continue;
    // Nothing of such a request counts, so that the asker knows what became of the rest.
    step.answers.push_back(
        Refusal(from, ticket,
                absl::FailedPreconditionError(absl::StrCat("rank ", from, " does not hold range ",
                                                           id.incarnation, ".", id.number))));
    return;
  }
  for (const ServiceId& id : request.said) {
    const auto found = held_.find(id);
    if (found == held_.end()) continue;  // as above, or said twice in one request
    epoch(found->second.epoch).counted += found->second.samples.count;
    held_.erase(found);
  }
  const uint64_t done = done_;
  CloseEpochs();
  if (done_ > done) {
    step.reason = absl::StrCat("epoch ", done_ - 1, " is complete, ", repeated_,
                               " samples were handed out again");
  }
  if (request.want == 0) {
    step.answers.push_back({.to = from,
                            .ticket = ticket,
                            .bytes = EncodeSampleAnswer(GrantAnswer{
                                .ranges = {}, .done = done_, .over = done_ == options_.epochs})});
  } else {
    takers_.push_back({from, ticket, request.want});
  }
  Serve(context, step);
}

void SampleRanges::CloseEpochs() {
  while (!open_.empty() && open_.front().counted == options_.samples) {
    open_.pop_front();
    ++done_;
  }
}

void SampleRanges::Serve(const ServiceContext& context, ServiceStep& step) {
  while (!takers_.empty() && ServeOne(context, takers_.front(), step)) takers_.pop_front();
}

bool SampleRanges::ServeOne(const ServiceContext& context, const Taker& taker, ServiceStep& step) {
  GrantAnswer grant = {.ranges = {}, .done = done_, .over = done_ == options_.epochs};
  if (!grant.over) {
    if (held_.size() + limits::kRangesGrantedMax > limits::kRangesHeldMax) return false;
    // The oldest epoch that has samples left; what came back goes first.
    size_t index = 0;
    while (index < open_.size() && open_[index].returned.empty() &&
           open_[index].cursor == options_.samples) {
      ++index;
    }
    if (index > options_.ahead || done_ + index >= options_.epochs) return false;
    if (index == open_.size()) open_.emplace_back();
    Epoch& from = open_[index];
    uint64_t want = taker.want;
    while (want > 0 && grant.ranges.size() < limits::kRangesGrantedMax) {
      Interval samples;
      if (!from.returned.empty()) {
        Interval& back = from.returned.front();
        samples = {back.first, std::min(want, back.count)};
        back = {back.first + samples.count, back.count - samples.count};
        if (back.count == 0) from.returned.erase(from.returned.begin());
        repeated_ += samples.count;
      } else if (from.cursor < options_.samples) {
        samples = {from.cursor, std::min(want, options_.samples - from.cursor)};
        from.cursor += samples.count;
      } else {
        break;
      }
      want -= samples.count;
      const ServiceId id = {context.incarnation, ++ranges_};
      held_[id] = {taker.rank, done_ + index, samples};
      grant.ranges.push_back({id, done_ + index, samples});
    }
  }
  step.answers.push_back(
      {.to = taker.rank, .ticket = taker.ticket, .bytes = EncodeSampleAnswer(grant)});
  return true;
}

void SampleRanges::Return(int rank, ServiceStep& step) {
  std::erase_if(takers_, [&](const Taker& taker) { return taker.rank == rank; });
  uint64_t returned = 0;
  std::erase_if(held_, [&](const auto& item) {
    const Holding& holding = item.second;
    if (holding.rank != rank) return false;
    AddInterval(epoch(holding.epoch).returned, holding.samples);
    returned += holding.samples.count;
    return true;
  });
  if (returned > 0) {
    step.reason = absl::StrCat(returned, " samples of rank ", rank, " are handed out again");
  }
}

std::string SampleRanges::State() const {
  std::string out;
  Append(out, done_);
  Append(out, static_cast<uint32_t>(open_.size()));
  for (const Epoch& epoch : open_) {
    Append(out, epoch.cursor);
    Append(out, epoch.counted);
    AppendIntervals(out, epoch.returned);
  }
  Append(out, static_cast<uint32_t>(held_.size()));
  for (const auto& [id, holding] : held_) {
    AppendId(out, id);
    AppendRank(out, holding.rank);
    Append(out, holding.epoch);
    AppendInterval(out, holding.samples);
  }
  Append(out, static_cast<uint32_t>(takers_.size()));
  for (const Taker& taker : takers_) {
    AppendRank(out, taker.rank);
    Append(out, taker.ticket);
    Append(out, taker.want);
  }
  Append(out, ranges_);
  Append(out, repeated_);
  Append(out, rebuilt_);
  return out;
}

absl::Status SampleRanges::Load(absl::string_view state) {
  ByteReader reader(state);
  *this = SampleRanges(options_);
  done_ = ReadUpTo(reader, options_.epochs);
  for (uint32_t left = ReadCount(reader, options_.ahead + 1, 20); left > 0 && reader.ok(); --left) {
    Epoch& epoch = open_.emplace_back();
    epoch.cursor = ReadUpTo(reader, options_.samples);
    epoch.counted = ReadUpTo(reader, options_.samples);
    epoch.returned = ReadIntervals(reader);
  }
  for (uint32_t left = ReadCount(reader, limits::kRangesHeldMax, 42); left > 0; --left) {
    const ServiceId id = ReadId(reader);
    Holding& holding = held_[id];
    holding.rank = ReadRank(reader);
    holding.epoch = reader.Read<uint64_t>();
    holding.samples = ReadInterval(reader);
    if (holding.epoch < done_ || holding.epoch - done_ >= open_.size()) Refuse(reader);
  }
  for (uint32_t left = ReadCount(reader, limits::kWorkersMax * limits::kTicketsOpenMax, 18);
       left > 0; --left) {
    Taker& taker = takers_.emplace_back();
    taker.rank = ReadRank(reader);
    taker.ticket = reader.Read<uint64_t>();
    taker.want = reader.Read<uint64_t>();
  }
  ranges_ = reader.Read<uint64_t>();
  repeated_ = reader.Read<uint64_t>();
  rebuilt_ = reader.Read<uint64_t>();
  if (!reader.AtEnd()) return absl::DataLossError("the state of the sample ranges cannot be read");
  return absl::OkStatus();
}

absl::StatusOr<std::string> SampleRanges::Rebuild(const ServiceContext& context,
                                                  const std::vector<ServiceReport>& reports) {
  *this = SampleRanges(options_);
  rebuilt_ = context.incarnation;
  std::vector<std::pair<int, SampleReport>> known;
  for (const ServiceReport& report : reports) {
    SYNCOPATE_ASSIGN_OR_RETURN(SampleReport decoded, DecodeSampleReport(report.bytes));
    done_ = std::max(done_, std::min(decoded.done, options_.epochs));
    known.emplace_back(report.from, std::move(decoded));
  }
  // What live workers have counted, and what they hold. All below the highest of it was handed out;
  // the rest of that was with workers that are lost.
  std::vector<Intervals> counted, handed;
  const auto reach = [&](uint64_t epoch, const Interval& samples) {
    if (samples.end() > options_.samples || epoch >= options_.epochs ||
        epoch - done_ > options_.ahead) {
      return false;
    }
    const size_t index = epoch - done_;
    if (index >= open_.size()) {
      open_.resize(index + 1);
      counted.resize(index + 1);
      handed.resize(index + 1);
    }
    AddInterval(handed[index], samples);
    open_[index].cursor = std::max(open_[index].cursor, samples.end());
    return true;
  };
  for (const auto& [from, report] : known) {
    bool fits = true;
    for (const SampleReport::Epoch& epoch : report.epochs) {
      if (epoch.epoch < done_) continue;
      for (const Interval& samples : epoch.counted) {
        fits = fits && reach(epoch.epoch, samples);
        if (fits) AddInterval(counted[epoch.epoch - done_], samples);
      }
    }
    for (const SampleRange& range : report.held) {
      if (range.epoch < done_) continue;  // said, and heard by the host that is lost
      fits = fits && reach(range.epoch, range.samples);
      if (fits) held_[range.id] = {from, range.epoch, range.samples};
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", from, " reports samples that cannot have been handed out"));
    }
  }
  std::vector<std::string> repeats;
  for (size_t i = 0; i < open_.size(); ++i) {
    Epoch& epoch = open_[i];
    // Of an epoch before another one everything was handed out.
    if (i + 1 < open_.size()) epoch.cursor = options_.samples;
    epoch.counted = CountOf(counted[i]);
    epoch.returned = Complement(handed[i], epoch.cursor);
    const uint64_t again = CountOf(epoch.returned);
    if (again > 0) {
      repeats.push_back(
          absl::StrCat("up to ", again, " samples of epoch ", done_ + i, " may be counted twice"));
    }
  }
  CloseEpochs();
  return absl::StrJoin(repeats, ", ");
}

}  // namespace syncopate::services
