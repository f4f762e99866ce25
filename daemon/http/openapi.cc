// /api/v1/openapi.json: the table of routes as an OpenAPI 3.1 document.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "http/http_routes.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/json_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

enum class ParameterType : unsigned char { Text, Count, Flag, Texts };

struct DocumentedParameter {
  std::string_view key;  // as in Route::parameters
  ParameterType type;
  std::string_view says;
  std::string_view example;
};

constexpr DocumentedParameter kDocumented[] = {
    {"ns", ParameterType::Text, "Namespace; * for all of them, default where it is missing.",
     "default"},
    {"ns@one", ParameterType::Text, "Namespace; default where it is missing.", "default"},
    {"select", ParameterType::Texts,
     "Series as DEVICE/SENSOR, with * and ?; several: what any of them matches.", "kitchen/temp"},
    {"measurement", ParameterType::Texts,
     "Of these the series with one of these measurements, with * and ?.", "temp"},
    {"tag", ParameterType::Texts, "Of these the series with all of these tags, KEY=VALUE.",
     "device=kitchen"},
    {"field", ParameterType::Texts, "Of these the series with one of these fields.", "value"},
    {"from", ParameterType::Text, "Beginning, included: RFC 3339, @SECONDS, now or -15m.", "-1d"},
    {"to", ParameterType::Text, "End, not included, in the same forms.", "now"},
    {"every", ParameterType::Text, "Width of the windows that are aggregated, such as 15m.", "15m"},
    {"agg", ParameterType::Text,
     "mean, min, max, sum, count, first, last, stddev, p50, p95, p99 or minmax.", "mean"},
    {"points", ParameterType::Count,
     "For drawing from..to: of each series so many readings at most, the least and the greatest of "
     "each of half as many windows.",
     "1000"},
    {"limit", ParameterType::Count, "How many at most.", "10"},
    {"desc", ParameterType::Flag, "Newest first.", "true"},
    {"explain", ParameterType::Flag,
     "Instead of rows: how many there are, and what of it the metadata drive answered.", "true"},
    {"format", ParameterType::Text,
     "ndjson, csv, json or line; of /query and /last also parquet or arrow.", "ndjson"},
    {"tiers", ParameterType::Flag,
     "Also the windows that tiers keep of earlier readings, each with its columns.", "true"},
    {"tiers@tail", ParameterType::Flag, "Also windows of tiers, as they are made.", "true"},
    {"layout", ParameterType::Text,
     "long: a reading a row; wide: a column for each series, of csv, ndjson and json.", "long"},
    {"fill", ParameterType::Text,
     "With layout=wide, cells without a reading: none, null, previous, linear or a number.",
     "previous"},
    {"export", ParameterType::Flag, "It is an export: a token needs that scope.", "true"},
    {"export@token", ParameterType::Texts, "Series that it may export; several: any of them.",
     "kitchen/*"},
    {"purpose", ParameterType::Text,
     "What it is read for; devices that do not allow it are left out.", "heating"},
    {"purpose@devices", ParameterType::Text, "Devices that allow this purpose.", "heating"},
    {"purpose@said", ParameterType::Text, "Purposes that the device allows, with commas.",
     "heating,billing"},
    {"purpose@token", ParameterType::Text, "The one purpose that it may read for.", "heating"},
    {"owner", ParameterType::Text, "Devices of this owner.", "ada"},
    {"owner@said", ParameterType::Text, "Whose device it is.", "ada"},
    {"object", ParameterType::Text, "Devices that object to this purpose.", "billing"},
    {"object@said", ParameterType::Text, "Purposes that the device objects to, with commas.",
     "billing"},
    {"label", ParameterType::Texts, "Devices with this label, NAME=VALUE.", "room=hall"},
    {"label@said", ParameterType::Texts, "A label, NAME=VALUE; without a value it is taken back.",
     "room=hall"},
    {"of_owner", ParameterType::Text, "Of devices of this owner.", "ada"},
    {"of_purpose", ParameterType::Text, "Of devices that allow this purpose.", "heating"},
    {"of_object", ParameterType::Text, "Of devices that object to this purpose.", "billing"},
    {"of_label", ParameterType::Texts, "Of devices with this label, NAME=VALUE.", "room=hall"},
    {"location", ParameterType::Text, "Where the device stands.", "hall"},
    {"location@drive", ParameterType::Text,
     "Which drive the backup is made on, one of storage.locations.", "shelf"},
    {"transfer", ParameterType::Text, "Where readings are taken to, one of storage.locations.",
     "shelf"},
    {"moment", ParameterType::Text, "As of a moment that is held for a backup.", "m1"},
    {"cursor", ParameterType::Text, "Where to go on: X-EdgeCase-Cursor of the answer before.", "0"},
    {"device", ParameterType::Text, "A device's name.", "kitchen"},
    {"after", ParameterType::Text, "Those behind this device; NAMESPACE/DEVICE with ns=*.",
     "kitchen"},
    {"after@token", ParameterType::Text, "A duration that it holds on.", "1h"},
    {"name", ParameterType::Text, "A namespace's name.", "lab"},
    {"keep", ParameterType::Text, "How long readings are kept: a duration, or forever.", "30d"},
    {"then", ParameterType::Text,
     "What readings become when they are no longer kept: windows, and how long these are, with "
     "commas between.",
     "1m:90d,1h:forever"},
    {"yes", ParameterType::Flag, "Even where everything would go.", "true"},
    {"as_of", ParameterType::Text, "What held at this time, for a restore.",
     "2025-01-01T00:00:00Z"},
    {"as_of@copy", ParameterType::Text,
     "The readings are a copy made then: what was erased since is not taken.",
     "2025-01-01T00:00:00Z"},
    {"clear", ParameterType::Flag, "What would go without the rule.", "true"},
    {"wait", ParameterType::Text, "How long to wait for the bytes to be gone, at most 60s.", "10s"},
    {"fence", ParameterType::Text,
     "What is refused from now on with such times: all, or copies (restores, imports) alone.",
     "all"},
    {"fence_to", ParameterType::Text,
     "Where the fence ends, of an erasure that was asked for elsewhere before; now.",
     "2025-01-01T00:00:00Z"},
    {"id", ParameterType::Count, "The certificate's number.", "1"},
    {"id@fence", ParameterType::Count, "The erasure's number.", "1"},
    {"id@token", ParameterType::Text, "The token's id.", "abcd"},
    {"topic", ParameterType::Text, "An MQTT topic.", "sensors/kitchen/temp"},
    {"time", ParameterType::Text, "The reading's time, in the forms of `from`.", "@1763647200"},
    {"read", ParameterType::Texts, "Series that it may read; several: any of them.", "kitchen/*"},
    {"write", ParameterType::Texts, "Series that it may write; several: any of them.", "kitchen/*"},
    {"erase", ParameterType::Texts, "Series that it may erase; several: any of them.", "kitchen/*"},
    {"admin", ParameterType::Flag, "It may administer.", "false"},
    {"certificate", ParameterType::Text, "Name in the certificate that it stands for.",
     "sensor-17"},
    {"expires", ParameterType::Text, "A duration or a time after which it ends.", "30d"},
    {"sequence", ParameterType::Count, "Number of a record that a report told.", "1"},
    {"head", ParameterType::Text, "That record's hash, 64 hexadecimal digits.", ""},
    {"db", ParameterType::Text, "Namespace; default where it is missing.", "default"},
    {"rp", ParameterType::Text, "Policy of measurements that name none: a tier, as 1m.", "autogen"},
    {"rp@write", ParameterType::Text, "Policy; one that is a tier takes nothing.", "autogen"},
    {"bucket", ParameterType::Text, "Namespace, and behind a / a policy, as of rp.", "default"},
    {"precision", ParameterType::Text, "Unit of times: n, ns, u, us, ms, s, m or h.", "ns"},
    {"precision@v2", ParameterType::Text, "Unit of times: ns, us, ms or s.", "ns"},
    {"q@influx", ParameterType::Text, "Statements, with semicolons between.", "SHOW DATABASES"},
    {"q@find", ParameterType::Text,
     "Words, all of which must be in names of namespace, device, sensor or a tag; NAME=VALUE also "
     "finds devices with that label.",
     "kitchen"},
    {"epoch", ParameterType::Text, "Times are counts of this unit: ns, u, ms, s, m or h.", "ms"},
    {"pretty", ParameterType::Flag, "JSON over several lines.", "true"},
    {"chunked", ParameterType::Flag, "In documents of chunk_size rows, each on a line.", "true"},
    {"chunk_size", ParameterType::Count, "Rows of a document; 10000 where it is missing.", "1000"},
    {"params", ParameterType::Text, "What $name stands for in statements: a JSON object.",
     R"({"host":"pi"})"},
    {"name@bucket", ParameterType::Text, "The bucket of this name alone.", "default"},
    {"name@target", ParameterType::Text, "A target's name, as in [[forward]].", "cloud"},
    {"action", ParameterType::Text,
     "pause; resume: it is tried at once; verify: what it does not hold is sent again; hand-over: "
     "what origin brought is heir's from now on.",
     "resume"},
    {"origins", ParameterType::Flag, "The stores that forward to this one.", "true"},
    {"summaries", ParameterType::Flag,
     "Signed summaries of hours, 200 at once: of a target, or with origins.", "true"},
    {"origin", ParameterType::Count, "With hand-over: the number of an origin.", "1"},
    {"heir", ParameterType::Count, "With hand-over: that of the store that goes on with it.", "2"},
    {"behind", ParameterType::Text, "With verify or summaries: next of the page before.", ""},
    {"undelivered", ParameterType::Flag, "With resume: what it refused is sent again, too.",
     "true"},
    {"offset", ParameterType::Count, "How many to pass over.", "0"},
    {"org", ParameterType::Text, "A name, which is taken as it is.", "home"},
    {"verbose", ParameterType::Flag, "With the version as a body.", "true"},
    {"namespace", ParameterType::Text, "A namespace's name.", "default"},
    {"sensor", ParameterType::Text, "A sensor's name.", "image"},
    {"file", ParameterType::Text, "A file's name.", "main.js"},
};

struct Refused {
  int status;
  const char* says;
};
// The first may come from any route, the next from those that want a token.
constexpr std::array kRefused = {
    Refused{400, "It asks for what cannot be; lines or readings that are bad are named."},
    Refused{408, "Head or body came too slowly."},
    Refused{413, "The body, or what it holds, is larger than a limit."},
    Refused{414, "The target is too long."},
    Refused{415, "Content-Encoding is none of gzip, zstd, deflate, identity."},
    Refused{417, "Something else than 100-continue is expected."},
    Refused{431, "The head is larger than a limit."},
    Refused{500, "What it is about is damaged on the drive."},
    Refused{503, "It cannot be done now; Retry-After says when to ask again."}};
constexpr std::array kDenied = {Refused{401, "No token, or not a good one."},
                                Refused{403, "The token's scope, or the site that asks, is wrong."},
                                Refused{429, "Too many bad tokens from this address."}};
constexpr std::array kSpecial = {Refused{404, "There is no such thing."},
                                 Refused{501, "This daemon is set up without it."}};

const DocumentedParameter& documented(std::string_view key) {
  const auto* const row =
      std::find_if(std::begin(kDocumented), std::end(kDocumented),
                   [key](const DocumentedParameter& each) { return each.key == key; });
  return row == std::end(kDocumented) ? kDocumented[0] : *row;
}

std::string_view name_of(const DocumentedParameter& row) {
  return row.key.substr(0, row.key.find('@'));
}

Json schema_of(const DocumentedParameter& row) {
  switch (row.type) {
    case ParameterType::Count: return {{"type", "integer"}, {"minimum", 0}};
    case ParameterType::Flag: return {{"type", "boolean"}};
    case ParameterType::Texts: return {{"type", "array"}, {"items", {{"type", "string"}}}};
    case ParameterType::Text: break;
  }
  return {{"type", "string"}};
}

Json example_of(const DocumentedParameter& row) {
  switch (row.type) {
    case ParameterType::Count: return std::stoull(std::string(row.example));
    case ParameterType::Flag: return row.example == "true";
    case ParameterType::Texts: return Json::array({row.example});
    case ParameterType::Text: break;
  }
  return row.example;
}

// Components are named by letters, digits and underscores.
std::string component_name(std::string_view text) {
  std::string name(text);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

Json reference(const char* kind, std::string_view name) {
  return {{"$ref", "#/components/" + std::string(kind) + "/" + component_name(name)}};
}

Json parameter_json(const DocumentedParameter& row, const char* in, bool is_needed) {
  return {{"name", name_of(row)},     {"in", in},
          {"required", is_needed},    {"description", row.says},
          {"schema", schema_of(row)}, {"example", example_of(row)}};
}

Json parameters_of(const Route& route) {
  Json parameters = Json::array();
  std::string_view path = route.path;
  while (path.find('{') != std::string_view::npos) {
    path.remove_prefix(path.find('{') + 1);
    parameters.push_back(parameter_json(documented(path.substr(0, path.find('}'))), "path", true));
  }
  for (std::string_view rest = route.parameters; !rest.empty();) {
    std::string_view key = next_word(rest);
    if (key == "*") continue;
    const bool is_needed = key.ends_with('!');
    if (is_needed) key.remove_suffix(1);
    parameters.push_back(is_needed ? parameter_json(documented(key), "query", true)
                                   : reference("parameters", key));
  }
  return parameters;
}

Json body_of(const Route& route) {
  Json content = Json::object();
  std::string_view types = route.body.types;
  content[std::string(next_word(types))] = {{"schema", Json::object()},
                                            {"example", route.body.example}};
  while (!types.empty()) content[std::string(next_word(types))] = {{"schema", Json::object()}};
  const bool is_needed = route.path != wire::routes::kInfluxQuery;
  return {{"required", is_needed}, {"content", std::move(content)}};
}

// Influx' clients are answered in their own shape.
std::string refused_name(const Route& route, int status) {
  return (is_influx_path(route.path) ? "Influx" : "Refused") + std::to_string(status);
}

Json responses_of(const Route& route) {
  Json responses = Json::object();
  for (std::string_view rest = route.gives; !rest.empty();) {
    std::string_view answer = next_word(rest, '|');
    Json& response = responses[std::string(next_word(answer))];
    response["description"] = route.says;
    while (!answer.empty()) response["content"][std::string(next_word(answer))] = Json::object();
  }
  const auto refuse = [&](const Refused& row) {
    responses[std::to_string(row.status)] = reference("responses", refused_name(route, row.status));
  };
  for (const Refused& row : kRefused) refuse(row);
  if (route.access == Access::Authenticated) {
    for (const Refused& row : kDenied) refuse(row);
  }
  for (const Refused& row : kSpecial) {
    if (route.refusals.find(std::to_string(row.status)) != std::string_view::npos) refuse(row);
  }
  return responses;
}

Json operation_of(const Route& route) {
  std::string method(route.method);
  std::transform(method.begin(), method.end(), method.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  Json operation = {{"operationId", method + component_name(route.path)}, {"summary", route.says}};
  if (route.access == Access::Open) {
    operation["security"] = Json::array();
  } else {
    Json scopes = Json::array();
    if (!route.scope.empty()) scopes.push_back(route.scope);
    operation["security"] = Json::array({Json{{"token", std::move(scopes)}}});
  }
  operation["parameters"] = parameters_of(route);
  if (!route.body.types.empty()) operation["requestBody"] = body_of(route);
  operation["responses"] = responses_of(route);
  return Json{{std::move(method), std::move(operation)}};
}

Json error_schema(bool is_influx) {
  const Json text = {{"type", "string"}};
  if (is_influx) {
    return {{"type", "object"},
            {"required", Json::array({"error", "code", "message"})},
            {"properties", {{"error", text}, {"code", text}, {"message", text}}}};
  }
  return {
      {"type", "object"},
      {"required", Json::array({"error"})},
      {"properties",
       {{"error",
         {{"type", "object"},
          {"required", Json::array({"code", "message"})},
          {"properties", {{"code", text}, {"message", text}, {"line", {{"type", "integer"}}}}}}}}}};
}

Json components() {
  Json components;
  components["securitySchemes"]["token"] = {
      {"type", "http"},
      {"scheme", "bearer"},
      {"description",
       "A token of `edgecase token create`; the scope that it needs stands with "
       "each operation. Basic (the token as password) and Token are taken, too."}};
  for (const DocumentedParameter& row : kDocumented) {
    components["parameters"][component_name(row.key)] = parameter_json(row, "query", false);
  }
  components["schemas"] = {{"Error", error_schema(false)}, {"InfluxError", error_schema(true)}};
  for (const bool is_influx : {false, true}) {
    const char* const schema = is_influx ? "InfluxError" : "Error";
    const auto add = [&](const Refused& row) {
      components["responses"][(is_influx ? "Influx" : "Refused") + std::to_string(row.status)] = {
          {"description", row.says},
          {"content", {{"application/json", {{"schema", reference("schemas", schema)}}}}}};
    };
    for (const Refused& row : kRefused) add(row);
    for (const Refused& row : kDenied) add(row);
    for (const Refused& row : kSpecial) add(row);
  }
  return components;
}

std::string document() {
  Json json = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "EdgeCase"},
        {"version", wire::version()},
        {"description",
         "Readings of devices on an edge board. Until the first token is made this machine's own "
         "programs need none. Each GET answers HEAD, too."}}}};
  for (const Route& route : route_table()) {
    json["paths"][std::string(route.path)].update(operation_of(route));
  }
  json["components"] = components();
  return wire::dump(json);
}

}  // namespace

void get_openapi(HttpContext& /*context*/, Call& call) {
  call.answer_json(200, document());
}

}  // namespace edgecase::http
