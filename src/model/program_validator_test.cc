#include "model/program_validator.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"

namespace syncopate {
namespace {

using samples::Copy;
using samples::DirectAllReduce;
using samples::Empty;
using samples::Receive;
using samples::ReceiveReduce;
using samples::Reduce;
using samples::RingAllReduce;
using samples::Send;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The message of the refusal; empty if the program was accepted.
[[maybe_unused]] std::string Refusal(const Program& program) {
  const absl::StatusOr<ProgramProof> proof = ProveProgram(program);
  return proof.ok() ? "" : std::string(proof.status().message());
}

TEST(ProveProgramTest, AcceptsRings) {
  for (int workers = 1; workers <= 9; ++workers) {
    const absl::StatusOr<ProgramProof> proof = ProveProgram(RingAllReduce(workers, 8));
    ASSERT_TRUE(proof.ok()) << workers << ": " << proof.status();
    EXPECT_TRUE(proof->same_bits_everywhere);
    EXPECT_EQ(proof->rounds, 2 * (workers - 1));
    EXPECT_EQ(proof->sent_elements_max, 8u * 2 * (workers - 1));
    EXPECT_EQ(proof->sent_elements_total, 8u * 2 * (workers - 1) * workers);
  }
}

TEST(ProveProgramTest, AcceptsDirectExchanges) {
  for (int workers = 1; workers <= 9; ++workers) {
    const absl::StatusOr<ProgramProof> proof = ProveProgram(DirectAllReduce(workers));
    ASSERT_TRUE(proof.ok()) << workers << ": " << proof.status();
    EXPECT_TRUE(proof->same_bits_everywhere);
  }
}

}  // namespace
}  // namespace syncopate
