// Fields of the daemon's JSON answers, read without trust: a missing field or one of another kind
// is empty.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace edgecase::cli {

inline std::string text_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

inline std::optional<double> number_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// The texts of a list, with commas between them.
inline std::string words_field(const nlohmann::json& object, const char* name) {
  std::string words;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return words;
  for (const nlohmann::json& each : *found) {
    if (each.is_string()) words += (words.empty() ? "" : ", ") + each.get<std::string>();
  }
  return words;
}

inline std::uint64_t count_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return 0;
  return found->get<std::uint64_t>();
}

// What is to be said of an erasure, a preview or a certificate, that is not physical; else empty.
inline std::string erasure_level_note(const nlohmann::json& object) {
  const std::string level = text_field(object, "level");
  if (level.empty() || level == "physical") return {};
  return "level " + level + ": " + text_field(object, "level_why");
}

// Where readings went that no erasure here reaches; empty: nowhere.
inline std::string forwarded_note(const nlohmann::json& object) {
  std::string names;
  const auto targets = object.find("targets");
  if (targets == object.end() || !targets->is_array()) return names;
  for (const nlohmann::json& each : *targets)
    names += (names.empty() ? "" : ", ") + text_field(each, "name");
  return names.empty() ? names : "what was forwarded to " + names + " is there still";
}

}  // namespace edgecase::cli
