#include "services/sample_ranges.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::services {

SampleRanges::SampleRanges(const SampleRangesOptions& options) : options_(options) {
  SetUp(options.before, options.before.open);
}

absl::Status SampleRanges::Validate(const SampleRangesOptions& options) {
  if (options.samples < 1 || options.samples > limits::kSamplesMax || options.epochs < 1 ||
      options.epochs > limits::kEpochsMax || options.ahead > limits::kRangesHeldMax) {
    return absl::InvalidArgumentError(absl::StrCat("cannot hand out ", options.samples,
                                                   " samples in ", options.epochs, " epochs, ",
                                                   options.ahead, " ahead"));
  }
  const SampleProgress& before = options.before;
  bool fits = before.done <= options.epochs && before.open.size() <= options.epochs - before.done;
  for (const Intervals& epoch : before.open) {
    fits = fits && (epoch.empty() || epoch.back().end() <= options.samples);
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("samples count that are not among ",
                                                 options.samples, " samples in ", options.epochs,
                                                 " epochs"));
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
      const SummaryAnswer summary = {.progress = Progress(), .repeated = repeated_};
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
    AddInterval(epoch(found->second.epoch).counted, found->second.samples);
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
  while (!open_.empty() && CountOf(open_.front().counted) == options_.samples) {
    open_.pop_front();
    ++done_;
  }
}

void SampleRanges::Serve(const ServiceContext& context, ServiceStep& step) {
  while (!takers_.empty() && ServeOne(context, takers_.front(), step)) takers_.pop_front();
  if (!takers_.empty()) SendBackHolders(step);
}

void SampleRanges::SendBackHolders(ServiceStep& step) {
  std::set<int> holders;
  for (const auto& [id, holding] : held_) holders.insert(holding.rank);
  std::erase_if(takers_, [&](const Taker& taker) {
    if (!holders.contains(taker.rank)) return false;
    step.answers.push_back(
        {.to = taker.rank,
         .ticket = taker.ticket,
         .bytes = EncodeSampleAnswer(GrantAnswer{.ranges = {}, .done = done_, .over = false})});
    return true;
  });
}

SampleProgress SampleRanges::Progress() const {
  SampleProgress progress = {.done = done_, .open = {}};
  for (const Epoch& epoch : open_) progress.open.push_back(epoch.counted);
  return progress;
}

void SampleRanges::SetUp(const SampleProgress& counted, const std::vector<Intervals>& handed) {
  done_ = counted.done;
  open_.clear();
  for (size_t i = 0; i < handed.size(); ++i) {
    Epoch& epoch = open_.emplace_back();
    if (i < counted.open.size()) epoch.counted = counted.open[i];
    // All below the highest was handed out, and of an epoch before another one everything.
    epoch.cursor = handed[i].empty() ? 0 : handed[i].back().end();
    if (i + 1 < handed.size()) epoch.cursor = options_.samples;
    epoch.returned = Complement(handed[i], epoch.cursor);
  }
  CloseEpochs();
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
    AppendIntervals(out, epoch.counted);
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
  open_.clear();
  const uint64_t open_max = std::max<uint64_t>(options_.ahead + 1, options_.before.open.size());
  for (uint32_t left = ReadCount(reader, open_max, 16); left > 0 && reader.ok(); --left) {
    Epoch& epoch = open_.emplace_back();
    epoch.cursor = ReadUpTo(reader, options_.samples);
    epoch.counted = ReadIntervals(reader);
    if (!epoch.counted.empty() && epoch.counted.back().end() > options_.samples) Refuse(reader);
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
  // What live workers have counted, and what they hold; the rest was with workers that are lost.
  SampleProgress counted = Progress();
  std::vector<std::pair<int, SampleReport>> known;
  for (const ServiceReport& report : reports) {
    SYNCOPATE_ASSIGN_OR_RETURN(SampleReport decoded, DecodeSampleReport(report.bytes));
    const uint64_t done = std::min(decoded.done, options_.epochs);
    while (counted.done < done) {
      if (!counted.open.empty()) counted.open.erase(counted.open.begin());
      ++counted.done;
    }
    known.emplace_back(report.from, std::move(decoded));
  }
  SampleProgress handed = counted;
  // Epochs are open together that were so before the job went on, or that may be ahead of the oldest.
  const uint64_t end = std::max(counted.done + counted.open.size(),
                                std::min(options_.epochs, counted.done + options_.ahead + 1));
  const auto fits = [&](uint64_t epoch, const Interval& samples) {
    return samples.end() <= options_.samples && epoch < end;
  };
  for (const auto& [from, report] : known) {
    bool all_fit = true;
    for (const SampleReport::Epoch& epoch : report.epochs) {
      if (epoch.epoch < counted.done) continue;
      for (const Interval& samples : epoch.counted) {
        all_fit = all_fit && fits(epoch.epoch, samples);
        if (!all_fit) break;
        AddSamples(counted, epoch.epoch, samples);
        AddSamples(handed, epoch.epoch, samples);
      }
    }
    for (const SampleRange& range : report.held) {
      if (range.epoch < counted.done) continue;  // said, and heard by the host that is lost
      all_fit = all_fit && fits(range.epoch, range.samples);
      if (!all_fit) break;
      AddSamples(handed, range.epoch, range.samples);
      held_[range.id] = {from, range.epoch, range.samples};
    }
    if (!all_fit) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", from, " reports samples that cannot have been handed out"));
    }
  }
  SetUp(counted, handed.open);
  std::vector<std::string> repeats;
  for (size_t i = 0; i < open_.size(); ++i) {
    const uint64_t again = CountOf(open_[i].returned);
    if (again == 0) continue;
    repeats.push_back(
        absl::StrCat("up to ", again, " samples of epoch ", done_ + i, " may be counted twice"));
  }
  return absl::StrJoin(repeats, ", ");
}

}  // namespace syncopate::services
