// Says how long readings are kept, and as what: as they came for a time, then as windows in tiers,
// each coarser and kept longer than the one before. As people write it (Keeping): `7d then 1m:90d
// then 1h:forever`. What a window tells of its readings (Window), and how that is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/options.h"
#include "edgecase/status.h"
#include "wire/decimal.h"
#include "wire/reading.h"

namespace edgecase::wire {

inline constexpr std::size_t kTiersMax = 4;
inline constexpr std::int64_t kTierEveryMinNs = 1'000'000'000;  // and whole ones of it
// Windows of the first tier in one of the last: all of these become durable at once.
inline constexpr std::int64_t kTierRatioMax = 10'080;

struct Keeping {
  std::int64_t raw_ns = kRetentionForever;
  std::vector<Tier> tiers = {};  // the finest first

  friend bool operator==(const Keeping&, const Keeping&) = default;
};

// "30d" or "forever". InvalidArgument: neither, or nothing at all.
Result<std::int64_t> parse_keep_ns(std::string_view text);
// "1m:90d".
Result<Tier> parse_tier(std::string_view text);
// "1m:90d,1h:forever": as a parameter of HTTP has them; "": none.
Result<std::vector<Tier>> parse_tiers(std::string_view text);
// "7d then 1m:90d then 1h:forever": as a setting has it. Checked.
Result<Keeping> parse_keeping(std::string_view text);

// InvalidArgument: tiers behind `forever`; too many; an `every` that is no whole seconds, or no
// multiple of the one before; a tier that is not kept longer than what comes before it.
Status check_keeping(const Keeping& keeping);

// "30d", or "forever".
std::string keep_text(std::int64_t keep_ns);
std::string tier_text(const Tier& tier);                 // "1m:90d"
std::string tiers_text(const std::vector<Tier>& tiers);  // "1m:90d,1h:forever"
std::string keeping_text(const Keeping& keeping);        // "7d then 1m:90d then 1h:forever"

// Columns of a window of readings, and their names: `temp_count`, `temp_min` and so on. Tiers of
// retention keep windows so, forwarding sends them so, and exports have them so:
//
//   ndjson  {...,"time":"...","window":"1m","FIELD_count":6,"FIELD_min":1,...}, where floats have a
//           point or an exponent, and whole numbers neither
//   csv     the columns of kCsvWindowColumns behind those of readings, empty for readings
//   line    FIELD_count=6i,FIELD_min=1i,... below `# CONTEXT-WINDOW: 1m`
//
// FIELD is the field of the series' identity, mostly `value`. FIELD_numbers is there where some of
// the readings were text or bytes: these are counted, no more.

enum class WindowColumn : std::uint8_t { Count, Min, Max, Sum, Mean, First, Last };

inline constexpr std::array kWindowColumns = {
    WindowColumn::Count, WindowColumn::Min,   WindowColumn::Max, WindowColumn::Sum,
    WindowColumn::Mean,  WindowColumn::First, WindowColumn::Last};
inline constexpr std::string_view kNumbersSuffix = "_numbers";
inline constexpr std::string_view kCsvWindowColumns =
    ",window,count,min,max,sum,mean,first,last,numbers";

// "_count": what follows the field's or the sensor's name.
constexpr std::string_view column_suffix(WindowColumn column) {
  constexpr std::array<std::string_view, kWindowColumns.size()> kSuffixes = {
      "_count", "_min", "_max", "_sum", "_mean", "_first", "_last"};
  return kSuffixes[static_cast<std::size_t>(column)];
}

inline std::string column_name(std::string_view field, WindowColumn column) {
  return std::string(field) + std::string(column_suffix(column));
}

// A column's name taken apart; the field is what it began with, and not empty.
struct ColumnName {
  std::string_view field;
  WindowColumn column = WindowColumn::Count;
};
inline std::optional<ColumnName> parse_column_name(std::string_view name) {
  for (const WindowColumn column : kWindowColumns) {
    const std::string_view suffix = column_suffix(column);
    if (name.size() > suffix.size() && name.ends_with(suffix))
      return ColumnName{name.substr(0, name.size() - suffix.size()), column};
  }
  return std::nullopt;
}

// What is known of the readings of one window.
struct Window {
  std::int64_t begin_ns = 0;
  std::uint64_t count = 0;    // readings
  std::uint64_t numbers = 0;  // of them: numbers and bools
  // Where there is a number; first and last only if it is one.
  std::optional<Value> min = {}, max = {}, sum = {}, first = {}, last = {};
  std::int64_t every_ns = 0;  // its length; 0: whoever has it knows

  friend bool operator==(const Window&, const Window&) = default;
};

// Nothing: the window has none.
std::optional<Value> value_of(const Window& window, WindowColumn column);

// The members of an object, the cells of a row, the fields of a line; each behind a comma, but for
// the first field.
void append_json_columns(const Window& window, std::string_view field, std::string& out);
void append_csv_columns(const Window& window, std::string& out);
void append_line_columns(const Window& window, std::string_view line_field, std::string& out);

// The field of a column's name, where it is one, FIELD_numbers too; else empty.
std::string_view field_of_column(std::string_view name);

// Takes a window's columns, as they come, and makes it of them. One thread.
class WindowMaker {
 public:
  void clear() { *this = {}; }
  // By its name, which field_of_column() has a field of. InvalidArgument: it comes twice, or is not
  // what such a column may be.
  Status take(std::string_view name, const Value& value);
  // InvalidArgument: what was taken is no window of such readings, or none of this length begins
  // then.
  Result<Window> make(std::int64_t begin_ns, std::int64_t every_ns) const;

 private:
  static constexpr std::size_t kNumbers = kWindowColumns.size();
  const std::optional<Value>& taken(WindowColumn column) const {
    return taken_[static_cast<std::size_t>(column)];
  }
  Status check(const Window& window) const;

  std::array<std::optional<Value>, kNumbers + 1> taken_;
};

}  // namespace edgecase::wire
