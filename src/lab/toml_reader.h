// Reads tables of a TOML file key by key: every fault names its place and what to write instead,
// and keys that nobody asked for are faults too.
#ifndef SYNCOPATE_LAB_TOML_READER_H_
#define SYNCOPATE_LAB_TOML_READER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The library's exceptions stay off; faults come back as values. So do its assertions: one of them is
// on what a file says ("[%]"), which the code behind it then refuses.
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_ENABLE_FORMATTERS 0
#include "toml++/toml.h"

namespace syncopate::lab {

// `place` stands before line and column.
absl::StatusOr<toml::table> ParseToml(absl::string_view text, absl::string_view place);

// Not thread-safe. The table must outlive it. The first fault is kept, later calls give defaults,
// so that a caller reads everything and asks once for the status.
class TableReader {
 public:
  // `what` is how the table is called in errors: "[[host]]".
  TableReader(const toml::table& table, absl::string_view place, absl::string_view what);

  bool Has(absl::string_view key);
  std::string Text(absl::string_view key, absl::string_view fallback);
  std::string NeededText(absl::string_view key, absl::string_view example);
  bool Flag(absl::string_view key);  // false if it is not there
  int64_t Int(absl::string_view key, int64_t fallback, int64_t lo, int64_t hi);
  double Number(absl::string_view key, double fallback, double lo, double hi);
  int64_t Rate(absl::string_view key, int64_t fallback);   // bit/s
  double Seconds(absl::string_view key, double fallback);  // "1ms"
  int64_t Bytes(absl::string_view key, int64_t fallback);  // "256KiB"
  std::vector<std::string> Texts(absl::string_view key, absl::string_view example);
  // The tables of [[key]]; none if there is no such key.
  std::vector<const toml::table*> Tables(absl::string_view key);
  const toml::table* Table(absl::string_view key);

  // Ends the reading: the first fault, or a key that was never asked for.
  absl::Status Finish();
  // A fault of this table's contents that the caller found, with its place.
  absl::Status Fault(absl::string_view message) const;

 private:
  const toml::node* Find(absl::string_view key);
  // What `parse` makes of the text of the key.
  template <typename Value>
  Value Parsed(absl::string_view key, Value fallback,
               absl::StatusOr<Value> (*parse)(absl::string_view));
  void Note(const toml::node& node, absl::string_view key, absl::string_view message);

  const toml::table& table_;
  const std::string place_;
  const std::string what_;
  std::set<std::string> asked_;
  absl::Status status_;
};

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_TOML_READER_H_
