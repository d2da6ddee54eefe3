// Little-endian numbers in bytes, written and read with bounds.
#ifndef SYNCOPATE_BASE_BYTES_H_
#define SYNCOPATE_BASE_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace syncopate {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void Append(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads from the front. Once something was missing, ok() is false and everything read is 0.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    T value{};
    if (!ok_ || bytes_.size() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  absl::string_view ReadBytes(size_t count) {
    if (!ok_ || bytes_.size() < count) {
      ok_ = false;
      return {};
    }
    const absl::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }
  // Whether all is read and nothing was missing.
  bool AtEnd() const { return ok_ && bytes_.empty(); }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_BYTES_H_
