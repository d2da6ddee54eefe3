#include "services/sample_holder.h"

#include <algorithm>

#include "base/limits.h"

namespace syncopate::services {

void SampleHolder::Use(const std::vector<ServiceId>& ranges) {
  for (const ServiceId& id : ranges) {
    if (held_.contains(id)) used_.push_back(id);
  }
}

SampleHolder::Ask SampleHolder::Take(uint64_t want) {
  const size_t said = std::min<size_t>(used_.size(), limits::kRangesSaidMax);
  NextRequest request = {.want = want,
                         .said = {used_.begin(), used_.begin() + static_cast<ptrdiff_t>(said)}};
  used_.erase(used_.begin(), used_.begin() + static_cast<ptrdiff_t>(said));
  const uint64_t tag = next_tag_++;
  Ask ask = {.tag = tag, .bytes = EncodeSampleRequest(request)};
  said_[tag] = std::move(request.said);
  return ask;
}

absl::StatusOr<GrantAnswer> SampleHolder::Answered(uint64_t tag, absl::StatusCode code,
                                                   absl::string_view bytes) {
  const auto said = said_.extract(tag);
  if (code != absl::StatusCode::kOk) return absl::Status(code, bytes);
  absl::StatusOr<SampleAnswer> answer = DecodeSampleAnswer(bytes);
  if (!answer.ok()) return answer.status();
  auto* grant = std::get_if<GrantAnswer>(&*answer);
  if (grant == nullptr || said.empty()) {
    return absl::InvalidArgumentError("an answer about samples to no request for them");
  }
  for (const ServiceId& id : said.mapped()) {
    const auto found = held_.find(id);
    if (found == held_.end()) continue;
    AddInterval(counted_[found->second.epoch], found->second.samples);
    held_.erase(found);
  }
  done_ = std::max(done_, grant->done);
  counted_.erase(counted_.begin(), counted_.lower_bound(done_));
  for (const SampleRange& range : grant->ranges) held_[range.id] = range;
  return std::move(*grant);
}

std::string SampleHolder::Report() const {
  SampleReport report = {.done = done_, .epochs = {}, .held = {}};
  for (const auto& [epoch, counted] : counted_) report.epochs.push_back({epoch, counted});
  for (const auto& [id, range] : held_) report.held.push_back(range);
  return EncodeSampleReport(report);
}

}  // namespace syncopate::services
