// The tables of the ASC-WFBP paper, found again on the timeline model.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_ASC_WFBP_H_
#define SYNCOPATE_TOOLS_REPRODUCE_ASC_WFBP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace syncopate::tools::reproduce {

// Iteration times in seconds. What stands as `published` is Table IV of the paper.
struct AscWfbpRow {
  std::string model;
  int tensors = 0;
  double parameters = 0;
  double published_wfbp = 0;
  double published_mg = 0;
  double published_asc = 0;
  // Ours, on the paper's a, b and gamma.
  double none = 0;
  double wfbp = 0;
  double mg = 0;
  double bucket = 0;
  double asc = 0;
  double search = 0;
  double bound = 0;  // of all schedules of two at once
  // With gamma(2) = 2: the network is no faster than its line.
  double asc_full = 0;
  double search_full = 0;
  // The start-up that the published time of WFBP leaves to each tensor by formula (4).
  double implied_startup = 0;
};

absl::StatusOr<std::vector<AscWfbpRow>> MakeAscWfbpRows();

std::string AscWfbpToText(const std::vector<AscWfbpRow>& rows);
std::string AscWfbpToJson(const std::vector<AscWfbpRow>& rows);

}  // namespace syncopate::tools::reproduce

#endif  // SYNCOPATE_TOOLS_REPRODUCE_ASC_WFBP_H_
