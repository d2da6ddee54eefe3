#include "train/data/package.h"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace syncopate::train {

namespace {

constexpr size_t kBlock = 512;  // tar's
using Block = std::array<char, kBlock>;

// Reads the unpacked bytes of a gzip file.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : file_(gzopen(path.c_str(), "rbe")) {
    if (file_ != nullptr) gzbuffer(file_, 1 << 18);
  }
  GzipFile(const GzipFile&) = delete;
  ~GzipFile() {
    if (file_ != nullptr) gzclose(file_);
  }
  bool ok() const { return file_ != nullptr; }

  absl::Status Read(char* out, uint64_t bytes) {
    while (bytes > 0) {
      const auto part = static_cast<unsigned>(std::min<uint64_t>(bytes, 1 << 20));
      const int got = gzread(file_, out, part);
      if (got <= 0) {
        int error = Z_OK;
        const char* text = gzerror(file_, &error);
        return absl::DataLossError(
            absl::StrCat("damaged: ", error == Z_OK ? "it ends too early" : text));
      }
      out += got;
      bytes -= static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }
  absl::Status Skip(uint64_t bytes) {
    std::vector<char> unused(1 << 16);
    while (bytes > 0) {
      const uint64_t part = std::min<uint64_t>(bytes, unused.size());
      SYNCOPATE_RETURN_IF_ERROR(Read(unused.data(), part));
      bytes -= part;
    }
    return absl::OkStatus();
  }

 private:
  gzFile file_;
};

// A field of a tar header up to its first zero.
absl::string_view Field(const Block& block, size_t at, size_t bytes) {
  const absl::string_view field(block.data() + at, bytes);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

absl::StatusOr<uint64_t> Octal(absl::string_view field) {
  uint64_t value = 0;
  for (const char c : absl::StripSuffix(field, " ")) {
    if (c < '0' || c > '7' || value >= (uint64_t{1} << 60)) {
      return absl::DataLossError("damaged: a header with a number that is none");
    }
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

// The sum of a header's bytes, with the field of the sum itself as spaces.
uint64_t ChecksumOf(const Block& block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

struct Header {
  std::string name;
  uint64_t bytes = 0;
  char type = '0';
};

absl::StatusOr<Header> ParseHeader(const Block& block) {
  SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t sum, Octal(Field(block, 148, 8)));
  if (sum != ChecksumOf(block)) return absl::DataLossError("damaged: a header with a wrong sum");
  Header header;
  SYNCOPATE_ASSIGN_OR_RETURN(header.bytes, Octal(Field(block, 124, 12)));
  const absl::string_view prefix = Field(block, 345, 155);
  header.name = absl::StrCat(prefix, prefix.empty() ? "" : "/", Field(block, 0, 100));
  header.type = block[156];
  return header;
}

absl::StatusOr<PackageFiles> Unpack(GzipFile& archive,
                                    const std::function<bool(absl::string_view)>& wanted) {
  PackageFiles files;
  uint64_t total = 0;
  Block block;
  for (int count = 0;; ++count) {
    SYNCOPATE_RETURN_IF_ERROR(archive.Read(block.data(), kBlock));
    if (std::all_of(block.begin(), block.end(), [](char c) { return c == 0; })) return files;
    if (count == kPackageFilesMax) {
      return absl::DataLossError(absl::StrCat("has more than ", kPackageFilesMax, " files"));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const Header header, ParseHeader(block));
    const uint64_t padded = (header.bytes + kBlock - 1) / kBlock * kBlock;
    absl::string_view name = header.name;
    const bool file = header.type == '0' || header.type == '\0';
    if (!file || !absl::ConsumePrefix(&name, "package/") || !wanted(name)) {
      if (padded > kPackageBytesMax) return absl::DataLossError("damaged: a file without end");
      SYNCOPATE_RETURN_IF_ERROR(archive.Skip(padded));
      continue;
    }
    total += header.bytes;
    if (header.bytes > kPackageFileBytesMax || total > kPackageBytesMax) {
      return absl::DataLossError(absl::StrCat(name, " is larger than expected"));
    }
    std::string contents(header.bytes, '\0');
    SYNCOPATE_RETURN_IF_ERROR(archive.Read(contents.data(), header.bytes));
    SYNCOPATE_RETURN_IF_ERROR(archive.Skip(padded - header.bytes));
    files[std::string(name)] = std::move(contents);
  }
}

}  // namespace

absl::StatusOr<PackageFiles> ReadPackage(const std::string& path,
                                         const std::function<bool(absl::string_view)>& wanted) {
  GzipFile archive(path);
  if (!archive.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  auto files = Unpack(archive, wanted);
  if (!files.ok()) return At(path, files.status());
  return files;
}

absl::StatusOr<absl::string_view> FileOf(const PackageFiles& files, const std::string& name) {
  const auto found = files.find(name);
  if (found == files.end()) {
    return absl::DataLossError(absl::StrCat("the package has no file ", name));
  }
  return found->second;
}

absl::StatusOr<std::string> Sha512OfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  if (!file || context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha512(), nullptr) != 1) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::vector<char> part(1 << 20);
  do {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    EVP_DigestUpdate(context.get(), part.data(), static_cast<size_t>(file.gcount()));
  } while (file);
  if (!file.eof()) return absl::UnavailableError(absl::StrCat("cannot read all of ", path));
  std::string digest(64, '\0');
  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return absl::BytesToHexString(digest);
}

}  // namespace syncopate::train
