#include "mended_line.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "import/importer.h"
#include "wire/names.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

// Formats have flags of their own elsewhere.
constexpr std::array<std::string_view, 5> kFormatFlags = {"--csv", "--ndjson", "--json", "--line",
                                                          "--table"};

// Dashes and quotes that a document made of those that were typed.
void mend_pasted(const Command&, TypedWords& words) {
  constexpr std::string_view kDashes[] = {"\u2014", "\u2013", "\u2212"};
  constexpr std::string_view kQuotes[] = {"\u2018", "\u2019", "\u201c", "\u201d"};
  for (std::string& word : words) {
    for (const std::string_view dash : kDashes) {
      if (!word.starts_with(dash)) continue;
      std::string_view rest = std::string_view(word).substr(dash.size());
      while (rest.starts_with('-') || rest.starts_with(dash))
        rest.remove_prefix(rest.starts_with('-') ? 1 : dash.size());
      word = (rest.size() == 1 ? "-" : "--") + std::string(rest);
    }
    const auto begins = std::find_if(std::begin(kQuotes), std::end(kQuotes),
                                     [&](std::string_view each) { return word.starts_with(each); });
    const auto ends = std::find_if(std::begin(kQuotes), std::end(kQuotes),
                                   [&](std::string_view each) { return word.ends_with(each); });
    if (begins == std::end(kQuotes) || ends == std::end(kQuotes)) continue;
    if (word.size() < begins->size() + ends->size()) continue;
    word = word.substr(begins->size(), word.size() - begins->size() - ends->size());
  }
}

// Quotes around more than the selector.
void mend_one_word(const Command&, TypedWords& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].find(" --") == std::string::npos || is_option(words[i])) continue;
    const std::string whole = words[i];
    TypedWords parts;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t end = std::min(whole.find(' ', at), whole.size());
      if (end > at) parts.push_back(whole.substr(at, end - at));
      at = end + 1;
    }
    const auto place = words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    words.insert(place, parts.begin(), parts.end());
    return;
  }
}

bool looks_like_address(std::string_view word) {
  if (word.find("://") != std::string_view::npos) return true;
  const std::size_t colon = word.rfind(':');
  return colon != std::string_view::npos && colon + 1 < word.size() &&
         word.find_first_not_of("0123456789", colon + 1) == std::string_view::npos &&
         word.find('/') == std::string_view::npos;
}

bool is_duration(const std::string& word) {
  return word == "forever" || wire::parse_duration_ns(word).ok();
}

void mend_command(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (line.command->commands.empty() || line.positions.empty()) return;
  const std::size_t at = line.positions.front();
  const std::string word = words[at];
  if (line.command == &root) {
    if (looks_like_address(word)) {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
      if (TypedLine(root, words).command == &root) words.insert(words.begin(), "status");
      words.insert(words.end(), {"--host", word});
      return;
    }
    if (word.find_first_of("/*") != std::string::npos) {
      words.insert(words.begin(), "query");
      return;
    }
  } else if (line.command->name() == "retention") {
    // "retention kitchen 30d"
    const bool sets = line.positions.size() > 1 && is_duration(words[line.positions.back()]);
    if (nearest_command(*line.command, word).empty()) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(line.begin),
                   sets ? "set" : "preview");
      return;
    }
  }
  const std::string meant = nearest_command(*line.command, word);
  if (!meant.empty()) words[at] = meant;
}

// What another command does with this option, where that is all that was mistaken.
void mend_command_of_option(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (line.command->name() != "last" && line.command->name() != "series") return;
  for (const TypedLine::Given& given : line.options) {
    constexpr std::array<std::string_view, 7> kRange = {"--since", "--from",  "--to",  "--every",
                                                        "--agg",   "--limit", "--desc"};
    const bool is_of_query =
        std::find(kRange.begin(), kRange.end(), option_name(words[given.at])) != kRange.end();
    if (given.option == nullptr && is_of_query) {
      words.front() = "query";
      return;
    }
  }
}

void mend_options(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (given.option != nullptr) continue;
    const std::string name(option_name(words[given.at]));
    const std::string rest = words[given.at].substr(name.size());
    const bool is_format =
        std::find(kFormatFlags.begin(), kFormatFlags.end(), name) != kFormatFlags.end();
    if (is_format && line.takes("--format")) {
      words[given.at] = "--format=" + name.substr(2);
    } else if (name == "--utc" && line.takes("--tz")) {
      words[given.at] = "--tz=UTC";
    } else if (const std::string meant = nearest_option(*line.command, name); !meant.empty()) {
      words[given.at] = meant + rest;
    }
  }
}

// The value of an option: where it stands, and what it is.
struct Value {
  std::string& word;
  std::size_t begin;  // in the word

  std::string text() const { return word.substr(begin); }
  void set(const std::string& text) { word.replace(begin, std::string::npos, text); }
};

template <typename Mend>
void for_values(const Command& root, TypedWords& words, const Mend& mend) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (given.option == nullptr || given.option->value.empty()) continue;
    const std::size_t equals = words[given.at].find('=');
    if (given.value) {
      mend(*given.option, Value{words[*given.value], 0});
    } else if (equals != std::string::npos) {
      mend(*given.option, Value{words[given.at], equals + 1});
    }
  }
}

bool is_named(const CommandOption& option, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&option](std::string_view name) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  });
}

void mend_choices(const Command& root, TypedWords& words) {
  for_values(root, words, [](const CommandOption& option, Value value) {
    const std::string text = value.text();
    if (is_named(option, {"--agg"})) {
      if (!wire::parse_aggregate(text).ok()) {
        if (const auto near = wire::nearest_aggregate(text); !near.empty())
          value.set(std::string(near));
      }
      return;
    }
    const auto& choices = option.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return;
    const std::vector<std::string_view> known(choices.begin(), choices.end());
    if (const auto near = wire::nearest_word(in_lower_case(text), known); !near.empty())
      value.set(std::string(near));
  });
}

// "10,000", "10_000", "10k"
void mend_counts(const Command& root, TypedWords& words) {
  for_values(root, words, [](const CommandOption& option, Value value) {
    if (!option.value.starts_with("UINT") && !option.value.starts_with("INT")) return;
    std::string text = in_lower_case(value.text());
    std::erase_if(text, [](char c) { return c == ',' || c == '_' || c == '\'' || c == ' '; });
    if (text.ends_with('k')) text.replace(text.size() - 1, 1, "000");
    if (text.ends_with('m')) text.replace(text.size() - 1, 1, "000000");
    if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) value.set(text);
  });
}

// A value that a blank has cut in two: "--since 5 min", "--from 2026-11-20 14:00", "1h ago".
void join_cut_values(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (given.option == nullptr || !given.value || *given.value + 1 >= words.size()) continue;
    if (!is_named(*given.option, {"--since", "--every", "--from", "--to", "--time", "--expires"}))
      continue;
    const std::size_t next = *given.value + 1;
    const bool is_time = is_named(*given.option, {"--from", "--to", "--time"});
    const std::string& value = words[*given.value];
    const std::string& more = words[next];
    const bool is_unit =
        all_digits(value) && !duration_meant(value + more).empty() && !all_digits(more);
    const bool is_clock = is_time && !clock_meant(more).empty() && value.find(':') == value.npos &&
                          (value.find_first_of("-./") != value.npos || value.ends_with("day"));
    const bool is_ago = more == "ago" && !duration_meant(value).empty();
    if (!is_unit && !is_clock && !is_ago) continue;
    if (is_unit) words[*given.value] += more;
    if (is_clock) words[*given.value] += " " + more;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(next));
    join_cut_values(root, words);
    return;
  }
}

void mend_times(const Command& root, TypedWords& words) {
  join_cut_values(root, words);
  bool is_local = false, is_from = false;
  for_values(root, words, [&](const CommandOption& option, Value value) {
    const std::string text = value.text();
    if (is_named(option, {"--from", "--to", "--time"})) {
      if (const std::string meant = time_meant(text, is_local); !meant.empty()) value.set(meant);
    } else if (is_named(option, {"--since", "--every", "--expires"})) {
      if (wire::parse_duration_ns(text).ok()) return;
      if (const std::string meant = duration_meant(text); !meant.empty()) {
        value.set(meant);
      } else if (is_named(option, {"--since"})) {
        // A moment, not how far back.
        const std::string moment = time_meant(text, is_local);
        if (!moment.empty()) value.set(moment);
        is_from = !moment.empty() || wire::parse_time_ns(text, 0).ok();
        if (is_from) {
          if (value.begin == 0) return;
          value.word = "--from=" + value.text();
        }
      }
    }
  });
  if (is_from)
    std::replace(words.begin(), words.end(), std::string("--since"), std::string("--from"));
  const TypedLine line(root, words);
  if (is_local && line.takes("--local") && !line.has("--tz") && !line.has("--local"))
    words.emplace_back("--local");
}

// "/kitchen/temp/", "sensors/kitchen/temp": as a device and its sensor.
std::string selector_meant(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  std::string joined;
  for (const char c : text) {
    if (c != '/' || !joined.ends_with('/')) joined += c;
  }
  // Topics have more levels: their last two.
  while (std::count(joined.begin(), joined.end(), '/') > 1) joined.erase(0, joined.find('/') + 1);
  return wire::parse_selector(joined).ok() ? joined : std::string();
}

// "kitchen.temp", "kitchen:temp", "kitchen-temp"
std::string series_meant(std::string_view text) {
  const std::size_t mark = text.find_first_of(".:#,");
  if (mark == 0 || mark == std::string_view::npos || mark + 1 == text.size()) return {};
  if (is_number(text)) return {};
  return std::string(text.substr(0, mark)) + "/" + std::string(text.substr(mark + 1));
}

void mend_selectors(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.takes_selectors() && !line.takes_position("series")) return;
  for (const std::size_t at : line.positions) {
    if (wire::parse_selector(words[at]).ok() || words[at].find('/') == std::string::npos) continue;
    if (const std::string meant = selector_meant(words[at]); !meant.empty()) words[at] = meant;
  }
}

void mend_series(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.takes_position("series") || line.positions.empty()) return;
  const auto text = [&](std::size_t i) -> std::string& { return words[line.positions[i]]; };
  const std::size_t count = line.positions.size();
  const bool is_write = line.command->name() == "write";
  std::string& series = text(0);
  if (is_write && count == 1) {
    if (const std::size_t equals = series.find('='); equals != std::string::npos && equals > 0) {
      std::string value = series.substr(equals + 1);
      series.resize(equals);
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(line.positions[0] + 1), value);
      return mend_series(root, words);
    }
  }
  if (is_write && count == 2 && is_number(series) && !is_number(text(1)))
    std::swap(series, text(1));
  // "write kitchen temp 21.5", "get kitchen temp"
  const std::size_t wanted = is_write ? 2 : 1;
  if (count == wanted + 1 && series.find('/') == std::string::npos &&
      text(1).find('/') == std::string::npos) {
    series += "/" + text(1);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(line.positions[1]));
    return mend_series(root, words);
  }
  if (series.find('/') == std::string::npos) {
    if (const std::string meant = series_meant(series); !meant.empty()) series = meant;
  }
  // A pattern: which series there are.
  const auto selector = wire::parse_selector(series);
  const bool is_pattern =
      selector.ok() && (!selector->is_exact() || series.find('/') == std::string::npos);
  if (is_pattern) {
    words = {"series", series};
    return;
  }
  if (is_write && count == 2) {
    std::string& value = text(1);
    if (is_number(value) && std::count(value.begin(), value.end(), ',') == 1 &&
        value.find('.') == std::string::npos)
      std::replace(value.begin(), value.end(), ',', '.');
  }
}

// A command that has to be told of what.
void mend_missing(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  const std::string name = line.command->name();
  const bool is_asking =
      name == "query" || name == "tail" || name == "plot" || name == "where" || name == "export";
  const auto has_any = [&line](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view each) { return line.has(each); });
  };
  if (is_asking && line.positions.empty() &&
      !has_any(
          {"--measurement", "--tag", "--field", "--owner", "--of-purpose", "--object", "--label"}))
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(line.begin), "*/*");
  if (name == "query" && line.has("--every") && !line.has("--agg"))
    words.insert(words.end(), {"--agg", "mean"});
  const bool is_token = line.command->path.ends_with("token create");
  if (is_token && !has_any({"--read", "--write", "--export", "--erase", "--admin"}))
    words.insert(words.end(), {"--read", "*/*"});
}

void mend_retention(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.command->path.ends_with("retention set") &&
      !line.command->path.ends_with("retention preview"))
    return;
  const auto text = [&](std::size_t i) -> std::string& { return words[line.positions[i]]; };
  if (line.positions.size() < 2) return;
  std::string& last = text(line.positions.size() - 1);
  if (!is_duration(last) && is_duration(text(0))) {
    std::swap(text(0), last);
    return;
  }
  if (is_duration(last)) return;
  // "30 d", "30", "30 days", "infinite"
  const std::string before = line.positions.size() > 2 ? text(line.positions.size() - 2) : "";
  if (all_digits(before) && is_duration(duration_meant(before + last))) {
    last = duration_meant(before + last);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(line.positions.end()[-2]));
  } else if (all_digits(last)) {
    last += "d";
  } else if (const std::string meant = duration_meant(last); !meant.empty()) {
    last = meant;
  } else if (const std::string word = in_lower_case(last); word == "infinite" || word == "always" ||
                                                           word == "never" || word == "forever" ||
                                                           word == "inf") {
    last = "forever";
  }
}

void mend_import(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (line.command->name() != "import" || line.positions.empty()) return;
  const std::string path = words[line.positions.front()];
  bool is_csv = format_of_file(path) == "csv";
  if (line.has("--format")) {
    is_csv = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word == "csv" || word == "--format=csv";
    });
  } else if (format_of_file(path).empty()) {
    // A name that is mistyped has no ending to speak of.
    if (path != "-" && path.find('.', path.rfind('/') + 1) == std::string::npos) return;
    is_csv = true;
    words.insert(words.end(), {"--format", "csv"});
  }
  const bool is_told = line.has("--time-column") || line.has("--device") ||
                       line.has("--device-column") || line.has("--value-columns");
  if (!is_csv || is_told || line.has("--delimiter")) return;
  const std::vector<std::string> meant = options_meant(path);
  words.insert(words.end(), meant.begin(), meant.end());
  // What it is meant to be is a guess: first nothing is stored.
  if (meant.size() > 2 && !line.has("--dry-run")) words.emplace_back("--dry-run");
}

// In this order: each may count on what stands before it.
constexpr void (*kMends[])(const Command&, TypedWords&) = {
    mend_pasted,  mend_one_word,  mend_command, mend_command_of_option, mend_options,
    mend_times,   mend_choices,   mend_counts,  mend_selectors,         mend_series,
    mend_missing, mend_retention, mend_import,
};

// What commands have said of the line that runs.
struct Suggestions {
  bool is_nothing_found = false;
  std::vector<std::pair<std::string, std::string>> names;  // as typed, and as meant
};
Suggestions& suggestions() {
  static Suggestions all;
  return all;
}
constexpr std::size_t kSuggestionsMax = 100;

// What a shell made of a pattern: every selector is a path that is there.
bool mend_expanded(const TypedLine& line, TypedWords& words, bool (*exists)(const std::string&)) {
  if (!line.takes_selectors() || line.positions.empty()) return false;
  bool has_slash = true;
  std::string directory;
  for (const std::size_t at : line.positions) {
    if (!exists(words[at])) return false;
    const std::size_t slash = words[at].find('/');
    has_slash = has_slash && slash != std::string::npos;
    const std::string above = words[at].substr(0, slash);
    if (at == line.positions.front()) directory = above;
    if (above != directory) directory.clear();
  }
  const bool is_one = line.positions.size() == 1;
  const std::string pattern = has_slash && !directory.empty() && !is_one ? directory + "/*" : "*/*";
  for (std::size_t i = line.positions.size(); i-- > 1;)
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(line.positions[i]));
  words[line.positions.front()] = pattern;
  return true;
}

}  // namespace

TypedWords mended_usage(const Command& root, TypedWords words) {
  const TypedWords given = words;
  for (const auto mend : kMends) mend(root, words);
  return words == given ? TypedWords() : words;
}

TypedWords mended_blanks(const Command& root, TypedWords words) {
  mend_pasted(root, words);
  TypedWords joined = words;
  join_cut_values(root, joined);
  if (joined.size() == words.size()) return words;
  mend_times(root, joined);
  return joined;
}

TypedWords mended_names(const Command& root, TypedWords words, bool (*exists)(const std::string&)) {
  const TypedWords given = words;
  mend_one_word(root, words);
  if (words != given) return words;
  const TypedLine line(root, words);
  const bool is_expanded = line.positions.size() > 1 && mend_expanded(line, words, exists);
  if (is_expanded) return words;
  bool is_mended = false;
  for (const auto& [typed, meant] : suggestions().names) {
    for (const std::size_t at : line.positions) {
      if (words[at] != typed) continue;
      words[at] = meant;
      is_mended = true;
    }
  }
  if (!is_mended && !mend_expanded(line, words, exists)) return {};
  return words;
}

bool is_sql(std::string_view word) {
  const std::string text = in_lower_case(word);
  return text.starts_with("select ") && text.find(" from ") != std::string::npos;
}

std::string sql_line(const TypedWords& words) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [](const std::string& word) { return is_sql(word); });
  if (found == words.end()) return {};
  return "curl -G http://localhost:8650/query --data-urlencode " + for_shell("q=" + *found);
}

void note_nothing_found() {
  suggestions().is_nothing_found = true;
}

void suggest_name(std::string typed, std::string meant) {
  if (suggestions().names.size() < kSuggestionsMax)
    suggestions().names.emplace_back(std::move(typed), std::move(meant));
}

bool is_nothing_found() {
  return suggestions().is_nothing_found;
}

void forget_suggestions() {
  suggestions() = {};
}

}  // namespace edgecase::cli
