#include "http/credentials.h"

#include <algorithm>

#include "auth/token_store.h"
#include "wire/base64.h"

namespace edgecase::http {
namespace {

bool is_scheme(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char c, char wanted) {
                      return (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) == wanted;
                    });
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::string> presented_token(std::string_view authorization) {
  const std::string_view text = trimmed(authorization);
  if (text.empty()) return std::string();
  const std::size_t blank = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view scheme = text.substr(0, blank);
  const std::string_view rest = trimmed(text.substr(blank));
  // Clients that were given no token send the scheme alone: as much as nothing.
  if (is_scheme(scheme, "bearer") || is_scheme(scheme, "token")) return std::string(rest);
  if (!is_scheme(scheme, "basic")) {
    return not_allowed("Authorization is one of Bearer, Token and Basic here");
  }
  if (rest.empty()) return std::string();
  const Status malformed = not_allowed("the header Authorization is malformed");
  const auto pair = wire::decode_base64(rest);
  if (!pair.ok()) return malformed;
  const std::size_t colon = pair->find(':');
  if (colon == std::string::npos) return malformed;
  std::string password = pair->substr(colon + 1);
  return password.starts_with(auth::kTokenPrefix) ? password : std::string();
}

}  // namespace edgecase::http
