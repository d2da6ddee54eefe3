// The archive of a package and the converters of what is in it: an answer or an error. The sums of
// the archive's headers are made right, or nothing would come past them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "memory_file.h"
#include "train/data/convert.h"
#include "train/data/package.h"
#include "train/data/png.h"

namespace {

constexpr size_t kBlock = 512;

void MendSums(std::string& archive) {
  for (size_t at = 0; at + kBlock <= archive.size();) {
    const auto begin = archive.begin() + static_cast<ptrdiff_t>(at);
    if (std::all_of(begin, begin + kBlock, [](char c) { return c == 0; })) return;
    archive.replace(at + 148, 8, 8, ' ');
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(archive[at + i]);
    archive.replace(at + 148, 7, absl::StrFormat("%06o", sum) + std::string(1, '\0'));
    const uint64_t bytes = std::strtoull(archive.substr(at + 124, 11).c_str(), nullptr, 8);
    if (bytes > archive.size()) return;
    at += kBlock + (bytes + kBlock - 1) / kBlock * kBlock;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    (void)train::DecodePng(bytes, 16, 4).ok();
    (void)train::ParseByteRows(bytes, 10'000).ok();
    (void)train::PlainText(bytes);
    return 0;
  }
  std::string archive(bytes);
  if (data[0] % 4 != 1) MendSums(archive);
  const MemoryFile file(archive);
  const auto files = train::ReadPackage(file.path(), [](absl::string_view) { return true; });
  if (!files.ok()) return 0;
  const train::ImageCounts counts = {.train = 2, .test = 1};
  for (const auto& dataset :
       {train::ConvertMnist(*files, counts), train::ConvertFashionMnist(*files, counts),
        train::ConvertCifar10(*files, counts), train::ConvertMobyDick(*files, 1)}) {
    if (dataset.ok() && !dataset->Validate().ok()) std::abort();
  }
  return 0;
}
