// For tests: the files of small labs.
#ifndef SYNCOPATE_LAB_LAB_TESTING_H_
#define SYNCOPATE_LAB_LAB_TESTING_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace syncopate::lab {

// Two racks with `hosts` hosts each: h0, h1, ... in rack0, the others in rack1, which hangs below
// rack0.
inline std::string TwoRacksToml(const std::string& name, int hosts, const std::string& nic,
                                const std::string& uplink) {
  const auto hosts_of = [hosts](const char* rack) {
    return absl::StrCat("[[host]]\nname = \"h\"\ncount = ", hosts, "\nswitch = \"", rack, "\"\n");
  };
  return absl::StrCat("[lab]\nname = \"", name, "\"\nnic = \"", nic, "\"\nuplink = \"", uplink,
                      "\"\n[[switch]]\nname = \"rack0\"\n",
                      "[[switch]]\nname = \"rack1\"\nparent = \"rack0\"\n", hosts_of("rack0"),
                      hosts_of("rack1"));
}

// Two hosts, h0 and h1, at one switch.
inline std::string TwoHostsToml(const std::string& name) {
  return absl::StrCat("[lab]\nname = \"", name,
                      "\"\nnic = \"200mbit\"\n[[switch]]\nname = \"s\"\n"
                      "[[host]]\nname = \"h\"\ncount = 2\nswitch = \"s\"\n");
}

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_LAB_TESTING_H_
