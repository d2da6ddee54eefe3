// Jobs without lockstep whose workers are processes that are all killed at random moments, while they start,
// train or write checkpoints, and go on from their checkpoints until they end. The "model" is a ledger in
// which a worker enters each sample that it computes: in the end each sample of each epoch stands in one
// ledger, once. Some jobs lose a worker before; then its entries may be missing, and nothing else.
//
// More by hand:
//
//   SYNCOPATE_TEST_RESUME_KILLS=50 build/release/tests/loose_resume_test
#include <ATen/ATen.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "base/temporary_folder_testing.h"
#include "gtest/gtest.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/exchange.h"
#include "sync/live_messenger.h"
#include "sync/resumed_state.h"
#include "sync/sample_source.h"
#include "sync/synchronizer.h"
#include "tests/no_parameters.h"
#include "tests/pair_groups.h"
#include "tests/worker_processes.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_set.h"
#include "train/loose_checkpoints.h"
#include "train/worker_course.h"

namespace syncopate {
namespace {

using train::Checkpoint;
using train::CheckpointNote;

constexpr int kSize = 4;
constexpr uint64_t kSamples = 601, kEpochs = 4;  // no multiple of a batch
constexpr int64_t kBatch = 32;                   // of all workers
constexpr int64_t kEvery = 6;                    // iterations of that batch between two marks
constexpr int64_t kIterations = (kSamples * kEpochs + kBatch - 1) / kBatch;

struct Board {
  std::atomic<int> ready{0};
  std::atomic<int> resumed{0};     // workers that went on from a checkpoint
  std::atomic<int> iterations{0};  // of all workers, in this part
  std::atomic<int> ended{0};       // workers that have ended by themselves, in this part
  // The number that the service of groups has gone on from in this part, and the largest and the smallest
  // number of a group that a worker's strategy had before, and was given in it.
  std::atomic<uint64_t> service_from{0};
  std::atomic<uint64_t> known_before{0};
  std::atomic<uint64_t> first_given{UINT64_MAX};
  std::atomic<int> with_averages{0};  // workers whose strategies went on from some, in all parts
  // Samples that a worker computed which was to be killed alone.
  std::array<std::array<std::atomic<bool>, kSamples>, kEpochs> doomed{};
};

// Notes which groups the strategy is given.
class GroupNotes : public strategy::Witness {
 public:
  explicit GroupNotes(Board& board) : board_(board) {}
  void Decided(const strategy::Decision& decision) override {
    const auto* answered = std::get_if<strategy::Answered>(&decision.event);
    const auto* given = answered ? std::get_if<GroupGiven>(&answered->message) : nullptr;
    if (given == nullptr || given->members.size() < 2) return;
    uint64_t first = board_.first_given;
    while (given->key.number < first &&
           !board_.first_given.compare_exchange_weak(first, given->key.number)) {
    }
  }

 private:
  Board& board_;
};

class LooseWorker {
 public:
  LooseWorker(Worker& worker, const std::string& folder, bool resume, int victim, Board& board)
      : worker_(worker), folder_(folder), resume_(resume), victim_(victim), board_(board) {}

  absl::Status Run() {
    SYNCOPATE_RETURN_IF_ERROR(Prepare());
    ++board_.ready;
    while (true) {
      SYNCOPATE_ASSIGN_OR_RETURN(const train::SampleBatch picked, Pick());
      if (picked.samples.empty()) break;
      SYNCOPATE_RETURN_IF_ERROR(Iterate(picked));
      SYNCOPATE_RETURN_IF_ERROR(checkpoints_->AtBoundary(course_->RateIteration(iteration_),
                                                         [this] { return Capture(); }));
    }
    SYNCOPATE_RETURN_IF_ERROR(checkpoints_->End(
        kIterations, [this] { return Capture(); }, absl::Seconds(60)));
    messenger_->Stop();
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare() {
    std::vector<std::string> states;
    sync::ResumedState resumed;
    auto groups = std::make_unique<PairGroups>();
    CheckpointNote note = {.iteration = -1, .workers = 0};
    if (resume_) {
      SYNCOPATE_ASSIGN_OR_RETURN(train::LoadedSet loaded,
                                 train::LoadFromSet(folder_, sync::ExchangeOf(worker_)));
      note = loaded.note;
      ledger_ = loaded.checkpoint.tensors.at(0).tensor;
      SYNCOPATE_ASSIGN_OR_RETURN(states, adapt::TextsOfAll(sync::ExchangeOf(worker_), "courses",
                                                           loaded.checkpoint.course));
      std::vector<double> iteration = {static_cast<double>(loaded.checkpoint.iteration)};
      SYNCOPATE_RETURN_IF_ERROR(adapt::Largest(sync::ExchangeOf(worker_), "iterations", iteration));
      iteration_ = static_cast<int64_t>(iteration[0]);
      resumed.strategy = loaded.checkpoint.strategy;
      for (int rank = 0; rank < worker_.size(); ++rank) resumed.ranks.push_back(note.RankOf(rank));
      SYNCOPATE_ASSIGN_OR_RETURN(
          resumed.service,
          sync::NewestServiceState(sync::ExchangeOf(worker_), loaded.checkpoint.service));
      SYNCOPATE_RETURN_IF_ERROR(groups->Resume(resumed.service, resumed.ranks));
      SYNCOPATE_RETURN_IF_ERROR(NoteResumed(resumed.strategy, groups->number()));
      ++board_.resumed;
    }
    SYNCOPATE_RETURN_IF_ERROR(worker_.AddService(std::move(groups)));
    // What it knows already is lost with it, too.
    for (int64_t i = 0; worker_.rank() == victim_ && i < ledger_.numel(); ++i) {
      const auto place = static_cast<uint64_t>(i);
      if (ledger_.data_ptr<int64_t>()[i] > 0) {
        board_.doomed[place / kSamples][place % kSamples] = true;
      }
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const sync::SampleProgress before,
                               train::WorkerCourse::ProgressOf(states, kSamples));
    SYNCOPATE_ASSIGN_OR_RETURN(
        source_, sync::StartSampleSource(
                     worker_, {.samples = kSamples, .epochs = kEpochs, .before = before}));
    std::vector<int64_t> batches(static_cast<size_t>(worker_.size()), kBatch / worker_.size());
    batches[0] += kBatch % worker_.size();
    SYNCOPATE_ASSIGN_OR_RETURN(train::WorkerCourse course,
                               train::WorkerCourse::Make({.data = strategy::DataMode::kRanges,
                                                          .rank = worker_.rank(),
                                                          .batches = batches,
                                                          .samples = kSamples,
                                                          .seed = 3,
                                                          .iterations = kIterations,
                                                          .source = source_.get(),
                                                          .states = states}));
    course_ = std::make_unique<train::WorkerCourse>(std::move(course));
    SYNCOPATE_ASSIGN_OR_RETURN(checkpoints_,
                               train::LooseCheckpoints::Start(
                                   worker_, {.folder = folder_, .every = kEvery, .resumed = note}));
    messenger_ = std::make_unique<sync::LiveMessenger>(worker_);
    SYNCOPATE_ASSIGN_OR_RETURN(
        synchronizer_,
        sync::Synchronizer::Make(worker_, table_, replica_,
                                 std::make_unique<strategy::AskedGroups>(strategy::WorkerInfo{
                                     worker_.rank(), worker_.size(), table_.size()}),
                                 {.first_iteration = iteration_,
                                  .resumed = std::move(resumed),
                                  .moves_gradients = false,
                                  .watches_losses = true,
                                  .messenger = messenger_.get(),
                                  .witness = &notes_}));
    return messenger_->Begin(
        [to = synchronizer_.get()](strategy::Event event) { to->Deliver(std::move(event)); },
        [to = synchronizer_.get()](absl::Status why) { to->End(std::move(why)); });
  }

  // What all strategies had heard of was numbered before the state that the service goes on from.
  absl::Status NoteResumed(const std::string& state, uint64_t number) {
    strategy::AskedGroups strategy({worker_.rank(), worker_.size(), table_.size()});
    SYNCOPATE_RETURN_IF_ERROR(strategy.Resume(state, {}));
    board_.service_from = number;
    board_.with_averages += strategy.averages() > 0;
    uint64_t known = board_.known_before;
    while (known < strategy.last_group() &&
           !board_.known_before.compare_exchange_weak(known, strategy.last_group())) {
    }
    return absl::OkStatus();
  }

  absl::Status Settle() {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
    course_->AllApplied();
    return absl::OkStatus();
  }

  absl::StatusOr<train::SampleBatch> Pick() {
    SYNCOPATE_ASSIGN_OR_RETURN(train::SampleBatch picked, course_->Next());
    while (picked.samples.empty() && !course_->Ended(iteration_)) {
      SYNCOPATE_RETURN_IF_ERROR(Settle());
      SYNCOPATE_ASSIGN_OR_RETURN(picked, course_->Next());
    }
    return picked;
  }

  absl::Status Iterate(const train::SampleBatch& picked) {
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Begin(picked.samples.size(), 0));
    for (int t = 0; t < table_.size(); ++t) SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Need(t));
    course_->UpdatesApplied();
    int64_t* const entries = ledger_.data_ptr<int64_t>();
    for (const int64_t sample : picked.samples) {
      ++entries[static_cast<uint64_t>(picked.epoch) * kSamples + static_cast<uint64_t>(sample)];
      if (worker_.rank() == victim_) {
        board_.doomed[static_cast<size_t>(picked.epoch)][static_cast<size_t>(sample)] = true;
      }
    }
    usleep(static_cast<useconds_t>(worker_.rank() == 1 ? 3000 : 1000));  // one is slow
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->BackwardBegins());
    for (int t = table_.size() - 1; t >= 0; --t) {
      SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Gradient(t));
    }
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->EndBackward());
    ++iteration_;
    ++board_.iterations;
    return absl::OkStatus();
  }

  absl::StatusOr<Checkpoint> Capture() {
    SYNCOPATE_RETURN_IF_ERROR(Settle());
    Checkpoint checkpoint;
    checkpoint.iteration = iteration_;
    SYNCOPATE_ASSIGN_OR_RETURN(checkpoint.course, course_->State());
    SYNCOPATE_ASSIGN_OR_RETURN(checkpoint.strategy, synchronizer_->StrategyState());
    SYNCOPATE_ASSIGN_OR_RETURN(checkpoint.service,
                               sync::ServiceStateOf(worker_, strategy::AskedGroups::kService));
    checkpoint.tensors.push_back({"ledger", ledger_.clone()});
    return checkpoint;
  }

  Worker& worker_;
  const std::string folder_;
  const bool resume_;
  const int victim_;
  Board& board_;
  const TensorTable table_ = SmallTable();
  NoParameters replica_{table_};
  at::Tensor ledger_ = at::zeros({static_cast<int64_t>(kSamples * kEpochs)}, at::kLong);
  int64_t iteration_ = 0;
  GroupNotes notes_{board_};
  std::unique_ptr<sync::SampleSource> source_;
  std::unique_ptr<train::WorkerCourse> course_;
  std::unique_ptr<train::LooseCheckpoints> checkpoints_;
  std::unique_ptr<sync::LiveMessenger> messenger_;
  std::unique_ptr<sync::Synchronizer> synchronizer_;
};

void WaitUntil(const std::function<bool()>& condition) {
  const int64_t until_ns = MonotonicClock().NowNs() + 60'000'000'000;
  while (!condition() && MonotonicClock().NowNs() < until_ns) usleep(200);
}

// How a part of a job is to end.
struct Strike {
  bool all = false;       // all workers are killed
  bool at_start = false;  // while they start
  int victim = -1;        // one worker is killed before
  int iterations = 0;     // how many all workers have done by then, if not at the start
  int64_t later_us = 0;
};

// One part of a job. Returns whether it was killed.
bool Part(const std::string& folder, const Strike& strike, Board& board) {
  const auto note = train::ReadCheckpointNote(folder);
  const int size = note.ok() ? note->workers : kSize;
  board.ready = board.resumed = board.iterations = board.ended = 0;
  board.service_from = board.known_before = 0;
  board.first_given = UINT64_MAX;
  Options options;
  options.timeout = absl::Seconds(60);
  WorkerProcesses workers(
      size,
      [&](Worker& worker) {
        const absl::Status status =
            LooseWorker(worker, folder, note.ok(), strike.victim, board).Run();
        ++board.ended;
        if (status.ok()) return 0;
        std::fprintf(stderr, "rank %d: %s\n", worker.rank(), status.ToString().c_str());
        return 1;
      },
      options);
  const int victim = strike.victim < size && size > 2 ? strike.victim : -1;
  if (!strike.at_start && (strike.all || victim >= 0)) {
    WaitUntil([&] {
      return (board.ready == size && board.iterations >= strike.iterations) || board.ended > 0;
    });
    if (victim >= 0) {
      workers.Signal(victim, SIGKILL);
      const int now = board.iterations;
      WaitUntil([&] { return board.iterations >= now + 40 || board.ended > 0; });
    }
  }
  bool killed = false, meets_all = false;
  if (strike.all) {
    usleep(static_cast<useconds_t>(strike.later_us));
    // One that is killed a moment later may find the others gone, while they start, say.
    meets_all = board.ended == 0;
    for (int rank = 0; rank < size; ++rank) workers.Signal(rank, SIGKILL);
  }
  const std::vector<int> codes = workers.Join(absl::Seconds(120));
  for (int rank = 0; rank < size; ++rank) {
    const int code = codes[static_cast<size_t>(rank)];
    const bool signalled = WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL;
    killed |= signalled && rank != victim;
    EXPECT_TRUE(signalled || meets_all || (WIFEXITED(code) && WEXITSTATUS(code) == 0))
        << "rank " << rank << " of " << size << " ended with " << code;
    EXPECT_TRUE(!signalled || strike.all || rank == victim);
  }
  if (!killed) {
    EXPECT_EQ(board.resumed, note.ok() ? size : 0);
  }
  // No group is numbered twice: the service goes on behind all that the strategies had heard of, whenever
  // each of them was written.
  if (note.ok() && board.resumed == size) {
    EXPECT_GE(board.service_from, board.known_before);
    EXPECT_GT(board.first_given, board.service_from);
  }
  return killed;
}

// The ledgers of the last set.
void CheckLedgers(const std::string& folder, Board& board, bool lost) {
  const auto note = train::ReadCheckpointNote(folder);
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(note->iteration, kIterations);
  at::Tensor all = at::zeros({static_cast<int64_t>(kSamples * kEpochs)}, at::kLong);
  for (int worker = 0; worker < note->workers; ++worker) {
    const auto checkpoint =
        train::LoadCheckpoint(train::RankFile(folder, note->iteration, note->RankOf(worker)));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    all += checkpoint->tensors.at(0).tensor;
  }
  for (uint64_t i = 0; i < kSamples * kEpochs; ++i) {
    const int64_t times = all[static_cast<int64_t>(i)].item<int64_t>();
    const bool may_miss = lost && board.doomed[i / kSamples][i % kSamples];
    ASSERT_TRUE(times == 1 || (times == 0 && may_miss))
        << "sample " << i % kSamples << " of epoch " << i / kSamples << " stands " << times
        << " times in the ledgers";
  }
}

TEST(LooseResumeTest, JobsGoOnAfterAllWorkersWereKilledAtRandomMoments) {
  int kills = 3;
  if (const char* text = std::getenv("SYNCOPATE_TEST_RESUME_KILLS"); text != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(text, &kills));
  }
  int done = 0, jobs = 0, lost_alone = 0, went_on = 0, with_averages = 0;
  Random random(20'26);
  while (done < kills && !HasFailure()) {
    SCOPED_TRACE(absl::StrCat("job ", jobs));
    const TemporaryFolder folder;
    Shared<Board> board;
    bool over = false, lost = false;
    for (int part = 0; !over && !HasFailure(); ++part) {
      ASSERT_LT(part, 100) << "it does not come to its end";
      // Every other job loses a worker in its second part.
      const bool loses = part == 1 && jobs % 2 == 1;
      // No job is killed for ever, and parts are long enough for some sets.
      const Strike strike = {.all = part < 4,
                             .at_start = random.Below(4) == 0 && !loses,
                             .victim = loses ? static_cast<int>(random.Below(kSize)) : -1,
                             .iterations = static_cast<int>(random.Between(20, 80)),
                             .later_us = static_cast<int64_t>(random.Below(40'000))};
      went_on += train::ReadCheckpointNote(folder.path()).ok() ? 1 : 0;
      const bool killed = Part(folder.path(), strike, *board);
      over = !killed;
      lost |= loses;
      lost_alone += loses ? 1 : 0;
      done += killed ? 1 : 0;
    }
    if (!HasFailure()) CheckLedgers(folder.path(), *board, lost);
    with_averages += board->with_averages;
    ++jobs;
  }
  EXPECT_GE(done, kills) << "hardly anything was killed";
  EXPECT_GE(went_on, jobs) << "hardly anything went on from a checkpoint";
  EXPECT_GT(with_averages, 0) << "no strategy went on from a state of its own";
  std::printf("%d jobs: all workers were killed %d times, one alone %d times; %d parts went on\n",
              jobs, done, lost_alone, went_on);
}

}  // namespace
}  // namespace syncopate
