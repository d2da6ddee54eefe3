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

}  // namespace
}  // namespace syncopate::transport::net
