// Inception-v4 (architectures.h). The tensors of a block stand branch by branch.
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "schedule/models/architectures.h"

namespace syncopate::schedule {
namespace {

struct Unit {
  int channels = 0;
  Kernel kernel;
};

// A 7 x 7 convolution is split into one of 1 x 7 and one of 7 x 1, both padded to keep the size.
constexpr Kernel Flat(int width) { return {1, width, 1, 0, width / 2}; }
constexpr Kernel Tall(int height) { return {height, 1, 1, height / 2, 0}; }

// Convolution, normalization, activation.
Shape AddUnit(const std::string& name, const Shape& in, const Unit& unit, ModelBuilder& model) {
  Shape x = model.Convolution(absl::StrCat(name, ".conv"), in, unit.channels, unit.kernel);
  x = model.Normalization(absl::StrCat(name, ".bn"), x);
  model.Elementwise(x);
  return x;
}

// A block whose branches start from the same input and are put beside each other.
class Block {
 public:
  Block(std::string name, const Shape& in, ModelBuilder& model)
      : name_(std::move(name)), in_(in), model_(model) {}

  // One unit after the other. Returns the last one's shape, which joins the output unless it is
  // only on the way.
  Shape Branch(std::initializer_list<Unit> units) { return Join(Chain(in_, units)); }
  Shape Chain(Shape x, std::initializer_list<Unit> units) {
    for (const Unit& unit : units) {
      x = AddUnit(absl::StrCat(name_, ".", units_++), x, unit, model_);
    }
    return x;
  }
  Shape Join(const Shape& x) {
    out_ = {out_.channels + x.channels, x.height, x.width};
    return x;
  }
  void PooledBranch(int channels) {
    model_.Pool(in_, Same(3));
    Branch({{channels, Valid(1)}});
  }
  void JoinPool() { Join(model_.Pool(in_, Valid(3, 2))); }
  const Shape& out() const { return out_; }

 private:
  const std::string name_;
  const Shape in_;
  ModelBuilder& model_;
  int units_ = 0;
  Shape out_;
};

Shape AddStem(const Shape& image, ModelBuilder& model) {
  Shape x = AddUnit("features.0", image, {32, Valid(3, 2)}, model);
  x = AddUnit("features.1", x, {32, Valid(3)}, model);
  x = AddUnit("features.2", x, {64, Same(3)}, model);
  Block mixed_3a("features.3", x, model);
  mixed_3a.JoinPool();
  mixed_3a.Branch({{96, Valid(3, 2)}});
  Block mixed_4a("features.4", mixed_3a.out(), model);
  mixed_4a.Branch({{64, Valid(1)}, {96, Valid(3)}});
  mixed_4a.Branch({{64, Valid(1)}, {64, Flat(7)}, {64, Tall(7)}, {96, Valid(3)}});
  Block mixed_5a("features.5", mixed_4a.out(), model);
  mixed_5a.Branch({{192, Valid(3, 2)}});
  mixed_5a.JoinPool();
  return mixed_5a.out();
}

Shape AddBlockA(const std::string& name, const Shape& in, ModelBuilder& model) {
  Block block(name, in, model);
  block.Branch({{96, Valid(1)}});
  block.Branch({{64, Valid(1)}, {96, Same(3)}});
  block.Branch({{64, Valid(1)}, {96, Same(3)}, {96, Same(3)}});
  block.PooledBranch(96);
  return block.out();
}

Shape AddReductionA(const std::string& name, const Shape& in, ModelBuilder& model) {
  Block block(name, in, model);
  block.Branch({{384, Valid(3, 2)}});
  block.Branch({{192, Valid(1)}, {224, Same(3)}, {256, Valid(3, 2)}});
  block.JoinPool();
  return block.out();
}

Shape AddBlockB(const std::string& name, const Shape& in, ModelBuilder& model) {
  Block block(name, in, model);
  block.Branch({{384, Valid(1)}});
  block.Branch({{192, Valid(1)}, {224, Flat(7)}, {256, Tall(7)}});
  block.Branch({{192, Valid(1)}, {192, Tall(7)}, {224, Flat(7)}, {224, Tall(7)}, {256, Flat(7)}});
  block.PooledBranch(128);
  return block.out();
}

Shape AddReductionB(const std::string& name, const Shape& in, ModelBuilder& model) {
  Block block(name, in, model);
  block.Branch({{192, Valid(1)}, {192, Valid(3, 2)}});
  block.Branch({{256, Valid(1)}, {256, Flat(7)}, {320, Tall(7)}, {320, Valid(3, 2)}});
  block.JoinPool();
  return block.out();
}

// Two of its branches fork at their end, so they are chains of which both prongs join the output.
Shape AddBlockC(const std::string& name, const Shape& in, ModelBuilder& model) {
  Block block(name, in, model);
  block.Branch({{256, Valid(1)}});
  const Shape wide = block.Chain(in, {{384, Valid(1)}});
  block.Join(block.Chain(wide, {{256, Flat(3)}}));
  block.Join(block.Chain(wide, {{256, Tall(3)}}));
  const Shape deep = block.Chain(in, {{384, Valid(1)}, {448, Tall(3)}, {512, Flat(3)}});
  block.Join(block.Chain(deep, {{256, Flat(3)}}));
  block.Join(block.Chain(deep, {{256, Tall(3)}}));
  block.PooledBranch(256);
  return block.out();
}

}  // namespace

void AddInceptionV4(const Shape& image, ModelBuilder& model) {
  Shape x = AddStem(image, model);
  int index = 6;
  const auto name = [&] { return absl::StrCat("features.", index++); };
  for (int i = 0; i < 4; ++i) x = AddBlockA(name(), x, model);
  x = AddReductionA(name(), x, model);
  for (int i = 0; i < 7; ++i) x = AddBlockB(name(), x, model);
  x = AddReductionB(name(), x, model);
  for (int i = 0; i < 3; ++i) x = AddBlockC(name(), x, model);
  model.Linear("last_linear", model.PoolAll(x), 1000);
}

}  // namespace syncopate::schedule
