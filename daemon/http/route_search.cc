// Looking things up in the table of routes.
#include <algorithm>
#include <string>

#include "http/route_table.h"

namespace edgecase::http {
namespace {

bool knows(const Route& route, std::string_view name) {
  for (std::string_view rest = route.parameters; !rest.empty();) {
    const std::string_view key = next_word(rest);
    if (key == "*" || key.substr(0, key.find_first_of("@!")) == name) return true;
  }
  return false;
}

}  // namespace

const Route* find_route(std::string_view method, std::string_view path) {
  const std::string_view asked = method == "HEAD" ? "GET" : method;
  for (const Route& route : route_table()) {
    if (route.method != asked) continue;
    const std::string_view fixed = fixed_part(route.path);
    const bool is_whole = fixed.size() == route.path.size();
    if (is_whole ? path == fixed : path.starts_with(fixed)) return &route;
  }
  return nullptr;
}

std::string_view fixed_part(std::string_view path) {
  return path.substr(0, path.find('{'));
}

Status check_parameters(const Route& route, const Parameters& parameters) {
  for (const auto& [name, value] : parameters) {
    if (!knows(route, name)) return invalid_argument("unknown parameter \"" + name + "\"");
  }
  return ok();
}

std::string_view next_word(std::string_view& list, char separator) {
  const std::string_view word = list.substr(0, list.find(separator));
  list.remove_prefix(std::min(word.size() + 1, list.size()));
  return word;
}

}  // namespace edgecase::http
