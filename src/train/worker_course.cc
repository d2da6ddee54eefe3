#include "train/worker_course.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "base/status.h"

namespace syncopate::train {
namespace {

// What State() is made of.
struct CourseState {
  bool counts = false;  // whether the job's samples are known
  uint64_t total_samples = 0;
  int64_t batch = 0;
  sync::SampleProgress all;  // that count
  sync::SampleProgress own;  // that this worker has counted since its state before
};

std::string EncodeCourse(const CourseState& state) {
  std::string out;
  Append(out, static_cast<uint8_t>(state.counts));
  Append(out, state.total_samples);
  Append(out, state.batch);
  sync::AppendProgress(out, state.all);
  sync::AppendProgress(out, state.own);
  return out;
}

absl::StatusOr<CourseState> DecodeCourse(absl::string_view bytes) {
  ByteReader reader(bytes);
  CourseState state;
  state.counts = reader.Read<uint8_t>() == 1;
  state.total_samples = reader.Read<uint64_t>();
  state.batch = reader.Read<int64_t>();
  state.all = sync::ReadProgress(reader);
  state.own = sync::ReadProgress(reader);
  if (!reader.AtEnd()) return absl::DataLossError("it does not say how far its worker had come");
  return state;
}

}  // namespace

using strategy::DataMode;

// Workers that draw their own samples draw them in orders that differ; of ranges there is one order.
WorkerCourse::WorkerCourse(const Options& options)
    : options_(options),
      all_batches_(std::accumulate(options.batches.begin(), options.batches.end(), int64_t{0})),
      batches_(options.batches),
      sampler_(options.samples, options.data == DataMode::kIndependent
                                    ? MixSeed(options.seed, static_cast<uint64_t>(options.rank))
                                    : options.seed),
      batch_(options.batches[static_cast<size_t>(options.rank)]) {}

absl::StatusOr<WorkerCourse> WorkerCourse::Make(const Options& options) {
  if (options.data == DataMode::kRanges && options.source == nullptr) {
    return absl::InvalidArgumentError("there is no service of sample ranges");
  }
  WorkerCourse course(options);
  if (!options.states.empty()) SYNCOPATE_RETURN_IF_ERROR(course.GoOn());
  return course;
}

// Total samples are those of the mark, or that all workers knew of: what some knew besides may have been of
// work that is lost.
absl::Status WorkerCourse::GoOn() {
  const uint64_t samples = static_cast<uint64_t>(options_.samples);
  bool counts = true;
  uint64_t total = UINT64_MAX;
  for (size_t rank = 0; rank < options_.states.size(); ++rank) {
    SYNCOPATE_ASSIGN_OR_RETURN(const CourseState state, DecodeCourse(options_.states[rank]));
    counts = counts && state.counts;
    total = std::min(total, state.total_samples);
    if (static_cast<int>(rank) == options_.rank && !in_step()) {
      SYNCOPATE_RETURN_IF_ERROR(SetBatch(static_cast<uint64_t>(state.batch)));
    }
  }
  total = std::max(total, options_.mark_samples);
  if (ranges()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const sync::SampleProgress before,
                               ProgressOf(options_.states, samples));
    total = sync::CountOf(before, samples);
    own_.done = before.done;
  }
  if (!counts) return absl::OkStatus();
  earlier_samples_ = total;
  return Progress(total, false);
}

absl::StatusOr<sync::SampleProgress> WorkerCourse::ProgressOf(
    const std::vector<std::string>& states, uint64_t samples) {
  std::vector<CourseState> decoded;
  for (const std::string& state : states) {
    SYNCOPATE_ASSIGN_OR_RETURN(CourseState one, DecodeCourse(state));
    decoded.push_back(std::move(one));
  }
  if (decoded.empty()) return sync::SampleProgress();
  // What counts only grows, so the one with the least was made first.
  const auto count = [samples](const CourseState& state) {
    return sync::CountOf(state.all, samples);
  };
  sync::SampleProgress progress =
      std::min_element(decoded.begin(), decoded.end(), [&](const auto& a, const auto& b) {
        return count(a) < count(b);
      })->all;
  for (const CourseState& state : decoded) {
    for (size_t i = 0; i < state.own.open.size(); ++i) {
      for (const sync::Interval& interval : state.own.open[i]) {
        sync::AddSamples(progress, state.own.done + i, interval);
      }
    }
  }
  return progress;
}

absl::StatusOr<std::string> WorkerCourse::State() {
  CourseState state = {.counts = progress_.has_value(),
                       .total_samples = progress_ ? progress_->total_samples : 0,
                       .batch = batch_,
                       .all = {},
                       .own = {}};
  if (ranges()) {
    SYNCOPATE_ASSIGN_OR_RETURN(sync::SummaryAnswer summary, options_.source->Say());
    state.all = std::move(summary.progress);
    state.own = std::exchange(own_, {.done = state.all.done, .open = {}});
  }
  return EncodeCourse(state);
}

absl::Status WorkerCourse::SetBatch(uint64_t samples) {
  if (in_step()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batches of ", samples,
        " samples: workers whose samples are dealt out in step cannot change their batches alone"));
  }
  if (samples == 0 || samples > static_cast<uint64_t>(options_.samples)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batches of ", samples, " samples: the data has ", options_.samples));
  }
  batch_ = static_cast<int64_t>(samples);
  return absl::OkStatus();
}

absl::Status WorkerCourse::SetBatches(const std::map<int, uint64_t>& samples) {
  std::vector<int64_t> batches = options_.batches;
  uint64_t all = 0;
  for (const auto& [rank, batch] : samples) {
    if (!in_step() || rank < 0 || rank >= static_cast<int>(batches.size()) || batch == 0 ||
        batch > static_cast<uint64_t>(options_.samples)) {
      return absl::InvalidArgumentError(absl::StrCat("batches of ", batch, " samples for rank ",
                                                     rank, ": the data has ", options_.samples));
    }
    batches[static_cast<size_t>(rank)] = static_cast<int64_t>(batch);
  }
  for (const int64_t batch : batches) all += static_cast<uint64_t>(batch);
  if (all > static_cast<uint64_t>(options_.samples)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batches of ", all, " samples together: the data has ", options_.samples));
  }
  batches_ = std::move(batches);
  batch_ = batches_[static_cast<size_t>(options_.rank)];
  return absl::OkStatus();
}

absl::Status WorkerCourse::SetProgress(const strategy::SetProgress& progress) {
  return Progress(earlier_samples_ + progress.total_samples, progress.stop);
}

// What comes late must not turn back what is known.
absl::Status WorkerCourse::Progress(uint64_t total_samples, bool stop) {
  if (!progress_) progress_.emplace();
  progress_->total_samples = std::max(progress_->total_samples, total_samples);
  progress_->stop = progress_->stop || stop;
  return absl::OkStatus();
}

absl::StatusOr<SampleBatch> WorkerCourse::Next() {
  if (in_step()) return sampler_.Next(batches_, options_.rank);
  if (ranges()) return NextOfRanges();
  return sampler_.Next({batch_}, 0);
}

absl::StatusOr<SampleBatch> WorkerCourse::NextOfRanges() {
  SYNCOPATE_ASSIGN_OR_RETURN(sync::GrantAnswer grant,
                             options_.source->Next(static_cast<uint64_t>(batch_)));
  over_ = over_ || grant.over;
  SampleBatch batch;
  if (grant.ranges.empty()) return batch;
  const uint64_t samples = static_cast<uint64_t>(options_.samples);
  const uint64_t epoch = grant.ranges.front().epoch;
  batch.epoch = static_cast<int64_t>(epoch);
  const absl::Span<const uint32_t> order = sampler_.OrderOf(batch.epoch);
  for (const sync::SampleRange& range : grant.ranges) {
    if (range.epoch != epoch || range.samples.end() > samples) {
      return absl::InternalError(absl::StrCat("samples ", range.samples.first, " to ",
                                              range.samples.end(), " of epoch ", range.epoch,
                                              " were handed out; an epoch has ", samples));
    }
    for (uint64_t place = range.samples.first; place < range.samples.end(); ++place) {
      batch.samples.push_back(order[place]);
    }
    // All before these have been handed out: so far the job has come, as far as this worker knows.
    SYNCOPATE_RETURN_IF_ERROR(Progress(epoch * samples + range.samples.first, false));
  }
  taken_.push_back(std::move(grant.ranges));
  return batch;
}

void WorkerCourse::UseBefore(size_t but) {
  std::vector<ServiceId> ids;
  for (; taken_.size() > but; taken_.pop_front()) {
    for (const sync::SampleRange& range : taken_.front()) {
      ids.push_back(range.id);
      sync::AddSamples(own_, range.epoch, range.samples);
    }
  }
  if (!ids.empty()) options_.source->Use(ids);
}

absl::StatusOr<uint64_t> WorkerCourse::Repeated() {
  if (!ranges()) return 0;
  SYNCOPATE_ASSIGN_OR_RETURN(const sync::SummaryAnswer summary, options_.source->Say());
  return summary.repeated;
}

int64_t WorkerCourse::RateIteration(int64_t iterations) const {
  if (!progress_) return iterations;
  return static_cast<int64_t>(progress_->total_samples / static_cast<uint64_t>(all_batches_));
}

bool WorkerCourse::Ended(int64_t iterations) const {
  if (ranges()) return over_ || (progress_ && progress_->stop);
  if (!progress_) return iterations >= options_.iterations;
  return progress_->stop || RateIteration(iterations) >= options_.iterations;
}

}  // namespace syncopate::train
