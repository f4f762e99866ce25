#include "storage/settings_line.h"

#include <vector>

namespace edgecase::cli::storage {
namespace {

std::string toml_string(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// With their ends.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

bool is_head(std::string_view line, std::string_view table) {
  line = trimmed(line);
  if (!line.starts_with('[')) return false;
  line = trimmed(line.substr(1));
  if (!line.starts_with(table)) return false;
  return trimmed(line.substr(table.size())).starts_with(']');
}

// Keeps what is said behind the value, as far as a comment is recognised for sure.
std::string comment_of(std::string_view line) {
  const std::size_t hash = line.rfind('#');
  if (hash == std::string_view::npos) return "\n";
  const std::string_view comment = line.substr(hash);
  if (comment.find('"') != std::string_view::npos || comment.find('\'') != std::string_view::npos) {
    return "\n";
  }
  return "  " + std::string(comment) + (comment.ends_with('\n') ? "" : "\n");
}

}  // namespace

std::string with_setting(std::string_view text, std::string_view table, std::string_view key,
                         std::size_t line, std::string_view value) {
  std::vector<std::string> lines = lines_of(text);
  const std::string setting = std::string(key) + " = " + toml_string(value);
  if (line > 0 && line <= lines.size()) {
    lines[line - 1] = setting + comment_of(lines[line - 1]);
  } else {
    std::size_t at = 0;
    while (at < lines.size() && !is_head(lines[at], table)) ++at;
    if (at == lines.size()) {
      if (!lines.empty() && !lines.back().ends_with('\n')) lines.back() += '\n';
      lines.push_back("[" + std::string(table) + "]\n");
    } else if (!lines[at].ends_with('\n')) {
      lines[at] += '\n';
    }
    const std::size_t behind = at + 1 < lines.size() ? at + 1 : lines.size();
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(behind), setting + "\n");
  }
  std::string out;
  for (const std::string& each : lines) out += each;
  return out;
}

}  // namespace edgecase::cli::storage
