// Rows as a table with nccl-tests' columns, or as JSON, one object a line.
#ifndef SYNCOPATE_TOOLS_BENCH_REPORT_H_
#define SYNCOPATE_TOOLS_BENCH_REPORT_H_

#include <string>

#include "tools/bench/options.h"
#include "tools/bench/statistics.h"

namespace syncopate::tools::bench {

// The lines before the rows, each starting with '#'.
std::string TableHead(const BenchOptions& options);
std::string TableLine(const BenchOptions& options, const Row& row);

std::string JsonLine(const BenchOptions& options, const Row& row);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_REPORT_H_
