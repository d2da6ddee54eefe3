#include "observe/chrome_trace.h"

#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "observe/sample_run_testing.h"

namespace syncopate::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kPlenty = uint64_t{1} << 30;

void Sort(std::vector<WorkerTrace>* traces) {
  for (WorkerTrace& trace : *traces) {
    std::sort(trace.spans.begin(), trace.spans.end(), [](const Span& a, const Span& b) {
      return std::tuple(a.begin_ns, a.end_ns, a.kind, a.id) <
             std::tuple(b.begin_ns, b.end_ns, b.kind, b.id);
    });
  }
}

TEST(ChromeTraceTest, RoundTrips) {
  std::vector<WorkerTrace> traces = testing::SampleTraces();
  traces[1].host = "odd\"\\name";
  traces[1].dropped = 5;
  traces[1].dropped_bytes = 7;
  traces[1].dropped_first = 100;
  traces[1].dropped_last = 101;
  ChromeTraceContents contents = ReadChromeTrace(ToChromeTrace(traces, kPlenty));
  EXPECT_THAT(contents.notes, IsEmpty());
  Sort(&traces);
  Sort(&contents.traces);
  EXPECT_EQ(contents.traces, traces);
  EXPECT_THAT(ReadChromeTrace(ToChromeTrace({}, kPlenty)).traces, IsEmpty());
}

// Of every track of every process: two events either have no common moment, or one holds the other.
void ExpectNested(const nlohmann::json& events) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"].get<double>();
    tracks[{event["pid"].get<int>(), event["tid"].get<int>()}].emplace_back(
        begin, begin + event["dur"].get<double>());
  }
  ASSERT_FALSE(tracks.empty());
  constexpr double kNear = 1e-6;
  for (const auto& [track, spans] : tracks) {
    for (size_t i = 0; i < spans.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto& [a, b] = std::minmax(spans[i], spans[j]);
        const bool apart = b.first >= a.second - kNear;
        const bool inside = b.second <= a.second + kNear || a.first >= b.first - kNear;
        ASSERT_TRUE(apart || inside) << track.first << "/" << track.second << ": " << a.first << "-"
                                     << a.second << " and " << b.first << "-" << b.second;
      }
    }
  }
}

TEST(ChromeTraceTest, IsJsonWithNestedTracks) {
  const auto events = nlohmann::json::parse(ToChromeTrace(testing::SampleTraces(), kPlenty));
  ASSERT_TRUE(events.is_array());
  ExpectNested(events);
  std::set<std::string> tracks;
  for (const auto& event : events) {
    if (event["name"] == "thread_name" && event["pid"] == 0) {
      tracks.insert(event["args"]["name"].get<std::string>());
    }
  }
  EXPECT_THAT(tracks, ElementsAre("compute", "transfers 0", "transfers 1", "waiting"));
}

TEST(ChromeTraceTest, SpansThatCrossAreCut) {
  WorkerTrace trace;
  trace.host = "a";
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    const int64_t begin = static_cast<int64_t>(random() % 10'000'000);
    trace.spans.push_back({static_cast<SpanKind>(random() % kSpanKinds), 0, 1, begin,
                           begin + static_cast<int64_t>(random() % 1'000'000)});
  }
  ExpectNested(nlohmann::json::parse(ToChromeTrace({trace}, kPlenty)));
}

TEST(ChromeTraceTest, KeepsTheFirstAndLastIterationsOfAllWithinItsSize) {
  testing::SampleOptions options;
  options.iterations = 200;
  const std::vector<WorkerTrace> traces = testing::SampleTraces(options);
  constexpr uint64_t kBytes = 200'000;
  const std::string text = ToChromeTrace(traces, kBytes);
  EXPECT_LT(text.size(), kBytes * 5 / 4);
  EXPECT_GT(text.size(), kBytes / 2);
  const ChromeTraceContents contents = ReadChromeTrace(text);
  ASSERT_THAT(contents.traces, SizeIs(4));
  std::set<int> kept;
  for (const WorkerTrace& trace : contents.traces) {
    EXPECT_GT(trace.dropped, 0u);
    EXPECT_EQ(trace.dropped + trace.spans.size(), traces[0].spans.size());
    EXPECT_EQ(trace.dropped_first, contents.traces[0].dropped_first);
    uint64_t bytes = trace.dropped_bytes;
    for (const Span& span : trace.spans) {
      bytes += span.bytes;
      kept.insert(span.iteration);
      EXPECT_FALSE(trace.dropped_first <= span.iteration && span.iteration <= trace.dropped_last);
    }
    EXPECT_EQ(bytes, uint64_t{200} * 4 * 400'000);
  }
  EXPECT_TRUE(kept.count(0) == 1 && kept.count(199) == 1);
  EXPECT_EQ(kept.size() + static_cast<size_t>(contents.traces[0].dropped_last -
                                              contents.traces[0].dropped_first + 1),
            200u);
}

TEST(ChromeTraceTest, AnIterationThatIsTooLargeIsLeftOut) {
  const ChromeTraceContents contents =
      ReadChromeTrace(ToChromeTrace(testing::SampleTraces(), 1'000));
  ASSERT_THAT(contents.traces, SizeIs(4));
  EXPECT_THAT(contents.traces[0].spans, IsEmpty());
}

TEST(ChromeTraceTest, EveryCutIsReadUpToThere) {
  testing::SampleOptions options;
  options.workers = 1;
  options.iterations = 2;
  const std::string text = ToChromeTrace(testing::SampleTraces(options), kPlenty);
  size_t most = 0;
  for (size_t size = 0; size <= text.size(); ++size) {
    const ChromeTraceContents contents = ReadChromeTrace(absl::string_view(text).substr(0, size));
    const size_t spans = contents.traces.empty() ? 0 : contents.traces[0].spans.size();
    EXPECT_GE(spans, most) << size;
    most = std::max(most, spans);
    EXPECT_LE(contents.notes.size(), 1u);
    for (const std::string& note : contents.notes) EXPECT_THAT(note, HasSubstr("cut off"));
  }
  EXPECT_EQ(most, testing::SampleTraces(options)[0].spans.size());
}

TEST(ChromeTraceTest, EventsOfOthersAreCounted) {
  const ChromeTraceContents contents = ReadChromeTrace(
      "[\n{\"ph\":\"B\",\"pid\":1,\"args\":{}},\n{\"name\":\"x\",\"ph\":\"X\",\"ts\":1},\n"
      "nonsense\n{\"ph\":\"X\",\"pid\":99999999,\"args\":{}}\n]\n");
  EXPECT_THAT(contents.notes, ElementsAre(HasSubstr("1 line could"), HasSubstr("3 events")));
}

TEST(ChromeTraceTest, RandomChangesNeverCrash) {
  testing::SampleOptions options;
  options.workers = 2;
  options.iterations = 1;
  const std::string good = ToChromeTrace(testing::SampleTraces(options), kPlenty);
  std::mt19937_64 random(99);
  for (int round = 0; round < 2'000; ++round) {
    std::string text = good;
    for (uint64_t flips = random() % 20 + 1; flips > 0; --flips) {
      text[random() % text.size()] =
          random() % 2 == 0 ? static_cast<char>(random()) : "0123456789-eE{}[],\":"[random() % 20];
    }
    for (const WorkerTrace& trace : ReadChromeTrace(text).traces) {
      EXPECT_TRUE(Validate(trace).ok());
    }
  }
}

TEST(ChromeTraceTest, TracesOfOneRankAreMerged) {
  std::vector<WorkerTrace> traces = testing::SampleTraces();
  const size_t count = traces[0].spans.size();
  MergeTrace(traces[0], &traces);
  EXPECT_THAT(traces, SizeIs(4));
  EXPECT_EQ(traces[0].spans.size(), 2 * count);
  WorkerTrace other = traces[0];
  other.rank = 9;
  MergeTrace(other, &traces);
  EXPECT_THAT(traces, SizeIs(5));
}

}  // namespace
}  // namespace syncopate::observe
