// BERT-Base (architectures.h): 12 encoder layers between the embeddings and the two heads of
// pre-training.
#include "absl/strings/str_cat.h"
#include "schedule/models/architectures.h"

namespace syncopate::schedule {
namespace {

constexpr int kFeatures = 768;
constexpr int kInner = 3072;  // the features inside the feed-forward network
constexpr int kLayers = 12;
constexpr int kWords = 30522;    // of the vocabulary
constexpr int kPositions = 512;  // the longest sequence

// Self-attention and a feed-forward network, each with an addition of its input and a normalization
// after it.
Shape AddLayer(const std::string& name, const Shape& in, ModelBuilder& model) {
  for (const char* part : {"query", "key", "value"}) {
    model.Linear(absl::StrCat(name, ".attention.self.", part), in, kFeatures);
  }
  // Each token with each, twice: the scores, and the values weighted by them.
  const double pairs = 1.0 * in.height * in.height;
  model.Work({2 * 2 * pairs * kFeatures, 0});
  Shape x = model.Linear(absl::StrCat(name, ".attention.output.dense"), in, kFeatures);
  model.Elementwise(x, 2);
  x = model.Normalization(absl::StrCat(name, ".attention.output.LayerNorm"), x);
  Shape y = model.Linear(absl::StrCat(name, ".intermediate.dense"), x, kInner);
  model.Elementwise(y);
  y = model.Linear(absl::StrCat(name, ".output.dense"), y, kFeatures);
  model.Elementwise(y, 2);
  return model.Normalization(absl::StrCat(name, ".output.LayerNorm"), y);
}

}  // namespace

void AddBertBase(int tokens, ModelBuilder& model) {
  model.Embedding("bert.embeddings.word_embeddings", kWords, kFeatures, tokens);
  model.Embedding("bert.embeddings.position_embeddings", kPositions, kFeatures, tokens);
  Shape x = model.Embedding("bert.embeddings.token_type_embeddings", 2, kFeatures, tokens);
  model.Elementwise(x, 3);
  x = model.Normalization("bert.embeddings.LayerNorm", x);
  for (int i = 0; i < kLayers; ++i) {
    x = AddLayer(absl::StrCat("bert.encoder.layer.", i), x, model);
  }
  // Only the first token of a sequence is pooled, for the head that tells whether one sequence
  // follows another.
  const Shape first{kFeatures, 1, 1};
  model.Linear("bert.pooler.dense", first, kFeatures);
  x = model.Linear("cls.predictions.transform.dense", x, kFeatures);
  model.Elementwise(x);
  x = model.Normalization("cls.predictions.transform.LayerNorm", x);
  // Decoded by the word embedding, whose gradient is complete only at the end of the backward pass.
  model.Tensor("cls.predictions.bias", kWords,
               {2.0 * kWords * kFeatures * tokens, 4.0 * 3 * kWords * tokens});
  model.Linear("cls.seq_relationship", first, 2);
}

}  // namespace syncopate::schedule
