// The model that `syncopate train` leaves, used as others would: in C++ by torch::load() into a
// module of one's own, in Python by load_state_dict(). Both must do as well as the run says.
#include <stdlib.h>
#include <torch/torch.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"
#include "train/batch.h"
#include "train/data/load.h"

namespace syncopate::testing {
namespace {

constexpr char kPython[] = "/usr/bin/python3";  // Debian's, which has python3-torch

// What a user would write: LeNet, by the names in docs/training.md, for photographs of 32 x 32 pixels.
struct Cnn : torch::nn::Module {
  Cnn() {
    conv1 = register_module("conv1", torch::nn::Conv2d(3, 20, 5));
    conv2 = register_module("conv2", torch::nn::Conv2d(20, 50, 5));
    dense1 = register_module("dense1", torch::nn::Linear(1250, 500));
    dense2 = register_module("dense2", torch::nn::Linear(500, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return dense2(torch::relu(dense1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear dense1{nullptr}, dense2{nullptr};
};

constexpr char kScript[] = R"(
import pickletools, sys, warnings, zipfile
import numpy, torch
from torch.nn import functional as F

class Cnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 20, 5)
        self.conv2 = torch.nn.Conv2d(20, 50, 5)
        self.dense1 = torch.nn.Linear(1250, 500)
        self.dense2 = torch.nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.dense2(F.relu(self.dense1(x.flatten(1))))

path, inputs, labels = sys.argv[1:]
torch.set_num_threads(1)
model = Cnn()
model.load_state_dict(torch.jit.load(path).state_dict())
model.eval()
images = torch.from_numpy(numpy.fromfile(inputs, numpy.float32)).view(-1, 3, 32, 32)
expected = torch.from_numpy(numpy.fromfile(labels, numpy.int64))
with torch.no_grad():
    logits = model(images)
print((logits.argmax(1) == expected).sum().item(), len(expected))
print(*logits[0].tolist())

warnings.simplefilter("ignore")
same = torch.load(path).state_dict()
print(all(torch.equal(value, same[name]) for name, value in model.state_dict().items()))
foreign = set()
with zipfile.ZipFile(path) as archive:
    for name in archive.namelist():
        if not name.endswith(".pkl"):
            continue
        for opcode, argument, _ in pickletools.genops(archive.read(name)):
            if opcode.name in ("GLOBAL", "STACK_GLOBAL", "INST"):
                foreign.add(str(argument).replace(" ", ".").split(".")[0])
print(*sorted(foreign - {"__torch__", "torch", "collections"}))
)";

class TrainModelTest : public ::testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(TrainModelTest, OthersGetTheAccuracyOfTheRun) {
  const std::string run = folder_ + "/run";
  Subprocess train({SYNCOPATE_BINARY, "train", "--model", "cnn", "--data", "synthetic",
                    "--synthetic-samples", "400", "--lr", "0.02", "--iterations", "4", "--threads",
                    "1", "-n", "2", "--run", run, "--json"});
  ASSERT_EQ(train.Wait(), 0) << train.err();
  const auto summary = nlohmann::json::parse(train.out());
  const double accuracy = summary.at("accuracy");
  EXPECT_LT(accuracy, 1);  // so short a training leaves mistakes to reproduce
  const std::string path = summary.at("run").get<std::string>() + "/model.pt";

  // The run's test data, normalised as model.json says.
  train::LoadOptions load;
  load.cache_folder = folder_;
  load.synthetic.train_samples = 400;
  const auto data = train::LoadDataset("synthetic", load);
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<int64_t> all(static_cast<size_t>(data->test.samples));
  std::iota(all.begin(), all.end(), 0);
  const train::Batch batch = train::MakeBatch(data->info, data->test, all);
  const double correct = accuracy * static_cast<double>(all.size());

  torch::NoGradGuard no_gradients;
  auto model = std::make_shared<Cnn>();
  torch::load(model, path);
  model->eval();
  const torch::Tensor logits = model->forward(batch.inputs);
  EXPECT_NEAR(logits.argmax(1).eq(batch.labels).sum().item<double>(), correct, 1e-6);

  Subprocess check({kPython, "-c", "import torch, numpy"});
  if (check.Wait() != 0) GTEST_SKIP() << "no PyTorch for Python here: " << check.err();
  const auto write = [&](const std::string& name, const torch::Tensor& tensor) {
    const torch::Tensor flat = tensor.contiguous();
    std::ofstream(folder_ + name, std::ios::binary)
        .write(static_cast<const char*>(flat.data_ptr()),
               static_cast<std::streamsize>(flat.nbytes()));
    return folder_ + name;
  };
  const std::string inputs = write("/inputs", batch.inputs),
                    labels = write("/labels", batch.labels);
  Subprocess python({kPython, "-c", kScript, path, inputs, labels});
  ASSERT_EQ(python.Wait(), 0) << python.err();
  std::istringstream out(python.out());
  double right = -1, of = -1;
  out >> right >> of;
  EXPECT_NEAR(right, correct, 1e-6);
  EXPECT_EQ(of, all.size());
  for (int64_t i = 0; i < 10; ++i) {
    double logit = 0;
    out >> logit;
    EXPECT_NEAR(logit, logits[0][i].item<double>(), 1e-4) << i;
  }
  std::string same, foreign;
  out >> same >> foreign;
  EXPECT_EQ(same, "True");  // torch.load() gives the same tensors
  EXPECT_EQ(foreign, "");   // nothing is pickled but tensors and containers
}

}  // namespace
}  // namespace syncopate::testing
