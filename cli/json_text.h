// Fields of the daemon's JSON answers, read without trust: a missing field or one of another kind
// is empty.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

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
inline std::string words_field(const nlohmann::json& object, const char* name,
                               const char* between = ", ") {
  std::string words;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return words;
  for (const nlohmann::json& each : *found) {
    if (each.is_string()) words += (words.empty() ? "" : between) + each.get<std::string>();
  }
  return words;
}

// A token's scope: one selector is a text, several are a list.
inline std::string scope_field(const nlohmann::json& token, const char* name) {
  const std::string one = text_field(token, name);
  return one.empty() ? words_field(token, name, " ") : one;
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

// What becomes of an erasure, by preview or certificate, where readings went to; empty: nowhere.
inline std::string forwarded_note(const nlohmann::json& object) {
  std::string text;
  const auto targets = object.find("targets");
  if (targets == object.end() || !targets->is_array()) return text;
  for (const nlohmann::json& each : *targets) {
    const std::string why = text_field(each, "why");
    text += (text.empty() ? "targets: " : "; ") + text_field(each, "name") + " " +
            text_field(each, "state") + (why.empty() ? "" : " (" + why + ")");
  }
  return text;
}

// Whether a target of that certificate is in such a state.
inline bool has_target_in(const nlohmann::json& certificate, std::string_view state) {
  const auto targets = certificate.find("targets");
  if (targets == certificate.end() || !targets->is_array()) return false;
  for (const nlohmann::json& each : *targets)
    if (text_field(each, "state") == state) return true;
  return false;
}

}  // namespace edgecase::cli
