// Routes for fences of erasures, to list and to lift them: /api/v1/fences.
#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "http/http_routes.h"
#include "wire/json_values.h"
#include "wire/names.h"

namespace edgecase::http {
namespace {

using erase::Fences;
using wire::Json;

constexpr std::size_t kFencesListedMax = 1000;

struct FencedName {
  std::string namespace_name, select;
};
using FencedNames = std::map<auth::Pseudonym, FencedName>;

// Names that the store knows, or knows again, of those that stand as pseudonyms.
Status find_names(const HttpContext& context, const Fences& fences, FencedNames& names) {
  const catalog::Catalog& catalog = context.parts.catalog;
  const auth::Pseudonyms& pseudonyms = fences.pseudonyms();
  const auto name = [&names](const auth::Pseudonym& of, const std::string& in, std::string select) {
    if (const auto found = names.find(of); found != names.end())
      found->second = {in, std::move(select)};
  };
  for (const std::string& in : catalog.namespaces()) {
    for (const catalog::DeviceEntry& each : catalog.devices(in, "*"))
      name(pseudonyms.of_device(in, each.device), in, wire::escape_name(each.device) + "/*");
    EC_TRY(catalog.each(in, {}, [&](const catalog::SeriesEntry& each) {
      name(pseudonyms.of_series(in, each.device, each.sensor), in,
           wire::escape_name(each.device) + "/" + wire::escape_name(each.sensor));
      return ok();
    }));
  }
  return ok();
}

// A fence of a store of version 0.1 has its moment in the certificate alone.
std::int64_t since_of(const HttpContext& context, const erase::FencedRange& range) {
  if (range.since_ns != 0) return range.since_ns;
  const auto certificate = context.parts.erase.certificate(range.erasure);
  return certificate.ok() ? certificate->invisible_ns : 0;
}

Json time_or_open(std::int64_t time_ns, std::int64_t open_ns) {
  return time_ns == open_ns ? Json(nullptr) : Json(wire::time_text(time_ns));
}

}  // namespace

Result<Json> get_fences(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  const std::string wanted = call.has("ns") ? namespace_parameter(call) : std::string();
  const Fences& fences = context.parts.erase.fences();
  const Fences::Listing listing = fences.list(kFencesListedMax);
  FencedNames names;
  for (const Fences::Listed& each : listing.ranges) names.try_emplace(each.pseudonym);
  if (!names.empty()) EC_TRY(find_names(context, fences, names));
  Json list = Json::array();
  for (const auto& [pseudonym, range] : listing.ranges) {
    const FencedName& name = names.at(pseudonym);
    if (!wanted.empty() && name.namespace_name != wanted) continue;
    const bool is_known = !name.select.empty();
    const std::int64_t since_ns = since_of(context, range);
    list.push_back(
        {{"id", range.erasure},
         {"namespace", is_known ? Json(name.namespace_name) : Json(nullptr)},
         {"select", is_known ? Json(name.select) : Json(nullptr)},
         {"pseudonym", auth::hex_text(auth::view_of(pseudonym))},
         {"from", time_or_open(range.times.from_ns, INT64_MIN)},
         {"to", range.times.to_ns ? Json(wire::time_text(*range.times.to_ns)) : Json(nullptr)},
         {"since", time_or_open(since_ns, 0)},
         {"refuses", range.kind == erase::FenceKind::Lasting ? "all" : "copies"}});
  }
  return Json{{"fences", std::move(list)}, {"more", listing.more}};
}

Result<Json> delete_fences(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  const std::string text = call.parameter("id");
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return invalid_argument("id is a number");
  EC_ASSIGN_OR_RETURN(const std::size_t lifted, context.parts.erase.lift(number));
  call.exchange.audit.count = lifted;
  context.parts.logger.info(
      "erase", "the fences of erasure " + text + " are lifted, by " + call.principal().name);
  return Json{{"lifted", number}, {"fences", lifted}};
}

}  // namespace edgecase::http
