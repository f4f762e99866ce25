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

}  // namespace

Result<std::string> presented_token(std::string_view authorization) {
  if (authorization.empty()) return std::string();
  const std::size_t blank = std::min(authorization.find(' '), authorization.size());
  const std::string_view scheme = authorization.substr(0, blank);
  std::string_view rest = authorization.substr(blank);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const Status malformed = not_allowed("the header Authorization is malformed");
  if (rest.empty()) return malformed;
  if (is_scheme(scheme, "bearer") || is_scheme(scheme, "token")) return std::string(rest);
  if (!is_scheme(scheme, "basic")) {
    return not_allowed("Authorization is one of Bearer, Token and Basic here");
  }
  const auto pair = wire::decode_base64(rest);
  if (!pair.ok()) return malformed;
  const std::size_t colon = pair->find(':');
  if (colon == std::string::npos || colon + 1 == pair->size()) return malformed;
  std::string password = pair->substr(colon + 1);
  return password.starts_with(auth::kTokenPrefix) ? password : std::string();
}

}  // namespace edgecase::http
