// Makes small npm packages for tests.
#ifndef SYNCOPATE_TRAIN_DATA_PACKAGE_TESTING_H_
#define SYNCOPATE_TRAIN_DATA_PACKAGE_TESTING_H_

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "train/data/package.h"

namespace syncopate::train::testing {

// A tar archive with the files below "package/".
inline std::string Tar(const PackageFiles& files) {
  std::string out;
  for (const auto& [name, contents] : files) {
    std::string head(512, '\0');
    const auto put = [&](size_t at, const std::string& text) {
      head.replace(at, text.size(), text);
    };
    put(0, "package/" + name);
    put(124, absl::StrFormat("%011o", contents.size()));
    put(148, "        ");
    put(156, "0");
    uint64_t sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    put(148, absl::StrFormat("%06o", sum) + std::string(1, '\0'));
    out += head + contents + std::string((512 - contents.size() % 512) % 512, '\0');
  }
  return out + std::string(1024, '\0');
}

inline void WriteGzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

// An idx file of bytes.
inline std::string Idx(const std::vector<uint32_t>& extents, const std::string& values) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(extent >> shift));
  }
  return out + values;
}

// Two images to train on and one to test with.
inline PackageFiles SmallMnist() {
  return {{"data/train-images-idx3-ubyte",
           Idx({2, 28, 28}, std::string(784, '\x00') + std::string(784, '\x40'))},
          {"data/train-labels-idx1-ubyte", Idx({2}, "\x01\x02")},
          {"data/t10k-images-idx3-ubyte", Idx({1, 28, 28}, std::string(784, '\x07'))},
          {"data/t10k-labels-idx1-ubyte", Idx({1}, "\x09")}};
}

}  // namespace syncopate::train::testing

#endif  // SYNCOPATE_TRAIN_DATA_PACKAGE_TESTING_H_
