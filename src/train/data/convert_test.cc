#include "train/data/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "train/data/package_testing.h"
#include "train/data/png.h"

namespace syncopate::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Png(uint32_t width, uint32_t height, const std::vector<uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  png_image_write_to_memory(&image, nullptr, &bytes, 0, pixels.data(), 0, nullptr);
  std::string out(bytes, '\0');
  png_image_write_to_memory(&image, out.data(), &bytes, 0, pixels.data(), 0, nullptr);
  out.resize(bytes);
  return out;
}

TEST(ConvertTest, MnistFromIdxFiles) {
  const auto mnist = ConvertMnist(testing::SmallMnist(), {2, 1});
  ASSERT_TRUE(mnist.ok()) << mnist.status();
  EXPECT_THAT(mnist->info.sample_shape, ElementsAre(1, 28, 28));
  EXPECT_THAT(mnist->train.labels, ElementsAre(1, 2));
  EXPECT_THAT(mnist->test.labels, ElementsAre(9));
  EXPECT_EQ(mnist->train.inputs[0], 0);
  EXPECT_EQ(mnist->train.inputs[784], 0x40);
  EXPECT_FLOAT_EQ(mnist->info.mean[0], 32.0f / 255);
  EXPECT_FLOAT_EQ(mnist->info.deviation[0], 32.0f / 255);
}

TEST(ConvertTest, DamagedIdxFilesAreNamed) {
  const std::string name = "data/train-images-idx3-ubyte";
  for (const std::string& contents :
       {std::string(), std::string("\0\0\x08", 3), testing::Idx({2, 28, 27}, ""),
        testing::Idx({2, 28, 28}, "too short"), testing::Idx({2}, "xx")}) {
    PackageFiles files = testing::SmallMnist();
    files[name] = contents;
    const auto mnist = ConvertMnist(files, {2, 1});
    EXPECT_EQ(mnist.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(mnist.status().message(), HasSubstr(name));
  }
  PackageFiles files = testing::SmallMnist();
  files.erase(name);
  EXPECT_THAT(ConvertMnist(files, {2, 1}).status().message(), HasSubstr(name));
}

TEST(ConvertTest, LabelsBeyondTheClassesAreRefused) {
  PackageFiles files = testing::SmallMnist();
  files["data/t10k-labels-idx1-ubyte"] = testing::Idx({1}, "\x0a");
  EXPECT_EQ(ConvertMnist(files, {2, 1}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(ConvertTest, FashionMnistSkipsEmptyImages) {
  PackageFiles files;
  for (int label = 0; label < 10; ++label) {
    const std::string image =
        absl::StrCat("[", absl::StrJoin(std::vector<int>(784, label + 100), ","), "]");
    files[absl::StrCat("src/clothes/", label, ".json")] =
        absl::StrCat("{\"data\":[", image, ",[],", image, ",[]]}");
  }
  const auto fashion = ConvertFashionMnist(files, {10, 10});
  ASSERT_TRUE(fashion.ok()) << fashion.status();
  EXPECT_THAT(fashion->train.labels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(fashion->train.labels, fashion->test.labels);
  EXPECT_EQ(fashion->test.inputs[3 * 784 + 5], 103);

  files["src/clothes/4.json"] = "{\"data\":[[1,2,3]]}";
  EXPECT_THAT(ConvertFashionMnist(files, {10, 10}).status().message(),
              AllOf(HasSubstr("4.json"), HasSubstr("3 pixels")));
  files["src/clothes/4.json"] = "{\"data\":[[1,2";
  EXPECT_THAT(ConvertFashionMnist(files, {10, 10}).status().message(), HasSubstr("4.json"));
}

TEST(ConvertTest, RowsRefuseWhatIsNoSmallNumber) {
  for (const char* text :
       {"[256]", "[-1]", "[1.5]", "[\"a\"]", "[null]", "[true]", "", "[1", "[1]]", "[1,2,3,4]"}) {
    EXPECT_FALSE(ParseByteRows(text, 3).ok()) << text;
  }
  const auto rows = ParseByteRows("{\"data\":[[1,2],[],[3]]}", 3);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->values, ElementsAre(1, 2, 3));
  EXPECT_THAT(rows->lengths, ElementsAre(2, 0, 1));
}

TEST(ConvertTest, CifarBecomesPlanes) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 1024; ++i) pixels.insert(pixels.end(), {10, 20, static_cast<uint8_t>(i)});
  PackageFiles files{{"train_lables.json", "[0,1,2,3,4]"}, {"test_lables.json", "[5]"}};
  for (int batch = 1; batch <= 5; ++batch) {
    files[absl::StrCat("data_batch_", batch, ".png")] = Png(1024, 1, pixels);
  }
  files["test_batch.png"] = Png(1024, 1, pixels);
  const auto cifar = ConvertCifar10(files, {5, 1});
  ASSERT_TRUE(cifar.ok()) << cifar.status();
  EXPECT_THAT(cifar->train.labels, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(cifar->test.inputs[1023], 10);
  EXPECT_EQ(cifar->test.inputs[1024], 20);
  EXPECT_EQ(cifar->test.inputs[2048 + 77], 77);

  files["data_batch_3.png"] = Png(512, 2, pixels);
  EXPECT_THAT(ConvertCifar10(files, {5, 1}).status().message(),
              AllOf(HasSubstr("data_batch_3.png"), HasSubstr("512 x 2")));
}

TEST(ConvertTest, DamagedPngIsAnError) {
  const std::string png = Png(16, 16, std::vector<uint8_t>(16 * 16 * 3, 7));
  ASSERT_TRUE(DecodePng(png, 16, 16).ok());
  for (size_t bytes = 0; bytes + 16 < png.size(); bytes += 5) {
    EXPECT_EQ(DecodePng(png.substr(0, bytes), 16, 16).status().code(), absl::StatusCode::kDataLoss)
        << bytes;
  }
}

TEST(ConvertTest, TextBecomesWindowsAndWhatFollows) {
  std::string text;
  for (int i = 0; i < 41; ++i) text += "abcd"[i % 4];
  const auto dataset = MakeTextDataset("text", text, 4);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->info.alphabet, "abcd");
  EXPECT_EQ(dataset->train.samples, 9);
  EXPECT_EQ(dataset->test.samples, 1);
  EXPECT_THAT(dataset->test.inputs, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(dataset->test.labels, ElementsAre(1, 2, 3, 0));
}

TEST(ConvertTest, PlainTextKeepsWhatIsTyped) {
  EXPECT_EQ(PlainText("\u201cI\u2019m\u201d \u2014 \u00e6on\u20ac\t.\r\n"), "\"I'm\" - aeon .\n");
}

TEST(ConvertTest, MobyDickNeedsAllChapters) {
  PackageFiles files{{"data/chapter_1.json", "{\"text\":\"" + std::string(400, 'a') + " b\"}"}};
  ASSERT_TRUE(ConvertMobyDick(files, 1).ok());
  EXPECT_THAT(ConvertMobyDick(files, 2).status().message(), HasSubstr("chapter_2"));
  files["data/chapter_2.json"] = "{\"text\":3}";
  EXPECT_THAT(ConvertMobyDick(files, 2).status().message(), HasSubstr("chapter_2"));
}

}  // namespace
}  // namespace syncopate::train
