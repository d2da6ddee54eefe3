// For tests: a disk in memory that loses power. What was not forced to it may be gone afterwards, or
// half there, as a file system may leave it.
#ifndef SYNCOPATE_TRAIN_POWERLESS_DISK_TESTING_H_
#define SYNCOPATE_TRAIN_POWERLESS_DISK_TESTING_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "train/options/disk.h"

namespace syncopate::train::testing {

// What becomes of what was not forced to disk.
enum class Aftermath {
  kLost,      // nothing of it happened
  kNames,     // files are there, renamed and gone as it was last; bytes are not
  kRemovals,  // what was removed is gone; nothing else happened
};
inline constexpr Aftermath kAftermaths[] = {Aftermath::kLost, Aftermath::kNames,
                                            Aftermath::kRemovals};

// The power of several disks: it fails before the operation with this number.
class Power {
 public:
  void FailAt(int64_t operation) { left_ = operation; }
  void Restore() { left_ = kForEver; }
  // Whether the next operation still takes place.
  bool Take() { return left_.fetch_sub(1) > 0; }
  bool failed() const { return left_ < 0; }

 private:
  static constexpr int64_t kForEver = int64_t{1} << 40;
  std::atomic<int64_t> left_{kForEver};
};

class PowerlessDisk final : public Disk {
 public:
  explicit PowerlessDisk(Power& power) : power_(power), root_(std::make_shared<Node>()) {
    root_->folder = true;
  }

  absl::Status MakeFolder(const std::string& path) override {
    return Do([&]() -> absl::Status {
      Node* at = root_.get();
      for (const std::string& name : Parts(path)) {
        std::shared_ptr<Node>& next = at->names[name];
        if (next == nullptr) {
          next = std::make_shared<Node>();
          next->folder = true;
        }
        at = next.get();
      }
      return absl::OkStatus();
    });
  }
  absl::Status Write(const std::string& path, absl::string_view bytes) override {
    return Do([&]() -> absl::Status {
      const auto [folder, name] = Place(path);
      if (folder == nullptr) return Missing(path);
      std::shared_ptr<Node>& file = folder->names[name];
      if (file == nullptr) file = std::make_shared<Node>();
      file->bytes = std::string(bytes);
      return absl::OkStatus();
    });
  }
  absl::Status Sync(const std::string& path) override {
    return Do([&]() -> absl::Status {
      Node* const node = Find(path);
      if (node == nullptr) return Missing(path);
      node->durable_bytes = node->bytes;
      node->durable_names = node->names;
      return absl::OkStatus();
    });
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Do([&]() -> absl::Status {
      const auto [source, source_name] = Place(from);
      const auto [target, target_name] = Place(to);
      if (Find(from) == nullptr || target == nullptr) return Missing(from);
      if (to == refused_) return absl::UnavailableError(absl::StrCat("cannot write ", to));
      target->names[target_name] = source->names[source_name];
      source->names.erase(source_name);
      return absl::OkStatus();
    });
  }
  absl::Status Remove(const std::string& path) override {
    return Do([&]() -> absl::Status {
      const auto [folder, name] = Place(path);
      if (folder != nullptr) folder->names.erase(name);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<std::string> Read(const std::string& path, uint64_t bytes_max) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Node* const node = Find(path);
    if (node == nullptr || node->folder || node->bytes.size() > bytes_max) return Missing(path);
    return node->bytes;
  }
  std::vector<std::string> List(const std::string& folder) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> names;
    const Node* const node = Find(folder);
    if (node == nullptr) return names;
    for (const auto& [name, unused] : node->names) names.push_back(name);
    return names;
  }

  void RefuseRenamesTo(const std::string& path) { refused_ = path; }
  // Power is back: only what the file system kept is there.
  void StartAgain(Aftermath aftermath) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Keep(*root_, aftermath);
  }
  // Everything is on disk, as if long ago.
  void Settle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Settle(*root_);
  }

 private:
  struct Node {
    bool folder = false;
    std::string bytes, durable_bytes;
    std::map<std::string, std::shared_ptr<Node>> names, durable_names;
  };

  static std::vector<std::string> Parts(const std::string& path) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < path.size();) {
      const size_t slash = std::min(path.find('/', at), path.size());
      if (slash > at) parts.push_back(path.substr(at, slash - at));
      at = slash + 1;
    }
    return parts;
  }
  static absl::Status Missing(const std::string& path) {
    return absl::NotFoundError(absl::StrCat("no ", path));
  }

  Node* Find(const std::string& path) {
    Node* at = root_.get();
    for (const std::string& name : Parts(path)) {
      const auto found = at->names.find(name);
      if (found == at->names.end()) return nullptr;
      at = found->second.get();
    }
    return at;
  }
  // The folder of a path, null if there is none, and the name in it.
  std::pair<Node*, std::string> Place(const std::string& path) {
    const size_t slash = path.rfind('/');
    return {Find(path.substr(0, slash)), path.substr(slash + 1)};
  }

  absl::Status Do(const std::function<absl::Status()>& act) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!power_.Take()) return absl::UnavailableError("the power has failed");
    return act();
  }

  static void Keep(Node& node, Aftermath aftermath) {
    if (aftermath == Aftermath::kLost) node.names = node.durable_names;
    if (aftermath == Aftermath::kRemovals) {
      std::map<std::string, std::shared_ptr<Node>> kept;
      for (const auto& [name, child] : node.durable_names) {
        if (node.names.count(name) > 0) kept[name] = child;
      }
      node.names = std::move(kept);
    }
    node.bytes = node.durable_bytes;
    node.durable_names = node.names;
    for (const auto& [name, child] : node.names) Keep(*child, aftermath);
  }
  static void Settle(Node& node) {
    node.durable_bytes = node.bytes;
    node.durable_names = node.names;
    for (const auto& [name, child] : node.names) Settle(*child);
  }

  Power& power_;
  std::string refused_;
  std::mutex mutex_;
  const std::shared_ptr<Node> root_;
};

}  // namespace syncopate::train::testing

#endif  // SYNCOPATE_TRAIN_POWERLESS_DISK_TESTING_H_
