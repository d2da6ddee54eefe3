// Several workers of one process that exchange records, for tests.
#ifndef SYNCOPATE_ADAPT_RECORD_EXCHANGE_TESTING_H_
#define SYNCOPATE_ADAPT_RECORD_EXCHANGE_TESTING_H_

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "adapt/record_exchange.h"

namespace syncopate::adapt {

// What the workers have put together, by the number of the exchange.
struct Board {
  int workers = 0;
  std::vector<std::map<int, RecordExchange::Record>> records = {};
  std::optional<size_t> broken = std::nullopt;  // this exchange and later ones fail
};

class BoardExchange final : public RecordExchange {
 public:
  BoardExchange(Board& board, int rank) : board_(board), rank_(rank) {}

  absl::StatusOr<std::unique_ptr<Pending>> Start(Record mine) override {
    if (board_.records.size() <= next_) board_.records.resize(next_ + 1);
    board_.records[next_][rank_] = std::move(mine);
    return std::make_unique<BoardPending>(board_, next_++);
  }

 private:
  class BoardPending final : public Pending {
   public:
    BoardPending(Board& board, size_t index) : board_(board), index_(index) {}
    bool Done() override {
      return board_.records[index_].size() == static_cast<size_t>(board_.workers) ||
             (board_.broken && index_ >= *board_.broken);
    }
    absl::Status Wait() override {
      if (board_.broken && index_ >= *board_.broken) return absl::UnavailableError("broken");
      // A test in one thread must not come here before the others have.
      if (!Done()) return absl::DeadlineExceededError("would wait for ever");
      for (const auto& [rank, record] : board_.records[index_]) {
        all_.insert(all_.end(), record.begin(), record.end());
      }
      return absl::OkStatus();
    }
    const Record& All() override { return all_; }

   private:
    Board& board_;
    const size_t index_;
    Record all_;
  };

  Board& board_;
  const int rank_;
  size_t next_ = 0;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_RECORD_EXCHANGE_TESTING_H_
