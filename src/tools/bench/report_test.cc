#include "tools/bench/report.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace syncopate::tools::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Row PeerRow() {
  Row row;
  row.workers = 4;
  row.bytes = 1048576;
  row.count = 262144;
  row.contestant = "openmpi-ucx";
  row.mean_us = 480.123;
  row.p50_us = 473.5678;
  row.p99_us = 1200.4;
  row.algbw_gbps = 2.2142;
  row.busbw_gbps = 3.3213;
  row.wrong = 0;
  row.ratio = Ratio{4.5, 4.01, 5.02};
  row.rounds = 5;
  return row;
}

std::vector<std::string> Columns(const std::string& line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

TEST(JsonLineTest, HasExactlyThePromisedKeys) {
  const std::string line = JsonLine(BenchOptions(), PeerRow());
  EXPECT_EQ(line,
            "{\"workers\":4,\"bytes\":1048576,\"contestant\":\"openmpi-ucx\",\"p50_us\":473.568,"
            "\"p99_us\":1200.4,\"algbw_GBps\":2.214,\"busbw_GBps\":3.321,\"wrong\":0,"
            "\"ratio\":4.5,\"ratio_min\":4.01,\"ratio_max\":5.02,\"rounds\":5}\n");
}

TEST(JsonLineTest, OursHasNoRatioAndUncheckedIsNull) {
  Row row = PeerRow();
  row.ratio.reset();
  row.wrong.reset();
  const auto object = nlohmann::json::parse(JsonLine(BenchOptions(), row));
  EXPECT_FALSE(object.contains("ratio"));
  EXPECT_FALSE(object.contains("ratio_min"));
  EXPECT_TRUE(object.at("wrong").is_null());
}

TEST(JsonLineTest, SaysInALabHowNearTheBoundItIs) {
  BenchOptions options;
  options.slots = {2, 2};
  Row row = PeerRow();
  EXPECT_TRUE(nlohmann::json::parse(JsonLine(options, row)).at("percent_of_bound").is_null());
  row.percent_of_bound = 95.1234;
  row.percent_of_certificate = 85.5;
  const auto object = nlohmann::json::parse(JsonLine(options, row));
  EXPECT_EQ(object.at("percent_of_bound"), 95.123);
  EXPECT_EQ(object.at("percent_of_certificate"), 85.5);
}

TEST(TableTest, HasTwoColumnsMoreInALab) {
  BenchOptions options;
  options.slots = {2, 2};
  Row row = PeerRow();
  row.percent_of_bound = 95.1234;
  const std::vector<std::string> head = absl::StrSplit(TableHead(options), '\n');
  const std::vector<std::string> columns = Columns(head[3]);
  EXPECT_THAT(std::vector<std::string>(columns.end() - 5, columns.end()),
              ElementsAre("contestant", "%bound", "%cert", "ratio", "spread"));
  const std::string line = TableLine(options, row);
  EXPECT_EQ(head[3].find("%bound") + 6, line.find("95.1") + 4);
  row.percent_of_bound.reset();
  EXPECT_THAT(TableLine(options, row), HasSubstr("N/A"));
}

TEST(TableTest, HasNcclTestsColumnsThenOurs) {
  const BenchOptions options;
  const std::vector<std::string> head = absl::StrSplit(TableHead(options), '\n');
  ASSERT_EQ(head.size(), 4u);  // the last is empty
  for (size_t i = 0; i + 1 < head.size(); ++i) EXPECT_EQ(head[i][0], '#');
  EXPECT_THAT(Columns(head[2]),
              ElementsAre("#", "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong",
                          "p50", "p99", "contestant", "ratio", "spread"));
  EXPECT_THAT(Columns(TableLine(options, PeerRow())),
              ElementsAre("1048576", "262144", "float32", "sum", "480.1", "2.214", "3.321", "0",
                          "473.6", "1200", "openmpi-ucx", "4.500", "4.010..5.020"));
}

TEST(TableTest, ColumnsOfHeadAndRowsEndAtTheSamePlaces) {
  const BenchOptions options;
  const std::vector<std::string> head = absl::StrSplit(TableHead(options), '\n');
  const std::string line = TableLine(options, PeerRow());
  EXPECT_EQ(head[2].find("size") + 4, line.find("1048576") + 7);
  EXPECT_EQ(head[2].find("p99") + 3, line.find("1200") + 4);
  EXPECT_EQ(head[2].find("contestant"), line.find("openmpi-ucx"));
}

TEST(TableTest, SaysWhatDoesNotApply) {
  BenchOptions options;
  options.collective = Collective::kBroadcast;
  Row row = PeerRow();
  row.wrong.reset();
  row.ratio.reset();
  const std::vector<std::string> columns = Columns(TableLine(options, row));
  EXPECT_EQ(columns[3], "none");
  EXPECT_EQ(columns[7], "N/A");
  EXPECT_EQ(columns.back(), "openmpi-ucx");
}

TEST(ReportTest, ShowsWhoIsActive) {
  BenchOptions options;
  EXPECT_FALSE(nlohmann::json::parse(JsonLine(options, PeerRow())).contains("active"));
  options.active = {0, 1, 2, 4};
  const auto object = nlohmann::json::parse(JsonLine(options, PeerRow()));
  EXPECT_EQ(object.at("active"), nlohmann::json({0, 1, 2, 4}));
  EXPECT_THAT(TableHead(options), HasSubstr("active"));
  EXPECT_THAT(Columns(TableLine(options, PeerRow())), ::testing::Contains("0-2,4"));
}

}  // namespace
}  // namespace syncopate::tools::bench
