#include "sync/serve_request.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "services/fields.h"

namespace syncopate::sync {
namespace {

constexpr uint8_t kPush = 1;
constexpr uint8_t kPull = 2;

}  // namespace

std::string Encode(const ServeRequest& request) {
  std::string bytes;
  Append(bytes, request.push ? kPush : kPull);
  Append(bytes, request.first);
  Append(bytes, request.last);
  Append(bytes, request.begin);
  Append(bytes, request.end);
  Append(bytes, request.weight);
  Append(bytes, request.share);
  Append(bytes, request.group);
  Append(bytes, request.version);
  return bytes;
}

absl::StatusOr<ServeRequest> DecodeServeRequest(absl::string_view bytes) {
  ByteReader reader(bytes);
  const auto movement = reader.Read<uint8_t>();
  if (movement != kPush && movement != kPull) services::Refuse(reader);
  ServeRequest request;
  request.push = movement == kPush;
  request.first = reader.Read<uint32_t>();
  request.last = reader.Read<uint32_t>();
  request.begin = reader.Read<uint64_t>();
  request.end = reader.Read<uint64_t>();
  request.weight = reader.Read<double>();
  request.share = reader.Read<double>();
  request.group = reader.Read<uint64_t>();
  request.version = reader.Read<uint64_t>();
  if (!reader.AtEnd()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a request to be served of ", bytes.size(), " bytes is none"));
  }
  if (!std::isfinite(request.weight) || !(request.share >= 0 && request.share <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("a request to be served has the weight ",
                                                   request.weight, " and the share ",
                                                   request.share));
  }
  return request;
}

absl::StatusOr<std::vector<TensorLayout::Range>> RangesOf(const ServeRequest& request,
                                                          const TensorLayout& layout, int tensors) {
  if (request.end > 0) return layout.RangesOfBytes(request.begin, request.end);
  if (request.first > request.last || request.last >= static_cast<uint32_t>(tensors)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensors ", request.first, " to ", request.last, " of a model of ", tensors));
  }
  return layout.Ranges(static_cast<int>(request.first), static_cast<int>(request.last));
}

}  // namespace syncopate::sync
