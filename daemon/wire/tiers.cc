#include "wire/tiers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::wire {
namespace {

constexpr std::string_view kForever = "forever";

Status check_tier(const Tier& tier, const Tier* before, const Tier& first) {
  const std::string every = format_duration(tier.every_ns);
  if (tier.every_ns <= 0 || tier.every_ns % kTierEveryMinNs != 0)
    return invalid_argument("windows of a tier are whole seconds, not " + every);
  if (before == nullptr) return ok();
  if (tier.every_ns <= before->every_ns || tier.every_ns % before->every_ns != 0) {
    return invalid_argument("windows of " + every +
                            " are no multiple of those of the tier before, " +
                            format_duration(before->every_ns));
  }
  if (tier.every_ns / first.every_ns > kTierRatioMax) {
    return invalid_argument("a window of " + every + " would hold more than " +
                            std::to_string(kTierRatioMax) +
                            " of the first tier's: use a tier in "
                            "between as the first one");
  }
  return ok();
}

}  // namespace

Result<std::int64_t> parse_keep_ns(std::string_view text) {
  if (text == kForever) return kRetentionForever;
  const Result<std::int64_t> keep_ns = parse_duration_ns(text);
  if (!keep_ns.ok() || *keep_ns == 0) {
    return invalid_argument("\"" + std::string(text) +
                            "\" is not a duration, use 30d, 12h, 90m or forever");
  }
  return keep_ns;
}

Result<Tier> parse_tier(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return invalid_argument("\"" + std::string(text) +
                            "\" is no tier, use how long a window is and how long it is kept: "
                            "1m:90d, 1h:forever");
  }
  EC_ASSIGN_OR_RETURN(const std::int64_t every_ns, parse_duration_ns(text.substr(0, colon)));
  EC_ASSIGN_OR_RETURN(const std::int64_t keep_ns, parse_keep_ns(text.substr(colon + 1)));
  return Tier{every_ns, keep_ns};
}

Result<std::vector<Tier>> parse_tiers(std::string_view text) {
  std::vector<Tier> tiers;
  if (text.empty()) return tiers;
  while (tiers.size() <= kTiersMax) {  // check_keeping() says that there are too many
    const std::size_t end = text.find(',');
    EC_ASSIGN_OR_RETURN(const Tier tier, parse_tier(text.substr(0, end)));
    tiers.push_back(tier);
    if (end == std::string_view::npos) break;
    text = text.substr(end + 1);
  }
  return tiers;
}

Result<Keeping> parse_keeping(std::string_view text) {
  constexpr std::string_view kThen = " then ";
  Keeping keeping;
  std::size_t end = text.find(kThen);
  EC_ASSIGN_OR_RETURN(keeping.raw_ns, parse_keep_ns(text.substr(0, end)));
  while (end != std::string_view::npos && keeping.tiers.size() <= kTiersMax) {
    text = text.substr(end + kThen.size());
    end = text.find(kThen);
    EC_ASSIGN_OR_RETURN(const Tier tier, parse_tier(text.substr(0, end)));
    keeping.tiers.push_back(tier);
  }
  EC_TRY(check_keeping(keeping));
  return keeping;
}

Status check_keeping(const Keeping& keeping) {
  if (keeping.raw_ns <= 0) return invalid_argument("a retention of nothing erases what comes");
  if (keeping.tiers.size() > kTiersMax)
    return invalid_argument("a rule has " + std::to_string(kTiersMax) + " tiers at most");
  std::int64_t kept_ns = keeping.raw_ns;
  const Tier* before = nullptr;
  for (const Tier& tier : keeping.tiers) {
    if (kept_ns == kRetentionForever)
      return invalid_argument("what is kept forever never becomes a tier");
    EC_TRY(check_tier(tier, before, keeping.tiers.front()));
    if (tier.keep_ns <= kept_ns) {
      return invalid_argument("the tier " + tier_text(tier) +
                              " is not kept longer than what comes before it, " +
                              keep_text(kept_ns));
    }
    kept_ns = tier.keep_ns;
    before = &tier;
  }
  return ok();
}

std::string keep_text(std::int64_t keep_ns) {
  return keep_ns == kRetentionForever ? std::string(kForever) : format_duration(keep_ns);
}

std::string tier_text(const Tier& tier) {
  return format_duration(tier.every_ns) + ":" + keep_text(tier.keep_ns);
}

std::string tiers_text(const std::vector<Tier>& tiers) {
  std::string text;
  for (const Tier& tier : tiers) {
    if (!text.empty()) text += ',';
    text += tier_text(tier);
  }
  return text;
}

std::string keeping_text(const Keeping& keeping) {
  std::string text = keep_text(keeping.raw_ns);
  for (const Tier& tier : keeping.tiers) text += " then " + tier_text(tier);
  return text;
}

namespace {

// A mean that was printed and read is the same to this part.
constexpr long double kMeanError = 1e-12L;

// Wide enough for every int64 and every double.
long double wide(const Value& value) {
  if (value.type == ValueType::Float64) return value.float64;
  return value.type == ValueType::Bool ? (value.boolean ? 1 : 0) : value.int64;
}

void append_whole(std::int64_t number, std::string& out) {
  std::array<char, 24> text;
  out.append(text.data(), write_int(number, text.data()));
}

// A float that is whole has a point, which an int has not.
void append_exactly(const Value& value, std::string& out) {
  if (value.type == ValueType::Int64) return append_whole(value.int64, out);
  if (value.type == ValueType::Bool) {
    out += value.boolean ? "true" : "false";
    return;
  }
  const std::size_t begin = out.size();
  append_double(value.float64, out);
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

Status wrong(std::string_view name, const char* what) {
  return invalid_argument("\"" + std::string(name) + "\" " + what);
}

}  // namespace

std::optional<Value> value_of(const Window& window, WindowColumn column) {
  switch (column) {
    case WindowColumn::Count: return Value::of_int64(static_cast<std::int64_t>(window.count));
    case WindowColumn::Min: return window.min;
    case WindowColumn::Max: return window.max;
    case WindowColumn::Sum: return window.sum;
    case WindowColumn::Mean:
      if (!window.sum || window.numbers == 0) return std::nullopt;
      return Value::of_float64(static_cast<double>(wide(*window.sum)) /
                               static_cast<double>(window.numbers));
    case WindowColumn::First: return window.first;
    case WindowColumn::Last: return window.last;
  }
  return std::nullopt;
}

void append_json_columns(const Window& window, std::string_view field, std::string& out) {
  const auto append = [&](std::string_view suffix, const Value& value) {
    out += ',';
    append_json_string(std::string(field).append(suffix), out);
    out += ':';
    append_exactly(value, out);
  };
  for (const WindowColumn column : kWindowColumns) {
    if (const auto value = value_of(window, column)) append(column_suffix(column), *value);
  }
  if (window.numbers != window.count)
    append(kNumbersSuffix, Value::of_int64(static_cast<std::int64_t>(window.numbers)));
}

void append_csv_columns(const Window& window, std::string& out) {
  out.append(",").append(format_duration(window.every_ns));
  for (const WindowColumn column : kWindowColumns) {
    out += ',';
    if (const auto value = value_of(window, column)) append_exactly(*value, out);
  }
  out += ',';
  if (window.numbers != window.count) append_whole(static_cast<std::int64_t>(window.numbers), out);
}

void append_line_columns(const Window& window, std::string_view line_field, std::string& out) {
  const char* between = "";
  const auto append = [&](std::string_view suffix, const Value& value) {
    out.append(std::exchange(between, ",")).append(line_field).append(suffix) += '=';
    append_exactly(value, out);
    if (value.type == ValueType::Int64) out += 'i';
  };
  for (const WindowColumn column : kWindowColumns) {
    if (const auto value = value_of(window, column)) append(column_suffix(column), *value);
  }
  if (window.numbers != window.count)
    append(kNumbersSuffix, Value::of_int64(static_cast<std::int64_t>(window.numbers)));
}

std::string_view field_of_column(std::string_view name) {
  if (const auto column = parse_column_name(name)) return column->field;
  const bool is_numbers = name.size() > kNumbersSuffix.size() && name.ends_with(kNumbersSuffix);
  return is_numbers ? name.substr(0, name.size() - kNumbersSuffix.size()) : std::string_view();
}

Status WindowMaker::take(std::string_view name, const Value& value) {
  const auto column = parse_column_name(name);
  std::optional<Value>& place =
      taken_[column ? static_cast<std::size_t>(column->column) : kNumbers];
  if (place) return wrong(name, "comes twice");
  const bool counts = !column || column->column == WindowColumn::Count;
  if (counts && value.type != ValueType::Int64) return wrong(name, "is no whole number");
  if (counts && value.int64 < 0) return wrong(name, "is negative");
  if (!is_plain(value.type)) return wrong(name, "is no number");
  const bool is_finite = value.type != ValueType::Float64 || std::isfinite(value.float64);
  if (!is_finite) return wrong(name, "is no finite number");
  place = value;
  return ok();
}

Result<Window> WindowMaker::make(std::int64_t begin_ns, std::int64_t every_ns) const {
  if (begin_ns % every_ns != 0) {
    std::string text = "no window of " + format_duration(every_ns) + " begins at ";
    append_time(begin_ns, text);
    return invalid_argument(text);
  }
  std::int64_t last_ns = 0;
  if (__builtin_add_overflow(begin_ns, every_ns - 1, &last_ns))
    return invalid_argument("the window ends outside what 64-bit nanoseconds can hold");
  if (!taken(WindowColumn::Count)) return invalid_argument("the window's count is missing");
  Window window{.begin_ns = begin_ns, .every_ns = every_ns};
  window.count = static_cast<std::uint64_t>(taken(WindowColumn::Count)->int64);
  window.numbers =
      taken_[kNumbers] ? static_cast<std::uint64_t>(taken_[kNumbers]->int64) : window.count;
  window.min = taken(WindowColumn::Min);
  window.max = taken(WindowColumn::Max);
  window.sum = taken(WindowColumn::Sum);
  window.first = taken(WindowColumn::First);
  window.last = taken(WindowColumn::Last);
  EC_TRY(check(window));
  return window;
}

// Whether there can be readings of which this is known.
Status WindowMaker::check(const Window& window) const {
  if (window.count == 0) return invalid_argument("a window without readings is none");
  if (window.numbers > window.count)
    return invalid_argument("the window has more numbers than readings");
  const bool has_numbers = window.min && window.max && window.sum;
  const bool has_any = window.min || window.max || window.sum || window.first || window.last ||
                       taken(WindowColumn::Mean);
  if (window.numbers > 0 ? !has_numbers : has_any) {
    return invalid_argument(window.numbers > 0 ? "the window's min, max or sum is missing"
                                               : "a window without numbers has none of them");
  }
  if (window.numbers == 0) return ok();
  const auto is_within = [&](const std::optional<Value>& value) {
    return !value || (wide(*window.min) <= wide(*value) && wide(*value) <= wide(*window.max));
  };
  if (wide(*window.min) > wide(*window.max))
    return invalid_argument("the window's min is over its max");
  if (!is_within(window.first) || !is_within(window.last))
    return invalid_argument("the window's first or last is beyond its min and max");
  if (window.numbers == window.count && (!window.first || !window.last))
    return invalid_argument("the window's first or last is missing");
  const auto mean = taken(WindowColumn::Mean);
  if (!mean) return ok();
  const long double made = wide(*value_of(window, WindowColumn::Mean));
  if (std::fabs(wide(*mean) - made) > kMeanError * std::max(std::fabs(made), 1e-290L))
    return invalid_argument("the window's mean is not its sum by its numbers");
  return ok();
}

}  // namespace edgecase::wire
