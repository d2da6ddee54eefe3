// Memory for messages that are being received, used again and again so that pages stay mapped.
#ifndef SYNCOPATE_TRANSPORT_NET_BUFFER_POOL_H_
#define SYNCOPATE_TRANSPORT_NET_BUFFER_POOL_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/poison.h"

namespace syncopate::transport::net {

struct Buffer {
  std::unique_ptr<std::byte[]> bytes;
  size_t capacity = 0;
};

// What it keeps must not be touched (base/poison.h). Not thread-safe.
class BufferPool {
 public:
  static constexpr size_t kKeptBytesMax = 64 << 20;

  // Buffers are kept for use again up to this many bytes together; the rest is freed.
  explicit BufferPool(size_t kept_bytes_max = kKeptBytesMax) : kept_bytes_max_(kept_bytes_max) {}

  Buffer Take(size_t bytes) {
    const size_t capacity = std::bit_ceil(std::max<size_t>(bytes, kBytesMin));
    std::vector<Buffer>& shelf = ShelfOf(capacity);
    if (shelf.empty()) {
      return {std::make_unique_for_overwrite<std::byte[]>(capacity), capacity};
    }
    Buffer buffer = std::move(shelf.back());
    shelf.pop_back();
    kept_bytes_ -= buffer.capacity;
    Unpoison(buffer.bytes.get(), buffer.capacity);
    return buffer;
  }

  void Give(Buffer buffer) {
    if (buffer.bytes == nullptr || kept_bytes_ + buffer.capacity > kept_bytes_max_) return;
    kept_bytes_ += buffer.capacity;
    Poison(buffer.bytes.get(), buffer.capacity);
    ShelfOf(buffer.capacity).push_back(std::move(buffer));
  }

 private:
  static constexpr size_t kBytesMin = 1024;

  std::vector<Buffer>& ShelfOf(size_t capacity) {
    return shelves_[static_cast<size_t>(std::countr_zero(capacity))];
  }

  const size_t kept_bytes_max_;
  std::vector<Buffer> shelves_[64];
  size_t kept_bytes_ = 0;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_BUFFER_POOL_H_
