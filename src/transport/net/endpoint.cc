#include "transport/net/endpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/bytes.h"
#include "base/parse.h"
#include "transport/terms.h"

namespace syncopate::transport::net {
namespace {

constexpr uint8_t kEndpointVersion = 2;
constexpr size_t kTextBytesMax = 4096;
constexpr int kLanesMax = 64;

void AppendText(std::string& out, const std::string& text) {
  Append(out, static_cast<uint16_t>(text.size()));
  out.append(text);
}

std::string ReadText(ByteReader& reader) {
  const uint16_t bytes = reader.Read<uint16_t>();
  return std::string(reader.ReadBytes(bytes));
}

}  // namespace

std::string Encode(const Endpoint& endpoint) {
  std::string out;
  Append(out, kEndpointVersion);
  Append(out, static_cast<uint8_t>(endpoint.lanes));
  AppendText(out, endpoint.wire);
  AppendText(out, endpoint.machine);
  AppendText(out, endpoint.host);
  AppendText(out, endpoint.address);
  AppendText(out, endpoint.terms);
  return out;
}

absl::StatusOr<Endpoint> DecodeEndpoint(absl::string_view bytes) {
  ByteReader reader(bytes);
  const uint8_t version = reader.Read<uint8_t>();
  if (reader.ok() && version != kEndpointVersion) {
    return absl::FailedPreconditionError("it runs another version of Syncopate");
  }
  Endpoint endpoint;
  endpoint.lanes = reader.Read<uint8_t>();
  endpoint.wire = ReadText(reader);
  endpoint.machine = ReadText(reader);
  endpoint.host = ReadText(reader);
  endpoint.address = ReadText(reader);
  endpoint.terms = ReadText(reader);
  if (!reader.AtEnd() || endpoint.lanes < 1 || endpoint.lanes > kLanesMax ||
      endpoint.address.size() > kTextBytesMax || endpoint.machine.size() > kTextBytesMax ||
      endpoint.terms.size() > kTermsBytesMax) {
    return absl::InvalidArgumentError("what it says of itself makes no sense");
  }
  return endpoint;
}

std::string ThisMachine() {
  absl::StatusOr<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id", 64);
  struct stat network = {};
  stat("/proc/self/ns/net", &network);
  return absl::StrCat(boot.ok() ? std::string(absl::StripAsciiWhitespace(*boot)) : ThisHostName(),
                      "/", network.st_ino, "/", getuid());
}

std::string ThisHostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "?";
  return name;
}

}  // namespace syncopate::transport::net
