// Values of options, as they were meant (mended_line.h).
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "mended_line.h"
#include "wire/names.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

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

// What one of several words is called elsewhere.
std::string_view other_choice(std::string_view text) {
  using Choice = std::pair<std::string_view, std::string_view>;
  constexpr std::array kChoices = {
      Choice{"influx", "line"},   Choice{"influxdb", "line"},    Choice{"lp", "line"},
      Choice{"jsonl", "ndjson"},  Choice{"jsonlines", "ndjson"}, Choice{"ldjson", "ndjson"},
      Choice{"excel", "csv"},     Choice{"xlsx", "csv"},         Choice{"xls", "csv"},
      Choice{"tsv", "csv"},       Choice{"txt", "csv"},          Choice{"text", "csv"},
      Choice{"feather", "arrow"}, Choice{"ipc", "arrow"},        Choice{"pq", "parquet"},
      Choice{"integer", "int"},   Choice{"int64", "int"},        Choice{"long", "int"},
      Choice{"number", "float"},  Choice{"double", "float"},     Choice{"real", "float"},
      Choice{"float64", "float"}, Choice{"decimal", "float"},    Choice{"boolean", "bool"},
      Choice{"string", "text"},   Choice{"str", "text"},         Choice{"blob", "bytes"},
      Choice{"binary", "bytes"},  Choice{"file", "bytes"},       Choice{"pivot", "wide"},
      Choice{"columns", "wide"},  Choice{"narrow", "long"},      Choice{"comma", ","},
      Choice{"semicolon", ";"},   Choice{"\\t", "tab"},          Choice{"\t", "tab"},
      Choice{"prev", "previous"}, Choice{"ffill", "previous"},   Choice{"interpolate", "linear"},
      Choice{"nan", "null"},
  };
  for (const auto& [typed, meant] : kChoices) {
    if (typed == text) return meant;
  }
  return {};
}

std::string choice_meant(const std::string& text, const std::vector<std::string_view>& known) {
  const std::string lowered = in_lower_case(text);
  const std::string_view other = other_choice(lowered);
  if (std::find(known.begin(), known.end(), other) != known.end()) return std::string(other);
  return std::string(wire::nearest_word(lowered, known));
}

void mend_choices(const Command& root, TypedWords& words) {
  for_values(root, words, [](const CommandOption& option, Value value) {
    const std::string text = value.text();
    if (is_named(option, {"--agg"})) {
      // The first one: a question has one.
      const std::string first = text.substr(0, text.find(','));
      if (wire::parse_aggregate(text).ok()) return;
      if (wire::parse_aggregate(first).ok()) return value.set(first);
      if (const auto near = wire::nearest_aggregate(text); !near.empty())
        value.set(std::string(near));
      return;
    }
    std::vector<std::string_view> known(option.choices.begin(), option.choices.end());
    if (is_named(option, {"--fill"})) {
      if (is_number(text)) return;
      known = {"none", "null", "previous", "linear"};
    }
    if (known.empty() || std::find(known.begin(), known.end(), text) != known.end()) return;
    if (const std::string meant = choice_meant(text, known); !meant.empty()) value.set(meant);
  });
}

// What goes with a column for each series: --fill alone, and the formats that have it.
void mend_layout(const Command& root, TypedWords& words) {
  bool is_wide = false;
  for_values(root, words, [&is_wide](const CommandOption& option, Value value) {
    if (is_named(option, {"--layout"})) is_wide = value.text() == "wide";
  });
  const TypedLine line(root, words);
  if (line.has("--fill") && !line.has("--layout")) words.insert(words.end(), {"--layout", "wide"});
  if (!is_wide) return;
  for_values(root, words, [](const CommandOption& option, Value value) {
    const std::string text = value.text();
    const bool has_none = text == "table" || text == "line" || text == "parquet" || text == "arrow";
    if (is_named(option, {"--format"}) && has_none) value.set("csv");
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

}  // namespace

// A value that a blank has cut in two: "--since 5 min", "--from 2026-11-20 14:00", "1h ago".
void join_cut_values(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (given.option == nullptr || !given.value || *given.value + 1 >= words.size()) continue;
    if (!is_named(*given.option,
                  {"--since", "--every", "--from", "--to", "--time", "--expires", "--after"}))
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
    } else if (is_named(option, {"--since", "--every", "--expires", "--after"})) {
      if (wire::parse_duration_ns(text).ok()) return;
      if (is_named(option, {"--expires"}) && all_digits(text)) {
        const std::string moment = time_meant(text, is_local);
        return value.set(moment.empty() ? text + "d" : moment);
      }
      if (const std::string meant = duration_meant(text); !meant.empty()) {
        value.set(meant);
      } else if (is_named(option, {"--expires", "--after"})) {
        if (const std::string moment = time_meant(text, is_local); !moment.empty())
          value.set(moment);
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

namespace {

// "--from 2026-11-20..2026-11-21", and an end before its beginning.
void mend_range(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.takes("--from") || !line.takes("--to")) return;
  std::string from, to;
  for_values(root, words, [&](const CommandOption& option, Value value) {
    const std::string text = value.text();
    if (is_named(option, {"--to"})) to = text;
    if (!is_named(option, {"--from", "--since"})) return;
    from = text;
    const std::size_t dots = text.find("..");
    if (dots == std::string::npos || line.has("--to")) return;
    to = text.substr(dots + 2);
    value.set(text.substr(0, dots));
  });
  if (from.find("..") != std::string::npos && !line.has("--to") && !to.empty()) {
    std::replace(words.begin(), words.end(), std::string("--since"), std::string("--from"));
    words.insert(words.end(), {"--to", to});
    return;
  }
  constexpr std::int64_t kNow = 1'800'000'000'000'000'000;
  const auto utc = wire::TimeZone::find("UTC");
  const auto first = wire::parse_time_ns(from, kNow, &*utc);
  const auto end = wire::parse_time_ns(to, kNow, &*utc);
  if (from.empty() || to.empty() || line.has("--since") || !first.ok() || !end.ok()) return;
  if (*first <= *end) return;
  for_values(root, words, [&](const CommandOption& option, Value value) {
    if (is_named(option, {"--from"})) value.set(to);
    if (is_named(option, {"--to"})) value.set(from);
  });
}

// "+01:00" of "+1", "UTC+1", "GMT+0100"; empty: no offset.
std::string offset_meant(std::string_view text) {
  if (text.starts_with("utc") || text.starts_with("gmt")) text.remove_prefix(3);
  if (text.size() < 2 || (text.front() != '+' && text.front() != '-')) return {};
  std::string digits(text.substr(1));
  std::erase(digits, ':');
  if (!all_digits(digits) || digits.size() > 4) return {};
  if (digits.size() % 2 != 0) digits.insert(0, "0");
  if (digits.size() == 2) digits += "00";
  return text.front() + digits.substr(0, 2) + ":" + digits.substr(2);
}

// "Europe/Berlin" of "berlin", "europe/berlin"; empty: none of this machine's.
std::string zone_meant(const std::string& text) {
  const std::string lowered = in_lower_case(text);
  if (const std::string offset = offset_meant(lowered); wire::TimeZone::find(offset).ok())
    return offset;
  std::string wanted = lowered;
  std::replace(wanted.begin(), wanted.end(), ' ', '_');
  namespace fs = std::filesystem;
  const std::string root = "/usr/share/zoneinfo/";
  std::string found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(root, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().string().substr(root.size());
    if (name.starts_with("posix") || name.starts_with("right")) continue;
    const std::string lower = in_lower_case(name);
    const bool is_it = lower == wanted || lower.ends_with("/" + wanted);
    if (is_it && (found.empty() || name.size() < found.size()) && wire::TimeZone::find(name).ok())
      found = name;
  }
  return found;
}

void mend_zone(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (given.option == nullptr || !given.value || !is_named(*given.option, {"--tz"})) continue;
    std::string& text = words[*given.value];
    const std::string lowered = in_lower_case(text);
    if (lowered == "local" || lowered == "localtime") {
      words[given.at] = "--local";
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(*given.value));
      return;
    }
    if (wire::TimeZone::find(text).ok()) continue;
    if (const std::string meant = zone_meant(text); !meant.empty()) text = meant;
  }
}

// "tcp://pi:8650", "8650", ":8650", "http://pi:8650/query"
std::string address_meant(std::string text) {
  using Scheme = std::pair<std::string_view, std::string_view>;
  for (const auto& [typed, meant] :
       {Scheme{"tcp://", "http://"}, Scheme{"mqtt://", "http://"}, Scheme{"ws://", "http://"},
        Scheme{"influx://", "http://"}, Scheme{"wss://", "https://"}, Scheme{"tls://", "https://"},
        Scheme{"http//", "http://"}, Scheme{"https//", "https://"}}) {
    if (text.starts_with(typed)) text.replace(0, typed.size(), meant);
  }
  if (all_digits(text) && text.size() <= 5) return "localhost:" + text;
  if (text.starts_with(':')) return "localhost" + text;
  const std::size_t scheme = text.find("://");
  if (text.starts_with("unix:") || text.starts_with('/')) return text;
  const std::size_t path = text.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (path != std::string::npos && path + 1 < text.size()) text.resize(path);
  return text;
}

}  // namespace

void mend_host(const Command& root, TypedWords& words) {
  const TypedLine line(root, words);
  if (!line.takes("--host")) return;
  std::string port;
  for (const TypedLine::Given& given : line.options) {
    const std::string_view name = option_name(words[given.at]);
    if (given.option != nullptr || (name != "--port" && name != "-p")) continue;
    const bool has_value = name.size() < words[given.at].size();
    if (!has_value && given.at + 1 >= words.size()) continue;
    port = has_value ? words[given.at].substr(name.size() + 1) : words[given.at + 1];
    if (!all_digits(port)) return;
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(given.at);
    words.erase(at, at + (has_value ? 1 : 2));
    if (!line.has("--host")) words.insert(words.end(), {"--host", "localhost"});
    break;
  }
  for_values(root, words, [&port](const CommandOption& option, Value value) {
    if (!is_named(option, {"--host"})) return;
    value.set(address_meant(value.text()) + (port.empty() ? "" : ":" + port));
  });
}

void mend_values(const Command& root, TypedWords& words) {
  mend_times(root, words);
  mend_range(root, words);
  mend_choices(root, words);
  mend_layout(root, words);
  mend_counts(root, words);
  mend_zone(root, words);
}

TypedWords mended_address(const Command& root, TypedWords words) {
  const TypedWords given = words;
  for_values(root, words, [](const CommandOption& option, Value value) {
    const std::string text = value.text();
    const std::size_t scheme = text.find("://");
    const std::string rest = scheme == std::string::npos ? text : text.substr(scheme + 3);
    const bool is_bare = rest.find_first_of(":/") == std::string::npos && !rest.empty();
    if (is_named(option, {"--host"}) && is_bare && !text.starts_with("unix:"))
      value.set(text + ":8650");
  });
  return words == given ? TypedWords() : words;
}

}  // namespace edgecase::cli
