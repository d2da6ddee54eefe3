// Sees to it that groups mix all workers. Filters and chance may keep two parts of a job apart for ever: two fast and
// two slow workers can pair off among themselves. So it keeps the union of the groups that have begun since some
// moment, its *epoch*. When all workers are connected, a new epoch begins. When every worker has asked
// `overdue_requests` times in an epoch and they are still not connected, groups are overdue that join the parts.
//
// So any course in which each worker asks four times as often contains a whole epoch, and its groups connect all
// workers: two epochs that it may cut into, and what the joining groups take to begin.
#ifndef SYNCOPATE_SERVICES_GROUP_UNION_H_
#define SYNCOPATE_SERVICES_GROUP_UNION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/bytes.h"

namespace syncopate::services {

// Asking and joining take constant time, nearly; only Parts() walks all workers.
class GroupUnion {
 public:
  GroupUnion(int workers, int64_t overdue_requests);

  void Asked(int worker);
  void Began(absl::Span<const int> members);
  // They begin a new epoch.
  void Gone(int worker);
  void Came(int worker);

  bool Overdue() const { return reached_ == live_ && parts_ > 1; }
  // The workers that live by part.
  std::vector<std::vector<int>> Parts();
  int64_t epoch() const { return epoch_; }
  int64_t overdue_requests() const { return overdue_requests_; }

  void AppendState(std::string& out) const;
  void ReadState(ByteReader& reader);

 private:
  struct Worker {
    bool live = false;
    int64_t epoch = -1;  // of the rest; of an older one it is as new
    int64_t asked = 0;
    int parent = 0;
  };

  void NewEpoch();
  Worker& At(int worker);
  int RootOf(int worker) const;
  int Root(int worker);

  int64_t overdue_requests_;
  std::vector<Worker> workers_;
  int64_t epoch_ = 0;
  int live_ = 0;
  int parts_ = 0;
  int reached_ = 0;  // workers that have asked often enough
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_GROUP_UNION_H_
