// Gradients after Synchronize() against means that the tests compute themselves.
#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/registry.h"
#include "syncopate/torch.h"
#include "worker/worker_testing.h"

namespace syncopate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A model that is nothing but its parameters: losses are made in the tests.
class Bag : public ::torch::nn::Module {
 public:
  at::Tensor& Add(const std::string& name, at::Tensor values, bool trained = true) {
    return register_parameter(name, std::move(values), trained);
  }
  at::Tensor& AddBuffer(const std::string& name, at::Tensor values) {
    return register_buffer(name, std::move(values));
  }
};

std::unique_ptr<DataParallel> Make(Worker& worker, ::torch::nn::Module& model,
                                   const std::string& schedule = "wfbp") {
  DataParallel::Options options;
  options.schedule = schedule;
  auto parallel = DataParallel::Make(worker, model, options);
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  return parallel.ok() ? *std::move(parallel) : nullptr;
}

// A loss whose gradient with respect to `parameter` is `gradient`.
at::Tensor LossWith(const at::Tensor& parameter, const at::Tensor& gradient) {
  return (parameter * gradient.to(parameter.scalar_type())).to(at::kDouble).sum();
}

// Values that differ between workers, tensors and iterations. Small multiples of 1/4: their sums
// are exact in every type, so means of 2, 4 or 8 are the same however they are made.
at::Tensor Values(at::IntArrayRef shape, int rank, int tensor, int iteration = 0) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return ((at::arange(elements, at::kDouble) * 5 + rank * 3 + tensor * 7 + iteration * 11)
              .remainder(13) -
          6)
      .div(4)
      .view(shape);
}

at::Tensor MeanOf(int size, const std::function<at::Tensor(int rank)>& values) {
  at::Tensor sum = values(0).to(at::kDouble).clone();
  for (int rank = 1; rank < size; ++rank) sum += values(rank);
  return sum / size;
}

void ExpectEqual(const at::Tensor& got, const at::Tensor& expected, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  EXPECT_TRUE(got.to(at::kDouble).equal(expected.to(at::kDouble))) << what << ": got\n"
                                                                   << got << "\nexpected\n"
                                                                   << expected;
}

const at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};

class MixedTypesTest : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(MixedTypesTest, EveryTypeHasItsMean) {
  const auto& [schedule, size] = GetParam();
  worker::RunWorkers(size, [&, schedule = schedule, size = size](Worker& worker) {
    Bag model;
    std::vector<at::Tensor> parameters;
    for (int i = 0; i < 9; ++i) {  // types take turns, so a run of tensors has several
      parameters.push_back(model.Add(absl::StrCat("p", i), at::zeros({i + 1, 5}, kTypes[i % 4])));
    }
    const auto parallel = Make(worker, model, schedule);
    ASSERT_NE(parallel, nullptr);
    for (int iteration = 0; iteration < 8; ++iteration) {  // past the first plan
      model.zero_grad();
      at::Tensor loss = at::zeros({}, at::kDouble);
      for (int i = 0; i < 9; ++i) {
        loss = loss +
               LossWith(parameters[i], Values(parameters[i].sizes(), worker.rank(), i, iteration));
      }
      loss.backward();
      const absl::Status status = parallel->Synchronize();
      ASSERT_TRUE(status.ok()) << status;
      for (int i = 0; i < 9; ++i) {
        EXPECT_EQ(parameters[i].grad().scalar_type(), kTypes[i % 4]);
        ExpectEqual(
            parameters[i].grad(),
            MeanOf(size,
                   [&](int rank) { return Values(parameters[i].sizes(), rank, i, iteration); }),
            absl::StrCat("tensor ", i, " iteration ", iteration));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, MixedTypesTest,
                         ::testing::Combine(::testing::Values("none", "wfbp", "bucket", "search"),
                                            ::testing::Values(1, 2, 4)),
                         [](const auto& test) {
                           return absl::StrCat(std::get<0>(test.param), "_",
                                               std::get<1>(test.param));
                         });

TEST(DataParallelTest, WorkersBeginWithRankZerosValues) {
  worker::RunWorkers(3, [&](Worker& worker) {
    const int rank = worker.rank();
    Bag model;
    at::Tensor weight = model.Add("weight", Values({3, 4}, rank, 0));
    at::Tensor turned = model.Add("turned", Values({4, 3}, rank, 1).to(at::kHalf).t());
    at::Tensor frozen = model.Add("frozen", Values({2}, rank, 2), false);
    at::Tensor counter = model.AddBuffer("counter", at::full({}, rank + 5, at::kLong));
    at::Tensor flags = model.AddBuffer("flags", at::full({3}, rank == 0, at::kBool));
    at::Tensor bytes = model.AddBuffer("bytes", at::full({3}, 100 + rank, at::kByte));
    ASSERT_NE(Make(worker, model), nullptr);
    ExpectEqual(weight, Values({3, 4}, 0, 0), "weight");
    ExpectEqual(turned, Values({4, 3}, 0, 1).t(), "turned");
    ExpectEqual(frozen, Values({2}, 0, 2), "frozen");
    EXPECT_EQ(counter.item<int64_t>(), 5);
    EXPECT_TRUE(flags.all().item<bool>());
    EXPECT_TRUE(bytes.eq(100).all().item<bool>());
  });
}

TEST(DataParallelTest, ParametersWithoutAPartCountAsZero) {
  constexpr int kSize = 4;
  worker::RunWorkers(kSize, [&](Worker& worker) {
    const int rank = worker.rank();
    Bag model;
    at::Tensor always = model.Add("always", at::zeros({6}));
    at::Tensor sometimes = model.Add("sometimes", at::zeros({5}, at::kBFloat16));
    at::Tensor never = model.Add("never", at::zeros({4}));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    for (int iteration = 0; iteration < 4; ++iteration) {
      const int with = iteration % kSize;  // another worker each time
      for (const at::Tensor& parameter : model.parameters()) {
        parameter.mutable_grad() = at::Tensor();
      }
      at::Tensor loss = LossWith(always, Values({6}, rank, 0));
      if (rank == with) loss = loss + LossWith(sometimes, Values({5}, rank, 1));
      loss.backward();
      ASSERT_TRUE(parallel->Synchronize().ok());
      ExpectEqual(always.grad(), MeanOf(kSize, [](int r) { return Values({6}, r, 0); }), "always");
      ExpectEqual(sometimes.grad(), Values({5}, with, 1) / kSize, "sometimes");
      ExpectEqual(never.grad(), at::zeros({4}), "never");
    }
  });
}

// A worker may have nothing to compute at all: at the end of its data, say.
TEST(DataParallelTest, WorkerWithoutBackwardPassTakesPart) {
  worker::RunWorkers(2, [&](Worker& worker) {
    Bag model;
    at::Tensor weight = model.Add("weight", at::zeros({6}));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    parallel->SetSamples(worker.rank() == 0 ? 8 : 0);
    if (worker.rank() == 0) LossWith(weight, Values({6}, 0, 0)).backward();
    const absl::Status status = parallel->Synchronize();
    ASSERT_TRUE(status.ok()) << status;
    ExpectEqual(weight.grad(), Values({6}, 0, 0), "weight");
  });
}

TEST(DataParallelTest, MeansAreWeightedWithSamples) {
  constexpr int kSize = 3;
  const auto samples = [](int rank, int iteration) {  // they add up to a power of two: exact
    const int table[3][3] = {{1, 5, 2}, {4, 2, 2}, {0, 3, 1}};
    return table[iteration][rank];
  };
  worker::RunWorkers(kSize, [&](Worker& worker) {
    Bag model;
    std::vector<at::Tensor> parameters;
    for (int i = 0; i < 4; ++i) {
      parameters.push_back(model.Add(absl::StrCat("p", i), at::zeros({7}, kTypes[i])));
    }
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    for (int iteration = 0; iteration < 3; ++iteration) {
      model.zero_grad();
      parallel->SetSamples(static_cast<uint64_t>(samples(worker.rank(), iteration)));
      at::Tensor loss = at::zeros({}, at::kDouble);
      for (int i = 0; i < 4; ++i) {
        loss = loss + LossWith(parameters[i], Values({7}, worker.rank(), i, iteration));
      }
      loss.backward();
      ASSERT_TRUE(parallel->Synchronize().ok());
      for (int i = 0; i < 4; ++i) {
        at::Tensor sum = at::zeros({7}, at::kDouble);
        int all = 0;
        for (int rank = 0; rank < kSize; ++rank) {
          sum += Values({7}, rank, i, iteration) * samples(rank, iteration);
          all += samples(rank, iteration);
        }
        ExpectEqual(parameters[i].grad(), sum / all,
                    absl::StrCat("tensor ", i, " iteration ", iteration));
      }
    }
  });
}

TEST(DataParallelTest, AccumulatedGradientsAddUp) {
  constexpr int kSize = 2, kParts = 3;
  worker::RunWorkers(kSize, [&](Worker& worker) {
    const int rank = worker.rank();
    Bag model;
    at::Tensor weight = model.Add("weight", at::zeros({6}));
    at::Tensor early = model.Add("early", at::zeros({3}));  // not in the last part
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    for (int iteration = 0; iteration < 3; ++iteration) {
      model.zero_grad();
      for (int part = 0; part < kParts; ++part) {
        parallel->SetAccumulating(part < kParts - 1);
        at::Tensor loss = LossWith(weight, Values({6}, rank, part, iteration));
        if (part == 0) loss = loss + LossWith(early, Values({3}, rank, 5, iteration));
        loss.backward();
      }
      ASSERT_TRUE(parallel->Synchronize().ok());
      ExpectEqual(weight.grad(),
                  MeanOf(kSize,
                         [&](int r) {
                           at::Tensor sum = Values({6}, r, 0, iteration).clone();
                           for (int part = 1; part < kParts; ++part) {
                             sum += Values({6}, r, part, iteration);
                           }
                           return sum;
                         }),
                  "weight");
      ExpectEqual(early.grad(), MeanOf(kSize, [&](int r) { return Values({3}, r, 5, iteration); }),
                  "early");
    }
  });
}

// Its gradient is complete only when both uses have been through.
TEST(DataParallelTest, ParameterThatIsUsedTwice) {
  worker::RunWorkers(2, [&](Worker& worker) {
    const int rank = worker.rank();
    Bag model;
    at::Tensor shared = model.Add("shared", at::ones({4}));
    at::Tensor between = model.Add("between", at::ones({4}));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    // shared · between · shared · x: d/dshared = 2 x, d/dbetween = x, at ones.
    const at::Tensor x = Values({4}, rank, 0).to(at::kFloat);
    (shared * between * shared * x).sum().backward();
    ASSERT_TRUE(parallel->Synchronize().ok());
    const at::Tensor mean = MeanOf(2, [](int r) { return Values({4}, r, 0); });
    ExpectEqual(shared.grad(), mean * 2, "shared");
    ExpectEqual(between.grad(), mean, "between");
  });
}

TEST(DataParallelTest, BuffersAreAveragedOrRankZeros) {
  constexpr int kSize = 4;
  worker::RunWorkers(kSize, [&](Worker& worker) {
    const int rank = worker.rank();
    Bag model;
    model.Add("weight", at::zeros({2}));
    at::Tensor mean = model.AddBuffer("mean", at::zeros({5}));
    at::Tensor precise = model.AddBuffer("precise", at::zeros({3, 2}, at::kDouble).t());
    at::Tensor half = model.AddBuffer("half", at::zeros({3}, at::kHalf));
    at::Tensor counter = model.AddBuffer("counter", at::zeros({}, at::kLong));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    mean.copy_(Values({5}, rank, 0));
    precise.copy_(Values({2, 3}, rank, 1));
    half.copy_(Values({3}, rank, 2));
    counter.fill_(rank + 40);
    const absl::Status status = parallel->AverageBuffers();
    ASSERT_TRUE(status.ok()) << status;
    ExpectEqual(mean, MeanOf(kSize, [](int r) { return Values({5}, r, 0); }), "mean");
    ExpectEqual(precise, MeanOf(kSize, [](int r) { return Values({2, 3}, r, 1); }), "precise");
    ExpectEqual(half, MeanOf(kSize, [](int r) { return Values({3}, r, 2); }), "half");
    EXPECT_EQ(counter.item<int64_t>(), 40);
  });
}

TEST(DataParallelTest, FrozenParametersAreLeftAlone) {
  worker::RunWorkers(2, [&](Worker& worker) {
    Bag model;
    at::Tensor frozen = model.Add("frozen", at::ones({4}, at::kInt), false);
    at::Tensor weight = model.Add("weight", at::ones({4}));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    LossWith(weight, Values({4}, worker.rank(), 0)).backward();
    ASSERT_TRUE(parallel->Synchronize().ok());
    EXPECT_FALSE(frozen.grad().defined());
  });
}

TEST(DataParallelTest, HooksEndWithTheObject) {
  worker::RunWorkers(2, [&](Worker& worker) {
    Bag model;
    at::Tensor weight = model.Add("weight", at::zeros({4}));
    ASSERT_NE(Make(worker, model), nullptr);  // and gone
    LossWith(weight, Values({4}, worker.rank(), 0)).backward();
    ExpectEqual(weight.grad(), Values({4}, worker.rank(), 0), "weight");
  });
}

// ---- an ordinary loop

at::Tensor PlainTraining(int parts, int part, const std::function<void(Bag&)>& begin,
                         const std::function<void(Bag&)>& synchronize) {
  constexpr int64_t kBatch = 24;
  Bag model;
  at::Tensor first = model.Add("first", Values({6, 16}, 0, 0) / 4);
  at::Tensor second = model.Add("second", Values({16, 1}, 0, 1) / 4);
  begin(model);
  ::torch::optim::Adam optimizer(model.parameters(), ::torch::optim::AdamOptions(0.01));
  for (int iteration = 0; iteration < 20; ++iteration) {
    const at::Tensor all = Values({kBatch, 6}, 0, 2, iteration);
    const at::Tensor inputs =
        all.slice(0, kBatch * part / parts, kBatch * (part + 1) / parts).contiguous();
    optimizer.zero_grad();
    const at::Tensor wanted = inputs.sum(1, true).sin();
    (inputs.matmul(first).tanh().matmul(second) - wanted).square().mean().backward();
    synchronize(model);
    optimizer.step();
  }
  return at::cat({first.flatten(), second.flatten()}).detach().clone();
}

TEST(DataParallelTest, OrdinaryLoopTrainsAsOneWorker) {
  const auto nothing = [](Bag&) {};
  const at::Tensor alone = PlainTraining(1, 0, nothing, nothing);
  for (const int size : {1, 2, 4, 8}) {
    worker::RunWorkers(size, [&](Worker& worker) {
      std::unique_ptr<DataParallel> parallel;
      const at::Tensor together = PlainTraining(
          size, worker.rank(),
          [&](Bag& model) {
            parallel = Make(worker, model, "bucket");
            ASSERT_NE(parallel, nullptr);
          },
          [&](Bag&) { EXPECT_TRUE(parallel->Synchronize().ok()); });
      // In float64: what is left is rounding of 1e-16, amplified by 20 steps of Adam.
      EXPECT_LT((together - alone).abs().max().item<double>(), 1e-10) << size;
      EXPECT_GT((alone - at::cat({Values({6, 16}, 0, 0).flatten() / 4,
                                  Values({16, 1}, 0, 1).flatten() / 4}))
                    .abs()
                    .max()
                    .item<double>(),
                0.01);
    });
  }
}

// ---- errors

TEST(DataParallelTest, TypesThatCannotBeAveragedAreNamed) {
  worker::RunWorkers(1, [&](Worker& worker) {
    Bag model;
    model.Add("good", at::zeros({2}));
    model.Add("angle", at::zeros({2}, at::kComplexFloat));
    const auto parallel = DataParallel::Make(worker, model);
    EXPECT_EQ(parallel.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parallel.status().message()),
                AllOf(HasSubstr("angle"), HasSubstr("ComplexFloat"), HasSubstr("bfloat16")));
  });
}

TEST(DataParallelTest, ModelsWithNothingToTrainAreRefused) {
  worker::RunWorkers(1, [&](Worker& worker) {
    Bag model, empty;
    model.Add("hollow", at::zeros({0, 3}));
    EXPECT_THAT(std::string(DataParallel::Make(worker, model).status().message()),
                HasSubstr("hollow"));
    EXPECT_EQ(DataParallel::Make(worker, empty).status().code(),
              absl::StatusCode::kInvalidArgument);
  });
}

TEST(DataParallelTest, UnknownScheduleIsRefused) {
  worker::RunWorkers(1, [&](Worker& worker) {
    Bag model;
    model.Add("weight", at::zeros({2}));
    DataParallel::Options options;
    options.schedule = "soon";
    const auto parallel = DataParallel::Make(worker, model, options);
    EXPECT_EQ(parallel.status().code(), absl::StatusCode::kInvalidArgument) << parallel.status();
    EXPECT_THAT(std::string(parallel.status().message()), HasSubstr("soon"));
  });
}

TEST(DataParallelTest, DifferentModelsAreToldApart) {
  worker::RunWorkers(2, [&](Worker& worker) {
    Bag model;
    model.Add("weight", at::zeros({2 + worker.rank()}));
    const auto parallel = DataParallel::Make(worker, model);
    EXPECT_FALSE(parallel.ok());
    if (worker.rank() == 1) {
      EXPECT_EQ(parallel.status().code(), absl::StatusCode::kInvalidArgument) << parallel.status();
      EXPECT_THAT(std::string(parallel.status().message()), HasSubstr("rank 0"));
    }
  });
}

// Its gradients would be lost.
TEST(DataParallelTest, SecondBackwardPassWithoutAccumulatingIsAnError) {
  worker::RunWorkers(2, [&](Worker& worker) {
    Bag model;
    at::Tensor weight = model.Add("weight", at::zeros({2}));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    for (int i = 0; i < 2; ++i) LossWith(weight, Values({2}, worker.rank(), 0)).backward();
    const absl::Status status = parallel->Synchronize();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("weight"), HasSubstr("SetAccumulating")));
    EXPECT_EQ(parallel->Synchronize(), status);  // and it stays so
  });
}

TEST(DataParallelTest, LostWorkerIsNamed) {
  worker::RunWorkers(3, [&](Worker& worker) {
    Bag model;
    at::Tensor weight = model.Add("weight", at::zeros({2}));
    const auto parallel = Make(worker, model);
    ASSERT_NE(parallel, nullptr);
    LossWith(weight, Values({2}, worker.rank(), 0)).backward();
    ASSERT_TRUE(parallel->Synchronize().ok());
    if (worker.rank() == 1) return;  // it leaves the job
    LossWith(weight, Values({2}, worker.rank(), 0)).backward();
    const absl::Status status = parallel->Synchronize();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(GetSuspect(status), 1) << status;
  });
}

TEST(DataParallelTest, StrategiesThatUpdateParametersThemselvesAreRefused) {
  static const absl::Status added =
      strategy::AddStrategy({.name = "moves-parameters",
                             .about = "for tests",
                             .moves = strategy::Moves::kParameters,
                             .make = [](const strategy::StrategyOptions&)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return absl::InternalError("nobody makes it");
                             }});  // once, however often the test runs
  ASSERT_TRUE(added.ok()) << added;
  worker::RunWorkers(2, [](Worker& worker) {
    Bag bag;
    bag.Add("weight", at::zeros({3}));
    DataParallel::Options options;
    options.strategy = "moves-parameters";
    const absl::Status refused = DataParallel::Make(worker, bag, options).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("strategy moves-parameters updates parameters itself"));
    options.strategy = "bps";
    const absl::Status unknown = DataParallel::Make(worker, bag, options).status();
    EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(unknown.message()),
                AllOf(HasSubstr("there is no strategy \"bps\""), HasSubstr("bsp")));
    options.strategy = "bsp";
    EXPECT_TRUE(DataParallel::Make(worker, bag, options).ok());
  });
}

}  // namespace
}  // namespace syncopate
