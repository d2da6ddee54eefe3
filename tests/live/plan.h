// What happens in the jobs of a live campaign (tests/campaign --live), drawn from a seed: who works
// with whom on what, and which faults come when. The same seed and number are the same plan.
#ifndef SYNCOPATE_TESTS_LIVE_PLAN_H_
#define SYNCOPATE_TESTS_LIVE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::live {

inline constexpr int kHosts = 8;     // of a lab
inline constexpr int kFewHosts = 4;  // of them, for jobs whose workers compute a lot
inline constexpr int kSlotsMax = 2;
inline constexpr int kWorkersMax = kHosts * kSlotsMax;
inline constexpr int kCasesMax = 12;  // of a job

// What the workers do over and over. A training job ends with its first fault.
enum class Operation : uint8_t { kAllReduce, kForest, kBroadcast, kTraining };
inline constexpr int kOperations = 4;

// What is done to a worker, or to a host.
enum class Fault : uint8_t { kKill, kStop, kCut, kCutIn, kCutOut };

// What a case is counted as.
enum class Kind : uint8_t { kKill, kStop, kCut, kOneWayCut, kTwoAtOnce };
inline constexpr int kKinds = 5;

// One fault. `victims` are the workers that the others must lose by it.
struct Blow {
  Fault fault = Fault::kKill;
  int host = 0;       // that is cut off
  int from_host = 0;  // -1: from all others, else only from this one
  std::vector<int> victims = {};
  int delay_ms = 0;  // after the blow before it
};

// Blows that fall together, and what the job must have made of them before the next case.
struct Case {
  Kind kind = Kind::kKill;
  std::vector<Blow> blows = {};
  int rounds = 1;           // that all workers have done together before
  int wait_ms = 0;          // then: somewhere in an operation
  bool heals_first = true;  // cuts are mended before their victims have ended by themselves

  std::vector<int> Victims() const;
};

struct JobPlan {
  uint64_t number = 0;
  std::string wire;  // SYNCOPATE_TRANSPORT
  int hosts = kHosts;
  int slots = 1;  // workers a host
  Operation operation = Operation::kAllReduce;
  std::string algorithm;  // of its calls; empty: the library chooses
  uint64_t elements = 1;
  bool shared_memory = false;  // the data is from Worker::Allocate()
  int pause_us = 0;            // between operations
  std::vector<Case> cases;

  int workers() const { return hosts * slots; }
};

JobPlan MakeJob(uint64_t seed, uint64_t number);

const char* Name(Operation operation);
const char* Name(Fault fault);
const char* Name(Kind kind);
// For people: "stop rank 3; 120 ms later cut h5 (ranks 10,11)".
std::string Describe(const Case& each);
std::string Describe(const JobPlan& job);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_PLAN_H_
