#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>  // its parts do not stand alone

namespace syncopate::train {
namespace {

std::vector<at::Tensor> MakeParameters() {
  ::torch::manual_seed(5);
  std::vector<at::Tensor> parameters{at::randn({7, 5}), at::randn({33}), at::randn({2, 3, 4})};
  for (at::Tensor& parameter : parameters) parameter.requires_grad_();
  return parameters;
}

// Both get the same gradients; a few steps with another learning rate each.
void ExpectSame(Optimizer& ours, const std::vector<at::Tensor>& our_parameters,
                ::torch::optim::Optimizer& theirs, std::vector<at::Tensor> their_parameters,
                const std::function<void(double)>& set_their_rate) {
  for (int step = 0; step < 20; ++step) {
    const double rate = 0.1 / (step + 1);
    for (at::Tensor& parameter : their_parameters) {
      parameter.mutable_grad() = at::randn_like(parameter.detach());
    }
    set_their_rate(rate);
    theirs.step();
    // In any order.
    for (size_t k = 0; k < our_parameters.size(); ++k) {
      const size_t i = (k + static_cast<size_t>(step)) % our_parameters.size();
      const at::Tensor before = their_parameters[i].grad().clone();
      ours.Apply(i, their_parameters[i].grad(), rate);
      EXPECT_TRUE(before.equal(their_parameters[i].grad()));
    }
    for (size_t i = 0; i < our_parameters.size(); ++i) {
      ASSERT_TRUE(our_parameters[i].equal(their_parameters[i])) << "step " << step;
    }
  }
}

TEST(OptimizerTest, SgdIsLibTorchsBitForBit) {
  struct Case {
    double momentum, weight_decay;
    bool nesterov;
  };
  for (const Case& c : {Case{0, 0, false}, Case{0, 1e-2, false}, Case{0.9, 0, false},
                        Case{0.9, 1e-4, false}, Case{0.9, 1e-4, true}}) {
    const auto ours = MakeParameters(), theirs = MakeParameters();
    OptimizerOptions options;
    options.momentum = c.momentum;
    options.weight_decay = c.weight_decay;
    options.nesterov = c.nesterov;
    ::torch::optim::SGDOptions sgd_options(0.1);
    sgd_options.momentum(c.momentum).weight_decay(c.weight_decay).nesterov(c.nesterov);
    ::torch::optim::SGD sgd(theirs, sgd_options);
    const auto optimizer = MakeOptimizer(options, ours);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    ExpectSame(**optimizer, ours, sgd, theirs, [&](double rate) {
      static_cast<::torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(rate);
    });
  }
}

TEST(OptimizerTest, AdamIsLibTorchsBitForBit) {
  for (const double weight_decay : {0.0, 1e-2}) {
    const auto ours = MakeParameters(), theirs = MakeParameters();
    OptimizerOptions options;
    options.name = "adam";
    options.weight_decay = weight_decay;
    ::torch::optim::Adam adam(theirs, ::torch::optim::AdamOptions(0.1).weight_decay(weight_decay));
    const auto optimizer = MakeOptimizer(options, ours);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    ExpectSame(**optimizer, ours, adam, theirs, [&](double rate) {
      static_cast<::torch::optim::AdamOptions&>(adam.param_groups()[0].options()).lr(rate);
    });
  }
}

TEST(OptimizerTest, ClippingIsLibTorchs) {
  for (const double norm_max : {0.5, 1e3}) {
    auto theirs = MakeParameters();
    std::vector<at::Tensor> gradients;
    for (at::Tensor& parameter : theirs) {
      parameter.mutable_grad() = at::randn_like(parameter.detach());
      gradients.push_back(parameter.grad().clone());
    }
    const double norm = ClipByGlobalNorm(gradients, norm_max);
    EXPECT_NEAR(norm, ::torch::nn::utils::clip_grad_norm_(theirs, norm_max), 1e-4);
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(at::allclose(gradients[i], theirs[i].grad(), 1e-5, 1e-7));
    }
  }
}

TEST(OptimizerTest, RefusesWhatIsOutOfRange) {
  const auto refused = [](auto change) {
    OptimizerOptions options;
    change(options);
    return !MakeOptimizer(options, MakeParameters()).ok();
  };
  EXPECT_FALSE(refused([](OptimizerOptions&) {}));
  EXPECT_TRUE(refused([](OptimizerOptions& o) { o.name = "lamb"; }));
  EXPECT_TRUE(refused([](OptimizerOptions& o) { o.momentum = 1; }));
  EXPECT_TRUE(refused([](OptimizerOptions& o) { o.momentum = -0.1; }));
  EXPECT_TRUE(refused([](OptimizerOptions& o) { o.weight_decay = -1; }));
  EXPECT_TRUE(refused([](OptimizerOptions& o) { o.beta2 = NAN; }));
  EXPECT_TRUE(refused([](OptimizerOptions& o) {
    o.nesterov = true;
    o.momentum = 0;
  }));
}

TEST(OptimizerTest, RefusesTheStateOfAnother) {
  OptimizerOptions adam;
  adam.name = "adam";
  const auto from = *MakeOptimizer(adam, MakeParameters());
  from->Apply(0, at::ones({7, 5}), 0.1);
  EXPECT_TRUE((*MakeOptimizer(adam, MakeParameters()))->SetStates(from->states()).ok());
  EXPECT_FALSE((*MakeOptimizer({}, MakeParameters()))->SetStates(from->states()).ok());
  EXPECT_FALSE((*MakeOptimizer(adam, {at::ones({2})}))->SetStates(from->states()).ok());
}

}  // namespace
}  // namespace syncopate::train
