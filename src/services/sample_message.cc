#include "services/sample_message.h"

#include <algorithm>

#include "base/limits.h"

namespace syncopate::services {
namespace {

constexpr size_t kRangeBytes = 16 + 8 + 16;

void AppendRange(std::string& out, const SampleRange& range) {
  AppendId(out, range.id);
  Append(out, range.epoch);
  AppendInterval(out, range.samples);
}

SampleRange ReadRange(ByteReader& reader) {
  SampleRange range;
  range.id = ReadId(reader);
  range.epoch = ReadUpTo(reader, limits::kEpochsMax);
  range.samples = ReadInterval(reader);
  return range;
}

}  // namespace

void AddInterval(Intervals& set, const Interval& interval) {
  if (interval.count == 0) return;
  // All that overlap or touch it become one.
  const auto begin =
      std::lower_bound(set.begin(), set.end(), interval.first,
                       [](const Interval& each, uint64_t first) { return each.end() < first; });
  auto end = begin;
  uint64_t first = interval.first, last = interval.end();
  while (end != set.end() && end->first <= last) {
    first = std::min(first, end->first);
    last = std::max(last, end->end());
    ++end;
  }
  set.insert(set.erase(begin, end), {first, last - first});
}

uint64_t CountOf(const SampleProgress& progress, uint64_t samples) {
  uint64_t count = progress.done * samples;
  for (const Intervals& epoch : progress.open) count += CountOf(epoch);
  return count;
}

void AddSamples(SampleProgress& progress, uint64_t epoch, const Interval& interval) {
  if (epoch < progress.done) return;
  const uint64_t index = epoch - progress.done;
  if (index >= progress.open.size()) progress.open.resize(index + 1);
  AddInterval(progress.open[index], interval);
}

uint64_t CountOf(const Intervals& set) {
  uint64_t count = 0;
  for (const Interval& interval : set) count += interval.count;
  return count;
}

Intervals Complement(const Intervals& set, uint64_t end) {
  Intervals rest;
  uint64_t at = 0;
  for (const Interval& interval : set) {
    if (interval.first >= end) break;
    if (interval.first > at) rest.push_back({at, interval.first - at});
    at = std::max(at, interval.end());
  }
  if (at < end) rest.push_back({at, end - at});
  return rest;
}

void AppendInterval(std::string& out, const Interval& interval) {
  Append(out, interval.first);
  Append(out, interval.count);
}

Interval ReadInterval(ByteReader& reader) {
  Interval interval;
  interval.first = ReadUpTo(reader, limits::kSamplesMax);
  interval.count = ReadUpTo(reader, limits::kSamplesMax);
  if (interval.count == 0) Refuse(reader);
  return interval;
}

void AppendIntervals(std::string& out, const Intervals& set) {
  Append(out, static_cast<uint32_t>(set.size()));
  for (const Interval& interval : set) AppendInterval(out, interval);
}

Intervals ReadIntervals(ByteReader& reader) {
  Intervals set;
  const uint32_t count = ReadCount(reader, limits::kRangesHeldMax, 16);
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const Interval interval = ReadInterval(reader);
    if (i > 0 && interval.first <= set.back().end()) Refuse(reader);
    set.push_back(interval);
  }
  return set;
}

void AppendProgress(std::string& out, const SampleProgress& progress) {
  Append(out, progress.done);
  Append(out, static_cast<uint32_t>(progress.open.size()));
  for (const Intervals& epoch : progress.open) AppendIntervals(out, epoch);
}

SampleProgress ReadProgress(ByteReader& reader) {
  SampleProgress progress;
  progress.done = ReadUpTo(reader, limits::kEpochsMax);
  const uint32_t open = ReadCount(reader, limits::kRangesHeldMax, 4);
  for (uint32_t i = 0; i < open && reader.ok(); ++i) progress.open.push_back(ReadIntervals(reader));
  return progress;
}

std::string EncodeSampleRequest(const SampleRequest& request) {
  std::string out;
  Append(out, static_cast<uint8_t>(request.index() + 1));
  if (const auto* next = std::get_if<NextRequest>(&request)) {
    Append(out, next->want);
    Append(out, static_cast<uint32_t>(next->said.size()));
    for (const ServiceId& id : next->said) AppendId(out, id);
  }
  return out;
}

absl::StatusOr<SampleRequest> DecodeSampleRequest(absl::string_view bytes) {
  ByteReader reader(bytes);
  SampleRequest request;
  const auto type = reader.Read<uint8_t>();
  if (type == 1) {
    auto& next = request.emplace<NextRequest>();
    next.want = ReadUpTo(reader, limits::kSamplesMax);
    const uint32_t count = ReadCount(reader, limits::kRangesSaidMax, 16);
    for (uint32_t i = 0; i < count; ++i) next.said.push_back(ReadId(reader));
  } else if (type == 2) {
    request.emplace<SummaryRequest>();
  } else {
    Refuse(reader);
  }
  if (!reader.AtEnd()) return absl::InvalidArgumentError("a request for samples cannot be read");
  return request;
}

std::string EncodeSampleAnswer(const SampleAnswer& answer) {
  std::string out;
  Append(out, static_cast<uint8_t>(answer.index() + 1));
  if (const auto* grant = std::get_if<GrantAnswer>(&answer)) {
    Append(out, static_cast<uint32_t>(grant->ranges.size()));
    for (const SampleRange& range : grant->ranges) AppendRange(out, range);
    Append(out, grant->done);
    Append(out, static_cast<uint8_t>(grant->over));
  } else if (const auto* summary = std::get_if<SummaryAnswer>(&answer)) {
    AppendProgress(out, summary->progress);
    Append(out, summary->repeated);
  }
  return out;
}

absl::StatusOr<SampleAnswer> DecodeSampleAnswer(absl::string_view bytes) {
  ByteReader reader(bytes);
  SampleAnswer answer;
  const auto type = reader.Read<uint8_t>();
  if (type == 1) {
    auto& grant = answer.emplace<GrantAnswer>();
    const uint32_t count = ReadCount(reader, limits::kRangesGrantedMax, kRangeBytes);
    for (uint32_t i = 0; i < count; ++i) grant.ranges.push_back(ReadRange(reader));
    grant.done = ReadUpTo(reader, limits::kEpochsMax);
    grant.over = ReadTruth(reader);
  } else if (type == 2) {
    auto& summary = answer.emplace<SummaryAnswer>();
    summary.progress = ReadProgress(reader);
    summary.repeated = reader.Read<uint64_t>();
  } else {
    Refuse(reader);
  }
  if (!reader.AtEnd()) return absl::InvalidArgumentError("an answer about samples cannot be read");
  return answer;
}

std::string EncodeSampleReport(const SampleReport& report) {
  std::string out;
  Append(out, report.done);
  Append(out, static_cast<uint32_t>(report.epochs.size()));
  for (const SampleReport::Epoch& epoch : report.epochs) {
    Append(out, epoch.epoch);
    AppendIntervals(out, epoch.counted);
  }
  Append(out, static_cast<uint32_t>(report.held.size()));
  for (const SampleRange& range : report.held) AppendRange(out, range);
  return out;
}

absl::StatusOr<SampleReport> DecodeSampleReport(absl::string_view bytes) {
  ByteReader reader(bytes);
  SampleReport report;
  report.done = ReadUpTo(reader, limits::kEpochsMax);
  const uint32_t epochs = ReadCount(reader, limits::kRangesHeldMax, 12);
  for (uint32_t i = 0; i < epochs && reader.ok(); ++i) {
    SampleReport::Epoch& epoch = report.epochs.emplace_back();
    epoch.epoch = ReadUpTo(reader, limits::kEpochsMax);
    epoch.counted = ReadIntervals(reader);
  }
  const uint32_t held = ReadCount(reader, limits::kRangesHeldMax, kRangeBytes);
  for (uint32_t i = 0; i < held && reader.ok(); ++i) report.held.push_back(ReadRange(reader));
  if (!reader.AtEnd()) return absl::InvalidArgumentError("a report on samples cannot be read");
  return report;
}

}  // namespace syncopate::services
