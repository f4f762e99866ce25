// How the report of the papers' experiments looks.
#include <algorithm>
#include <cstdio>
#include <map>

#include "bench/experiments/papers.h"

namespace edgecase::cli::bench {
namespace {

constexpr int kLabelPixels = 360;
constexpr int kBarPixels = 420;
constexpr int kRowPixels = 18;

std::string number_text(double value) {
  char text[32];
  const bool whole = value >= 100 || value == static_cast<double>(static_cast<long long>(value));
  std::snprintf(text, sizeof(text), whole ? "%.0f" : "%.3g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// What every report has, then what is the workload's own.
std::vector<std::pair<std::string, double>> figures_of(const Report& report) {
  std::vector<std::pair<std::string, double>> figures = {
      {"ops_per_second", report.ops_per_second()}, {"mb_per_second", report.mb_per_second()}};
  if (report.latency.count() > 0) {
    const auto us = [&](double share) {
      return static_cast<double>(report.latency.percentile_ns(share)) / 1e3;
    };
    figures.emplace_back("p50_us", us(0.5));
    figures.emplace_back("p99_us", us(0.99));
    figures.emplace_back("p999_us", us(0.999));
  }
  if (report.write_amplification > 0) {
    figures.emplace_back("write_amplification", report.write_amplification);
    figures.emplace_back("space_amplification", report.space_amplification);
  }
  if (report.peak_memory_bytes > 0) {
    figures.emplace_back("peak_memory_bytes", static_cast<double>(report.peak_memory_bytes));
  }
  figures.insert(figures.end(), report.more.begin(), report.more.end());
  return figures;
}

// What is drawn together: figures of one unit.
std::string unit_of(const std::string& figure) {
  if (figure.find("ratio") != std::string::npos) return "ratio";
  for (const char* unit : {"mb_per_second", "per_second", "amplification", "memory_bytes", "share",
                           "percent", "seconds", "_us", "_ms"}) {
    if (figure.ends_with(unit)) return unit[0] == '_' ? unit + 1 : unit;
  }
  return "";
}

std::string bars(const std::string& unit,
                 const std::vector<std::pair<std::string, double>>& figures) {
  double most = 0;
  for (const auto& [name, value] : figures) most = std::max(most, value);
  if (most <= 0) return {};
  const int width = kLabelPixels + kBarPixels + 110;
  const int height = kRowPixels * static_cast<int>(figures.size()) + 4;
  std::string svg = "<h3>" + escaped(words_of(unit)) + "</h3>\n<svg width=\"" +
                    std::to_string(width) + "\" height=\"" + std::to_string(height) +
                    "\" role=\"img\">\n";
  int top = 0;
  for (const auto& [name, value] : figures) {
    const int length = static_cast<int>(kBarPixels * std::max(value, 0.0) / most);
    const bool published = name.find("published") != std::string::npos;
    const std::string middle = std::to_string(top + 13);
    svg += "<text x=\"" + std::to_string(kLabelPixels - 6) + "\" y=\"" + middle +
           "\" text-anchor=\"end\">" + escaped(words_of(name)) + "</text><rect class=\"" +
           (published ? "theirs" : "ours") + "\" x=\"" + std::to_string(kLabelPixels) + "\" y=\"" +
           std::to_string(top + 3) + "\" width=\"" + std::to_string(std::max(length, 1)) +
           "\" height=\"" + std::to_string(kRowPixels - 5) + "\"/><text x=\"" +
           std::to_string(kLabelPixels + length + 6) + "\" y=\"" + middle + "\">" +
           number_text(value) + "</text>\n";
    top += kRowPixels;
  }
  return svg + "</svg>\n";
}

constexpr char kStyle[] =
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.1em .8em;text-align:left;"
    "border-bottom:1px solid #ddd}td.n{text-align:right}svg{font:12px sans-serif;max-width:100%}"
    "rect.ours{fill:#2a6f97}rect.theirs{fill:#c9ada7}p.failed{color:#a00}"
    "details{margin:.5em 0}h2{margin-top:2em}";

// The table in words, of which the first row names the columns; "" for none.
std::string table_html(const std::vector<std::vector<std::string>>& table) {
  if (table.empty()) return "";
  std::string html = "<table>\n";
  const char* cell = "th";
  for (const std::vector<std::string>& row : table) {
    html += "<tr>";
    for (const std::string& text : row) {
      html += std::string("<") + cell + ">" + escaped(text) + "</" + cell + ">";
    }
    html += "</tr>\n";
    cell = "td";
  }
  return html + "</table>\n";
}

std::string table_markdown(const std::vector<std::vector<std::string>>& table) {
  std::string text = table.empty() ? "" : "\n";
  for (std::size_t row = 0; row < table.size(); ++row) {
    text += "|";
    for (const std::string& cell : table[row]) text += " " + cell + " |";
    text += "\n";
    if (row > 0) continue;
    text += "|";
    for (std::size_t i = 0; i < table.front().size(); ++i) text += "---|";
    text += "\n";
  }
  return text;
}

std::string section_html(const PaperSection& section) {
  std::string html =
      "<h2>" + escaped(section.workload) + "</h2>\n<p>" + escaped(section.purpose) + "</p>\n";
  if (!section.failure.empty()) {
    return html + "<p class=\"failed\">It did not run: " + escaped(section.failure) + "</p>\n";
  }
  html += table_html(section.report.rows);
  for (const auto& [name, said] : section.report.words) {
    html += "<p>" + escaped(name + ": " + said) + "</p>\n";
  }
  const auto figures = figures_of(section.report);
  std::map<std::string, std::vector<std::pair<std::string, double>>> drawn;
  std::string rows;
  for (const auto& [name, value] : figures) {
    if (const std::string unit = unit_of(name); !unit.empty())
      drawn[unit].emplace_back(name, value);
    rows += "<tr><td>" + escaped(words_of(name)) + "</td><td class=\"n\">" + number_text(value) +
            "</td></tr>\n";
  }
  for (const auto& [unit, group] : drawn) {
    if (group.size() > 1) html += bars(unit, group);  // one alone compares with nothing
  }
  return html + "<details><summary>All figures</summary>\n<table>\n" + rows +
         "</table></details>\n";
}

}  // namespace

std::string papers_markdown(const PaperFacts& facts, const std::vector<PaperSection>& sections) {
  std::string text = "# EdgeCase: the papers' experiments\n\n";
  for (const auto& [name, value] : facts) text += "- " + name + ": " + value + "\n";
  std::string paper;
  for (const PaperSection& section : sections) {
    if (section.paper != paper) text += "\n## " + section.paper + "\n";
    paper = section.paper;
    text += "\n### " + section.workload + "\n\n" + section.purpose + "\n\n";
    if (!section.failure.empty()) {
      text += "It did not run: " + section.failure + "\n";
      continue;
    }
    for (const auto& [name, said] : section.report.words) text += "- " + name + ": " + said + "\n";
    if (!section.report.words.empty()) text += "\n";
    text += "| figure | value |\n|---|---|\n";
    for (const auto& [name, value] : figures_of(section.report)) {
      text += "| " + words_of(name) + " | " + number_text(value) + " |\n";
    }
    text += table_markdown(section.report.rows);
  }
  return text;
}

std::string papers_html(const PaperFacts& facts, const std::vector<PaperSection>& sections) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>EdgeCase: the papers' experiments</title>\n<style>" +
      std::string(kStyle) + "</style></head><body>\n<h1>EdgeCase: the papers' experiments</h1>\n" +
      "<table>\n";
  for (const auto& [name, value] : facts) {
    html += "<tr><th>" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
  }
  html += "</table>\n";
  std::string paper;
  for (const PaperSection& section : sections) {
    if (section.paper != paper) html += "<h1>" + escaped(section.paper) + "</h1>\n";
    paper = section.paper;
    html += section_html(section);
  }
  return html + "</body></html>\n";
}

}  // namespace edgecase::cli::bench
