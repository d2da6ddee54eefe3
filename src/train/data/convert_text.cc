// Converts texts to our format, character by character.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "train/data/convert.h"

namespace syncopate::train {

std::string PlainText(absl::string_view utf8) {
  std::string text = absl::StrReplaceAll(utf8, {{"\u2018", "'"},
                                                {"\u2019", "'"},
                                                {"\u201c", "\""},
                                                {"\u201d", "\""},
                                                {"\u2013", "-"},
                                                {"\u2014", "-"},
                                                {"\u00e6", "ae"},
                                                {"\u00e9", "e"},
                                                {"\u00e8", "e"},
                                                {"\u00a0", " "},
                                                {"\r", ""},
                                                {"\t", " "}});
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](char c) { return c != '\n' && !absl::ascii_isprint(c); }),
             text.end());
  return text;
}

absl::StatusOr<Dataset> MakeTextDataset(absl::string_view name, absl::string_view text,
                                        int64_t length) {
  DatasetBytes bytes;
  bytes.info.name = std::string(name);
  bytes.info.sample_shape = {length};
  bytes.info.labels_per_sample = length;
  std::array<uint8_t, 256> class_of{};
  for (int c = 0; c < 256; ++c) {
    if (text.find(static_cast<char>(c)) == absl::string_view::npos) continue;
    class_of[c] = static_cast<uint8_t>(bytes.info.alphabet.size());
    bytes.info.alphabet.push_back(static_cast<char>(c));
  }
  bytes.info.classes = static_cast<int>(bytes.info.alphabet.size());
  // The last label of a sample is the first character of the next.
  const int64_t samples = text.empty() ? 0 : (static_cast<int64_t>(text.size()) - 1) / length;
  const int64_t train = samples - samples / 10;
  for (int64_t i = 0; i < samples * length; ++i) {
    const bool to_train = i < train * length;
    const auto at = static_cast<size_t>(i);
    (to_train ? bytes.train_inputs : bytes.test_inputs)
        .push_back(class_of[static_cast<unsigned char>(text[at])]);
    (to_train ? bytes.train_labels : bytes.test_labels)
        .push_back(class_of[static_cast<unsigned char>(text[at + 1])]);
  }
  return MakeDataset(std::move(bytes));
}

absl::StatusOr<Dataset> ConvertMobyDick(const PackageFiles& files, int chapters) {
  std::string text;
  for (int chapter = 1; chapter <= chapters; ++chapter) {
    const std::string name = absl::StrCat("data/chapter_", chapter, ".json");
    SYNCOPATE_ASSIGN_OR_RETURN(const absl::string_view file, FileOf(files, name));
    const auto json = nlohmann::json::parse(file.begin(), file.end(), nullptr, false);
    if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) {
      return absl::DataLossError(absl::StrCat(name, ": expected {\"text\": ...}"));
    }
    absl::StrAppend(&text, PlainText(json["text"].get_ref<const std::string&>()), "\n\n");
  }
  auto dataset = MakeTextDataset("text", text, kTextLength);
  if (!dataset.ok()) return absl::DataLossError(dataset.status().message());
  return dataset;
}

}  // namespace syncopate::train
