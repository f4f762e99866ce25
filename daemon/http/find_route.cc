// /api/v1/find: series as somebody types, for the page.
#include <algorithm>

#include "http/http_routes.h"
#include "wire/reading_format.h"

namespace edgecase::http {
namespace {

constexpr std::uint64_t kFoundByDefault = 50;
constexpr std::uint64_t kFoundMax = 500;
constexpr std::size_t kTypedWordsMax = 16;
constexpr std::size_t kTypedMaxBytes = 1'024;

Result<std::vector<std::string>> typed_words(std::string_view text) {
  if (text.size() > kTypedMaxBytes) {
    return invalid_argument("q has more than " + std::to_string(kTypedMaxBytes) + " bytes");
  }
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (words.size() == kTypedWordsMax) {
      return invalid_argument("q has more than " + std::to_string(kTypedWordsMax) + " words");
    }
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Result<query::FindRequest> find_request(const Call& call) {
  query::FindRequest request;
  request.namespace_name = namespace_parameter(call);
  EC_ASSIGN_OR_RETURN(request.words, typed_words(call.parameter("q")));
  request.purpose = call.parameter("purpose");
  EC_ASSIGN_OR_RETURN(const auto limit, limit_parameter(call));
  request.limit = std::min(limit.value_or(kFoundByDefault), kFoundMax);
  EC_ASSIGN_OR_RETURN(const auto offset, limit_parameter(call, "offset"));
  request.offset = offset.value_or(0);
  return request;
}

}  // namespace

void get_find(HttpContext& context, Call& call) {
  const auto request = find_request(call);
  if (!request.ok()) return call.answer_error(request.status());
  query::Reach reach;
  reach.patience = call.exchange.patience;
  const auto found = context.parts.query.find(call.principal(), *request, &reach);
  if (!found.ok()) return call.answer_error(found.status());
  std::string json = "{\"found\":[";
  for (const query::FoundSeries::Names& entry : found->series) {
    if (!json.ends_with('[')) json += ',';
    json += "{\"namespace\":";
    wire::append_json_string(entry.namespace_name, json);
    json += ",\"device\":";
    wire::append_json_string(entry.device, json);
    json += ",\"sensor\":";
    wire::append_json_string(entry.sensor, json);
    json += '}';
  }
  json += "],\"next\":";
  json += found->has_more ? std::to_string(request->offset + found->series.size()) : "null";
  reach.patience = nullptr;
  call.exchange.audit.reach = std::move(reach);
  call.answer_json(200, json + "}\n");
}

}  // namespace edgecase::http
