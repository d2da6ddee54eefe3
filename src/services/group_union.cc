#include "services/group_union.h"

#include <algorithm>
#include <map>
#include <utility>

#include "services/fields.h"

namespace syncopate::services {

GroupUnion::GroupUnion(int workers, int64_t overdue_requests)
    : overdue_requests_(overdue_requests), workers_(static_cast<size_t>(workers)), live_(workers) {
  for (Worker& worker : workers_) worker.live = true;
  NewEpoch();
}

void GroupUnion::NewEpoch() {
  ++epoch_;
  parts_ = live_;
  reached_ = 0;
}

GroupUnion::Worker& GroupUnion::At(int worker) {
  Worker& at = workers_[static_cast<size_t>(worker)];
  if (at.epoch != epoch_) {
    at.epoch = epoch_;
    at.asked = 0;
    at.parent = worker;
  }
  return at;
}

int GroupUnion::RootOf(int worker) const {
  for (;;) {
    const Worker& at = workers_[static_cast<size_t>(worker)];
    if (at.epoch != epoch_ || at.parent == worker) return worker;
    worker = at.parent;
  }
}

int GroupUnion::Root(int worker) {
  const int root = RootOf(worker);
  // The way is cut short for the next one.
  while (worker != root) worker = std::exchange(At(worker).parent, root);
  return root;
}

void GroupUnion::Asked(int worker) { reached_ += ++At(worker).asked == overdue_requests_; }

void GroupUnion::Began(absl::Span<const int> members) {
  for (const int member : members) {
    const int a = Root(members.front()), b = Root(member);
    if (a == b) continue;
    At(std::max(a, b)).parent = std::min(a, b);
    --parts_;
  }
  if (parts_ <= 1 && live_ > 1) NewEpoch();
}

void GroupUnion::Gone(int worker) {
  if (!std::exchange(workers_[static_cast<size_t>(worker)].live, false)) return;
  --live_;
  NewEpoch();
}

void GroupUnion::Came(int worker) {
  if (workers_.size() <= static_cast<size_t>(worker))
    workers_.resize(static_cast<size_t>(worker) + 1);
  if (std::exchange(workers_[static_cast<size_t>(worker)].live, true)) return;
  ++live_;
  NewEpoch();
}

std::vector<std::vector<int>> GroupUnion::Parts() {
  std::map<int, std::vector<int>> parts;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const int worker = static_cast<int>(i);
    if (workers_[i].live) parts[Root(worker)].push_back(worker);
  }
  std::vector<std::vector<int>> out;
  for (auto& [root, members] : parts) out.push_back(std::move(members));
  return out;
}

void GroupUnion::AppendState(std::string& out) const {
  Append(out, epoch_);
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& at = workers_[i];
    Append(out, at.live);
    Append(out, at.epoch == epoch_ ? at.asked : int64_t{0});
    // The way to it may be cut short at any time, which changes nothing.
    Append(out, RootOf(static_cast<int>(i)));
  }
}

void GroupUnion::ReadState(ByteReader& reader) {
  epoch_ = reader.Read<int64_t>();
  live_ = reached_ = 0;
  for (Worker& worker : workers_) {
    worker.epoch = epoch_;
    worker.live = ReadTruth(reader);
    worker.asked = reader.Read<int64_t>();
    worker.parent = reader.Read<int>();
    if (worker.parent < 0 || static_cast<size_t>(worker.parent) >= workers_.size() ||
        worker.asked < 0) {
      Refuse(reader);
    }
    if (!reader.ok()) return;
    live_ += worker.live;
    reached_ += worker.live && worker.asked >= overdue_requests_;
  }
  // Parents are never above their children, so no bytes can make a circle.
  parts_ = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].parent > static_cast<int>(i)) return Refuse(reader);
  }
  parts_ = static_cast<int>(Parts().size());
}

}  // namespace syncopate::services
