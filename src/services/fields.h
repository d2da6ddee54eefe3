// Fields of the services' messages and states: numbers are little-endian (base/bytes.h), texts carry
// their length, lists their count. Whatever is read meets a limit before memory is taken for it; a
// reader that found something wrong stays not ok().
#ifndef SYNCOPATE_SERVICES_FIELDS_H_
#define SYNCOPATE_SERVICES_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/limits.h"

namespace syncopate::services {

inline void AppendSized(std::string& out, absl::string_view bytes) {
  Append(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes.data(), bytes.size());
}

// Makes the reader not ok.
inline void Refuse(ByteReader& reader) { reader.ReadBytes(SIZE_MAX); }

inline std::string ReadSized(ByteReader& reader, uint64_t bytes_max) {
  const auto bytes = reader.Read<uint32_t>();
  if (bytes > bytes_max) Refuse(reader);
  return std::string(reader.ReadBytes(bytes));
}

// A count of entries that take at least `entry_bytes` each, so that a short text cannot claim many.
inline uint32_t ReadCount(ByteReader& reader, uint64_t count_max, size_t entry_bytes) {
  const auto count = reader.Read<uint32_t>();
  if (count > count_max || count > reader.left() / entry_bytes) Refuse(reader);
  return reader.ok() ? count : 0;
}

inline uint64_t ReadUpTo(ByteReader& reader, uint64_t max) {
  const auto value = reader.Read<uint64_t>();
  if (value > max) Refuse(reader);
  return reader.ok() ? value : 0;
}

inline bool ReadTruth(ByteReader& reader) {
  const auto value = reader.Read<uint8_t>();
  if (value > 1) Refuse(reader);
  return value == 1;
}

inline void AppendRank(std::string& out, int rank) { Append(out, static_cast<uint16_t>(rank)); }

inline int ReadRank(ByteReader& reader) {
  const int rank = reader.Read<uint16_t>();
  if (rank >= limits::kWorkersMax) Refuse(reader);
  return reader.ok() ? rank : 0;
}

inline void AppendDigest(std::string& out, const Digest& digest) {
  Append(out, digest.high);
  Append(out, digest.low);
}

inline Digest ReadDigest(ByteReader& reader) {
  Digest digest;
  digest.high = reader.Read<uint64_t>();
  digest.low = reader.Read<uint64_t>();
  return digest;
}

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_FIELDS_H_
