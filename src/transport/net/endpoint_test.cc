#include "transport/net/endpoint.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/parse.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

// Network namespaces of different hosts may have the same number.
TEST(EndpointTest, MachinesAreToldApartByTheirLastStart) {
  const absl::StatusOr<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id", 64);
  if (!boot.ok()) GTEST_SKIP() << "this kernel does not tell when it started: " << boot.status();
  const absl::string_view id = absl::StripAsciiWhitespace(*boot);
  ASSERT_GE(id.size(), 32u);
  EXPECT_TRUE(absl::StartsWith(ThisMachine(), id)) << ThisMachine();
  EXPECT_EQ(ThisMachine(), ThisMachine());
}

TEST(EndpointTest, ReadsBackWhatItWrote) {
  const Endpoint endpoint = {.wire = "tcp",
                             .machine = "m",
                             .host = "h",
                             .address = "10.0.0.1:4711",
                             .lanes = 3,
                             .terms = std::string(1024, 't')};
  const absl::StatusOr<Endpoint> read = DecodeEndpoint(Encode(endpoint));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, endpoint);
  Endpoint long_winded = endpoint;
  long_winded.terms += 't';
  EXPECT_EQ(DecodeEndpoint(Encode(long_winded)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::transport::net
