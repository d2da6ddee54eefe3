#include "launch/agent_frames.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::launch {
namespace {

constexpr uint32_t kWordsMax = 1 << 16;

void AppendNumber(uint32_t number, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

uint32_t NumberAt(absl::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) {
    number |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return number;
}

void AppendText(absl::string_view text, std::string& out) {
  AppendNumber(static_cast<uint32_t>(text.size()), out);
  absl::StrAppend(&out, text);
}

void AppendList(const std::vector<std::string>& list, std::string& out) {
  AppendNumber(static_cast<uint32_t>(list.size()), out);
  for (const std::string& text : list) AppendText(text, out);
}

// Reads fields from the front; after the first that is not there all are empty and ok() is false.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

  uint32_t Number() {
    if (!ok_ || bytes_.size() < 4) {
      ok_ = false;
      return 0;
    }
    const uint32_t number = NumberAt(bytes_, 0);
    bytes_.remove_prefix(4);
    return number;
  }
  std::string Text() {
    const uint32_t size = Number();
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return "";
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  std::vector<std::string> List() {
    std::vector<std::string> list;
    const uint32_t count = Number();
    if (count > kWordsMax) ok_ = false;
    for (uint32_t i = 0; ok_ && i < count; ++i) list.push_back(Text());
    return list;
  }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

bool HasZero(const std::vector<std::string>& list) {
  for (const std::string& text : list) {
    if (absl::StrContains(text, '\0')) return true;
  }
  return false;
}

}  // namespace

void AppendFrame(FrameKind kind, int rank, absl::string_view bytes, std::string& out) {
  AppendNumber(static_cast<uint32_t>(kind), out);
  AppendNumber(static_cast<uint32_t>(rank), out);
  AppendText(bytes, out);
}

absl::StatusOr<std::optional<Frame>> FrameReader::Next() {
  const absl::string_view rest = absl::string_view(bytes_).substr(taken_);
  if (rest.size() >= kFrameHeaderBytes) {
    const uint32_t kind = NumberAt(rest, 0), rank = NumberAt(rest, 4), size = NumberAt(rest, 8);
    if (kind < 1 || kind > kFrameKindMax || rank >= static_cast<uint32_t>(limits::kWorkersMax) ||
        size > kFrameBytesMax) {
      return absl::InvalidArgumentError(
          "what came from the agent is no message of syncopate launch; is the same version "
          "installed on all hosts?");
    }
    if (rest.size() - kFrameHeaderBytes >= size) {
      taken_ += kFrameHeaderBytes + size;
      return Frame{static_cast<FrameKind>(kind), static_cast<int>(rank),
                   std::string(rest.substr(kFrameHeaderBytes, size))};
    }
  }
  bytes_.erase(0, taken_);
  taken_ = 0;
  return std::optional<Frame>();
}

std::string EncodeStart(const RemoteStart& start) {
  std::string bytes;
  AppendText(start.job, bytes);
  AppendNumber(static_cast<uint32_t>(start.size), bytes);
  AppendNumber(static_cast<uint32_t>(start.first_rank), bytes);
  AppendNumber(static_cast<uint32_t>(start.ranks), bytes);
  AppendText(absl::StrCat(start.grace_ns), bytes);
  AppendText(absl::StrCat(start.host_timeout_ns), bytes);
  AppendText(start.folder, bytes);
  AppendList(start.command, bytes);
  AppendList(start.environment, bytes);
  return bytes;
}

absl::StatusOr<RemoteStart> DecodeStart(absl::string_view bytes) {
  FieldReader read(bytes);
  RemoteStart start;
  start.job = read.Text();
  const uint32_t size = read.Number(), first_rank = read.Number(), ranks = read.Number();
  const absl::StatusOr<int64_t> grace_ns = ParseInt(read.Text(), 0, INT64_MAX);
  const absl::StatusOr<int64_t> host_timeout_ns =
      ParseInt(read.Text(), kHostTimeoutNsMin, INT64_MAX / 4);
  start.folder = read.Text();
  start.command = read.List();
  start.environment = read.List();
  const bool numbers_fit = size <= static_cast<uint32_t>(limits::kWorkersMax) && ranks >= 1 &&
                           ranks <= static_cast<uint32_t>(limits::kLocalWorkersMax) &&
                           first_rank < size && ranks <= size - first_rank;
  if (!read.AtEnd() || !numbers_fit || !grace_ns.ok() || !host_timeout_ns.ok() ||
      start.command.empty() || start.command[0].empty() || HasZero(start.command) ||
      HasZero(start.environment) || HasZero({start.job, start.folder})) {
    return absl::InvalidArgumentError(
        "what came from the launcher is no start of ranks; is the same version installed on all "
        "hosts?");
  }
  start.size = static_cast<int>(size);
  start.first_rank = static_cast<int>(first_rank);
  start.ranks = static_cast<int>(ranks);
  start.grace_ns = *grace_ns;
  start.host_timeout_ns = *host_timeout_ns;
  return start;
}

}  // namespace syncopate::launch
