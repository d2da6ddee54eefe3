// How many groups a second the group generator decides on, without messages: workers ask in turn, are told, and say
// that they are done.
//
//   build/release/src/group_maker_benchmark
#include <deque>
#include <vector>

#include "benchmark/benchmark.h"
#include "services/group_maker.h"

namespace syncopate::services {
namespace {

void Decide(benchmark::State& state, const GroupRules& rules) {
  const int workers = static_cast<int>(state.range(0));
  GroupJob job = {.workers = workers, .seed = 1};
  for (int rank = 0; rank < workers; ++rank) job.node.push_back(rank / 8);
  GroupMaker maker(rules, job);
  std::deque<int> turn;
  for (int rank = 0; rank < workers; ++rank) turn.push_back(rank);
  std::vector<GivenGroup> given, more;
  int64_t now_ns = 0;
  for (auto _ : state) {
    if (turn.empty()) {
      state.SkipWithError("all workers wait");
      break;
    }
    const int rank = turn.front();
    turn.pop_front();
    given.clear();
    maker.Want({.now_ns = ++now_ns, .maker = 1}, rank, {.samples = 32, .busy_seconds = 1}, given)
        .IgnoreError();
    for (size_t i = 0; i < given.size(); ++i) {
      const GivenGroup each = given[i];
      more.clear();
      const bool goes_on = each.members.size() < 2 ||
                           maker.Done({.now_ns = now_ns, .maker = 1}, each.rank, each.key, more);
      if (goes_on && !maker.Waits(each.rank)) turn.push_back(each.rank);
      given.insert(given.end(), more.begin(), more.end());
    }
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["groups"] = static_cast<double>(maker.counts().groups);
}

void Smart(benchmark::State& state) { Decide(state, *GroupRules::ByName("prague-smart")); }
void OnePhase(benchmark::State& state) {
  GroupRules rules;
  rules.inter_intra = false;
  Decide(state, rules);
}
void RandomGroups(benchmark::State& state) { Decide(state, *GroupRules::ByName("prague-random")); }
void Arrival(benchmark::State& state) { Decide(state, *GroupRules::ByName("arrival")); }

BENCHMARK(Smart)->Arg(16)->Arg(10'000);
BENCHMARK(OnePhase)->Arg(16)->Arg(10'000);
BENCHMARK(RandomGroups)->Arg(16)->Arg(10'000);
BENCHMARK(Arrival)->Arg(16)->Arg(10'000);

}  // namespace
}  // namespace syncopate::services

BENCHMARK_MAIN();
