// What a program depends on: the key by which programs are planned once and remembered.
#ifndef SYNCOPATE_PLAN_PROGRAM_KEY_H_
#define SYNCOPATE_PLAN_PROGRAM_KEY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/collective/request.h"

namespace syncopate::plan {

struct ProgramKey {
  CollectiveRequest request;
  uint64_t element_bytes = 4;  // the choice of the algorithm depends on bytes
  std::string algorithm;       // empty: choose
  int self = 0;
  std::vector<int> ranks = {};  // of the job, by worker; matter where the job is on several hosts
  uint64_t chunk_bytes = 0;     // sub-chunks of this size; 0: as the choice has it
  // The version of the topology to plan by; 0: the one that the job began with.
  uint64_t network_version = 0;

  friend bool operator==(const ProgramKey&, const ProgramKey&) = default;
};

struct ProgramKeyHash {
  size_t operator()(const ProgramKey& key) const;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_PROGRAM_KEY_H_
