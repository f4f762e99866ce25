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

// "-o x.csv" of what prints: export writes files, and a drawing is a picture.
void mend_output(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  const std::string name = line.command->name();
  if (line.takes("--output") || (name != "query" && name != "plot")) return;
  for (const TypedLine::Given& given : line.options) {
    std::string& word = words[given.at];
    const std::string option(option_name(word));
    if (option != "-o" && option != "--output" && option != "--out") continue;
    if (name == "query") {
      words.front() = "export";
    } else {
      const std::string file = given.at + 1 < words.size() ? words[given.at + 1] : word;
      const std::string picture = file.ends_with(".svg") ? "--svg" : "--png";
      word.replace(0, option.size(), picture);
    }
    return;
  }
}

// `tail` follows without being told.
void mend_follow(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (line.command->name() != "tail") return;
  for (const TypedLine::Given& given : line.options) {
    if (words[given.at] != "-f" && words[given.at] != "--follow") continue;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(given.at));
    return;
  }
}

void mend_options(const Command& root, TypedWords& words) {
  mend_output(root, words);
  mend_follow(root, words);
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (given.option != nullptr) continue;
    const std::string name(option_name(words[given.at]));
    const std::string rest = words[given.at].substr(name.size());
    // "--mean"
    if (name.starts_with("--") && line.takes("--agg") &&
        wire::parse_aggregate(name.substr(2)).ok()) {
      words[given.at] = "--agg=" + name.substr(2);
      continue;
    }
    if (name == "--wide" && line.takes("--layout")) {
      words[given.at] = "--layout=wide";
      continue;
    }
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

void mend_selectors(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.takes_selectors() && !line.takes_position("series")) return;
  for (const std::size_t at : line.positions) {
    if (wire::parse_selector(words[at]).ok() || words[at].find('/') == std::string::npos) continue;
    if (TypedWords all = listed(words[at]); line.takes_selectors() && all.size() > 1) {
      const auto place = words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
      words.insert(place, all.begin(), all.end());
      return;
    }
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
    mend_pasted, mend_one_word,  mend_command, mend_command_of_option, mend_host,      mend_options,
    mend_values, mend_selectors, mend_series,  mend_missing,           mend_retention, mend_import,
};

// What commands have said of the line that runs.
struct Suggestions {
  bool is_nothing_found = false;
  std::vector<std::pair<std::string, std::string>> names;  // as typed, and as meant
  TypedWords words;                                        // that were left out
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

// "-n 10" and "-10", as `tail` and `head` of files have them.
void mend_count_of_lines(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  const bool is_tail = line.command->name() == "tail";
  if (!is_tail && !line.takes("--limit")) return;
  const std::string option = is_tail ? "--lines" : "--limit";
  for (const TypedLine::Given& each : line.options) {
    if (words[each.at] != "-n" || !each.value || !all_digits(words[*each.value])) continue;
    words[each.at] = option;
    return;
  }
  for (const std::size_t at : line.positions) {
    if (!words[at].starts_with('-') || !all_digits(words[at].substr(1))) continue;
    words[at] = option + "=" + words[at].substr(1);
    return mend_missing(root, words);
  }
}

// Lists in one word, and wildcards that selectors do not have.
void mend_patterns(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.takes_selectors()) return;
  for (std::size_t i = line.positions.size(); i-- > 0;) {
    const std::size_t at = line.positions[i];
    words[at] = with_own_wildcards(words[at]);
    const TypedWords all = listed(words[at]);
    if (all.size() < 2) continue;
    const auto place = words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    words.insert(place, all.begin(), all.end());
  }
}

}  // namespace

TypedWords mended_usage(const Command& root, TypedWords words) {
  const TypedWords given = words;
  for (const auto mend : kMends) mend(root, words);
  const TypedWords& more = suggestions().words;
  words.insert(words.end(), more.begin(), more.end());
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
  mend_count_of_lines(root, words);
  mend_patterns(root, words);
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

void suggest_words(TypedWords words) {
  suggestions().words = std::move(words);
}

bool is_nothing_found() {
  return suggestions().is_nothing_found;
}

void forget_suggestions() {
  suggestions() = {};
}

}  // namespace edgecase::cli
