// Whether a job moves less since its programs are planned by another version of its network.
//
// The version changes nothing but plans, so what the job moved in the seconds before it came into force and what it
// moves after that were moved by the same network, and can be compared. What it moved before the network itself
// changed is no yardstick.
#ifndef SYNCOPATE_ADAPT_NETWORK_TRIAL_H_
#define SYNCOPATE_ADAPT_NETWORK_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace syncopate::adapt {

// Not thread-safe.
class NetworkTrial {
 public:
  enum class Verdict : uint8_t { kNone, kStays, kGoesBack };

  // How long both are looked at, and how long after the switch nothing counts, since plans are made.
  static constexpr int64_t kBeforeNs = 2'500'000'000;
  static constexpr int64_t kSettleNs = 2'000'000'000;
  static constexpr int64_t kAfterNs = 5'000'000'000;
  // Less than this part of what it moved before is less.
  static constexpr double kLess = 0.9;

  // All that the job had moved when its last call began, and the version that its calls are planned by. To be told
  // often.
  Verdict Saw(int64_t now_ns, uint64_t moved, uint64_t version) {
    if (seen_.empty() || now_ns > seen_.back().first) seen_.emplace_back(now_ns, moved);
    if (!version_ || version != *version_) {
      before_ = Rate(now_ns - kBeforeNs);
      // The first version was in force from the beginning.
      switched_ns_ = version_ ? now_ns : kNever;
      version_ = version;
    }
    while (seen_.size() > 2 && seen_.front().first < now_ns - kBeforeNs - kAfterNs) {
      seen_.pop_front();
    }
    if (switched_ns_ == kNever || now_ns < switched_ns_ + kSettleNs + kAfterNs) {
      return Verdict::kNone;
    }
    after_ = Rate(switched_ns_ + kSettleNs);
    switched_ns_ = kNever;
    if (before_ <= 0) return Verdict::kNone;
    return after_ < kLess * before_ ? Verdict::kGoesBack : Verdict::kStays;
  }

  bool under_way() const { return switched_ns_ != kNever; }
  // Bytes/s, of the last trial.
  double before() const { return before_; }
  double after() const { return after_; }

 private:
  static constexpr int64_t kNever = INT64_MAX;

  // Since then.
  double Rate(int64_t since_ns) const {
    for (const auto& [at_ns, moved] : seen_) {
      if (at_ns < since_ns || at_ns >= seen_.back().first) continue;
      return static_cast<double>(seen_.back().second - moved) /
             (static_cast<double>(seen_.back().first - at_ns) * 1e-9);
    }
    return 0;
  }

  std::deque<std::pair<int64_t, uint64_t>> seen_;
  std::optional<uint64_t> version_;
  int64_t switched_ns_ = kNever;
  double before_ = 0, after_ = 0;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_TRIAL_H_
