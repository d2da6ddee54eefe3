// An ordinary LibTorch loop, trained by several workers. The lines marked with (*) are all that it
// takes; without them it trains alone.
//
//   syncopate launch -n 2 -- ./torch_training
#include <torch/torch.h>

#include <cstdio>

#include "syncopate/torch.h"

absl::Status Run() {
  auto worker = syncopate::Worker::Start();  // (*) rank and size from the environment
  if (!worker.ok()) return worker.status();
  const int rank = (*worker)->rank();

  torch::nn::Sequential model(torch::nn::Linear(8, 64), torch::nn::Tanh(),
                              torch::nn::Linear(64, 1));
  // (*) All workers get rank 0's parameters, and from now on gradients travel during backward().
  auto parallel = syncopate::DataParallel::Make(**worker, *model);
  if (!parallel.ok()) return parallel.status();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  torch::manual_seed(rank);  // each worker has data of its own: a sine, to be found again
  double first_loss = 0, loss = 0;
  for (int step = 0; step < 200; ++step) {
    const torch::Tensor inputs = torch::rand({32, 8});
    const torch::Tensor targets = inputs.sum(1, /*keepdim=*/true).sin();
    optimizer.zero_grad();
    const torch::Tensor error = torch::mse_loss(model->forward(inputs), targets);
    error.backward();
    const absl::Status status = (*parallel)->Synchronize();  // (*) .grad() is the mean of all now
    if (!status.ok()) return status;                         // says whom to blame
    optimizer.step();
    loss = error.item<double>();
    if (step == 0) first_loss = loss;
  }

  double sum = 0;  // the same for all workers, as all their parameters are
  for (const torch::Tensor& parameter : model->parameters()) sum += parameter.sum().item<double>();
  std::printf("rank %d of %d: %s, the parameters add up to %.9g\n", rank, (*worker)->size(),
              loss < first_loss / 4 ? "the loss fell" : "the loss did not fall", sum);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
