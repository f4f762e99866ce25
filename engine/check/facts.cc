#include "check/facts.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kShownKeyMaxBytes = 48;

}  // namespace

void add_fact(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).push_back('\n');
}

void add_fact(std::string& out, std::string_view name, std::uint64_t value) {
  add_fact(out, name, std::string_view(std::to_string(value)));
}

std::string shown_key(ByteView key) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : key.substr(0, kShownKeyMaxBytes)) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  if (key.size() > kShownKeyMaxBytes) text += "...";
  return text;
}

}  // namespace edgecase::engine
