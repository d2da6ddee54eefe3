// A whole job in one thread and in virtual time, from one seed: the real engine, transport and core
// of every worker over a simulated network, with faults. The same seed does the same thing.
//
// At the end of a run these hold, or the report says which does not:
//   - every element of every call is right: new where the call succeeded, old where a reduction
//     failed; all survivors of a group agree which;
//   - all survivors have the same losses in the same order, and name the same suspect for all calls
//     of a group that fail;
//   - nobody is held for lost without a fault that justifies it; after a single fault the right
//     worker is, within the promised time;
//   - no call waits past its deadline or for a worker that is known to be lost, and none blames a
//     late worker before time was up for anybody;
//   - messages and parcels between survivors, and to oneself, have come once, whole and in order; of
//     lost workers the first of theirs have, then one word that they are lost, then nothing;
//   - survivors that agree on values have the same ones and use them from the same points on, and none has
//     passed a point without its value; outcomes come soon after the last loss, whoever hosted the
//     service, and if nobody is left that may, each learns that;
//   - nothing touches memory that was given back;
//   - the survivors make a new group and all its elements are right.
#ifndef SYNCOPATE_TESTS_SIMULATION_SIMULATION_H_
#define SYNCOPATE_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>

namespace syncopate::simulation {

enum class World : uint8_t {
  kFrames,   // simulated wires
  kSockets,  // TcpWires on pairs of sockets
};

struct Report {
  std::string failure;  // empty: everything held
  uint64_t digest = 0;  // of all that happened
  uint64_t events = 0;
  int64_t virtual_ns = 0;
  int calls_new = 0;  // that succeeded, and those that failed
  int calls_old = 0;
  int losses = 0;
  int survivors = 0;
  int mail_posted = 0;
  int mail_refused = 0;    // because a queue was full
  int values_adopted = 0;  // by workers, of what was proposed; and reached on their way
  int values_used = 0;
  int values_refused = 0;
  int values_awaited = 0;  // how often a worker was at the end of what it may go
  int hosts_lost = 0;      // of the agreement service
  bool unhosted = false;   // nobody is left that may host it
  int64_t outcome_ns = 0;  // the longest wait for an outcome, after the last trouble
  int regroups = 0;
  int calls_late = 0;          // of those that failed: because time was up
  int64_t notice_kill_ns = 0;  // the longest from a single fault until a survivor knew the loss
  int64_t notice_silence_ns = 0;
};

// `trace`: prints what happens.
Report Simulate(uint64_t seed, World world, bool trace = false);

// What to type to see this run again.
std::string RepeatCommand(uint64_t seed, World world);

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_SIMULATION_H_
