// Erasure, whereabouts, fences: /api/v1/erase, /api/v1/erase/preview, /api/v1/erasures,
// /api/v1/where, /api/v1/fences.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "forward/forwarding.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "query/query_service.h"
#include "wire/contract.h"
#include "wire/json_text.h"
#include "wire/names.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;
using wire::time_or_null;

constexpr std::int64_t kWaitMaxNs = 60'000'000'000;
constexpr std::size_t kListedMax = 1000;

template <typename Number>
Json number_or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Result<std::optional<std::int64_t>> time_parameter(const HttpContext& context, const Call& call,
                                                   const char* name) {
  if (!call.has(name)) return std::optional<std::int64_t>();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                      wire::parse_time_ns(call.parameter(name), context.parts.clock.wall_ns()));
  return std::optional<std::int64_t>(time_ns);
}

Result<erase::EraseRequest> request_of(const HttpContext& context, const Call& call) {
  erase::EraseRequest request;
  request.namespace_name = namespace_parameter(call);
  EC_ASSIGN_OR_RETURN(request.devices, filter_parameters(call));
  const bool is_said = request.devices.empty() ? has_selection(call) : !call.has("select");
  if (!is_said) {
    return invalid_argument(
        "say what to erase: select, measurement, tag or field; or of which devices (owner, "
        "purpose, object, label)");
  }
  EC_ASSIGN_OR_RETURN(request.selection, selection_parameters(call));
  EC_ASSIGN_OR_RETURN(request.selection, context.by_names_here(call, std::move(request.selection)));
  EC_ASSIGN_OR_RETURN(request.from_ns, time_parameter(context, call, "from"));
  EC_ASSIGN_OR_RETURN(request.to_ns, time_parameter(context, call, "to"));
  EC_ASSIGN_OR_RETURN(request.fence_to_ns, time_parameter(context, call, "fence_to"));
  if (const std::string fence = call.parameter("fence"); fence == "copies") {
    request.fence = erase::FenceKind::Copies;
  } else if (!fence.empty() && fence != "all") {
    return invalid_argument("fence is neither all nor copies");
  }
  return request;
}

Result<std::int64_t> wait_parameter(const Call& call) {
  if (!call.has("wait")) return kErasureWaitNs;
  EC_ASSIGN_OR_RETURN(const std::int64_t wait_ns, wire::parse_duration_ns(call.parameter("wait")));
  return std::min(wait_ns, kWaitMaxNs);
}

// Workers that wait are none for others: half of them at most, the rest get their answer at once.
Result<erase::Certificate> wait_for(HttpContext& context, std::uint64_t number,
                                    std::int64_t wait_ns) {
  static std::atomic<std::uint32_t> waiting{0};
  const std::uint32_t most = std::max(context.parts.settings.http.threads / 2, 1u);
  if (waiting.fetch_add(1) >= most) wait_ns = 0;
  auto certificate = context.parts.erase.wait(number, wait_ns);
  waiting.fetch_sub(1);
  return certificate;
}

// What became of an erasure where readings went to; empty: no target is concerned.
Json targets_json(const HttpContext& context, std::uint64_t number) {
  Json targets = Json::array();
  if (context.parts.forwarding == nullptr) return targets;
  const auto all = context.parts.forwarding->erasures().of(number);
  if (!all.ok()) return Json::array({{{"name", nullptr}, {"state", "unknown"}}});
  for (const forward::TargetErasure& each : *all) {
    Json json = {{"name", each.target},
                 {"state", forward::step_name(each.step)},
                 {"why", each.why.empty() ? Json(nullptr) : Json(each.why)},
                 {"answered",
                  each.answered_ns == 0 ? Json(nullptr) : Json(wire::time_text(each.answered_ns))}};
    if (!each.certificates.empty()) json["certificates"] = each.certificates;
    targets.push_back(std::move(json));
  }
  return targets;
}

// Where an erasure of this would be passed on to.
Json preview_targets_json(const HttpContext& context, const erase::ErasePreview& found) {
  Json targets = Json::array();
  if (context.parts.forwarding == nullptr) return targets;
  std::vector<catalog::SeriesEntry> series;
  for (const auto& each : found.matched) series.push_back(each.entry);
  const bool are_all = found.matched.size() == found.series && found.series > 0;
  const std::vector<std::string> takers =
      context.parts.forwarding->erasures().takers(series, are_all);
  for (const forward::TargetStatus& each : context.parts.forwarding->list()) {
    if (std::find(takers.begin(), takers.end(), each.name) == takers.end()) continue;
    const bool can = each.cannot_erase.empty();
    targets.push_back({{"name", each.name},
                       {"state", can ? "will be asked" : "not possible"},
                       {"why", can ? Json(nullptr) : Json(each.cannot_erase)}});
  }
  return targets;
}

Json certificate_json(const HttpContext& context, const erase::Certificate& certificate) {
  const bool is_done = certificate.state == erase::ErasureState::Done;
  const erase::Reach reach = context.parts.erase.reach_of(certificate);
  Json json = {{"id", certificate.number},
               {"state", is_done ? "done" : "pending"},
               {"level", erase::level_name(reach.level)},
               {"level_why", reach.why.empty() ? Json(nullptr) : Json(reach.why)},
               {"asked", time_or_null(certificate.asked_ns)},
               {"asked_by", certificate.asked_by},
               {"invisible", time_or_null(certificate.invisible_ns)},
               {"gone", is_done ? time_or_null(certificate.gone_ns) : Json(nullptr)},
               {"from", time_or_null(certificate.from_ns)},
               {"to", time_or_null(certificate.to_ns)},
               {"with_names", certificate.with_names},
               {"devices", certificate.devices},
               {"series", certificate.series},
               {"readings", number_or_null(certificate.readings)},
               {"bytes", number_or_null(certificate.bytes)},
               {"windows", certificate.windows},
               {"retention_rules", certificate.rules},
               {"rejected_messages", certificate.messages},
               {"destroyed_keys", certificate.destroyed_keys},
               {"removed_files", certificate.removed_files},
               {"overwritten_bytes", certificate.overwritten_bytes},
               {"rewritten_bytes", certificate.rewritten_bytes},
               {"device_pseudonyms", certificate.device_pseudonyms},
               {"series_pseudonyms", certificate.series_pseudonyms},
               {"owner_pseudonym", certificate.owner_pseudonym}};
  if (const Json targets = targets_json(context, certificate.number); !targets.empty()) {
    json["targets"] = targets;
    // Sealed, until the last target has answered.
    json["names_wait"] = std::any_of(targets.begin(), targets.end(), [](const Json& each) {
      return each["state"] == "waiting" || each["state"] == "requested";
    });
  }
  if (!is_done) {
    const Status obstacle = context.parts.erase.obstacle();
    if (!obstacle.ok()) json["waiting_for"] = obstacle.message();
    json["drive_away"] = obstacle.code() == StatusCode::Unavailable;
  }
  return json;
}

Json amount_json(const erase::Amount& amount) {
  return {{"readings", number_or_null(amount.readings)},
          {"bytes", number_or_null(amount.bytes)},
          {"first", time_or_null(amount.first_ns)},
          {"last", time_or_null(amount.last_ns)}};
}

// A glob that takes everything needs `yes=true`.
Result<erase::Certificate> begin(HttpContext& context, const Call& call,
                                 std::vector<wire::LeftSelector>& left) {
  EC_ASSIGN_OR_RETURN(const erase::EraseRequest request, request_of(context, call));
  EC_ASSIGN_OR_RETURN(const std::int64_t wait_ns, wait_parameter(call));
  const auto everything =
      call.parameter("yes") == "true" ? erase::Everything::Allowed : erase::Everything::Refused;
  return erase_and_wait(context, call.principal(), request, everything, wait_ns, &left);
}

Json told_certificate(HttpContext& context, const Call& call,
                      const erase::Certificate& certificate) {
  Json json = certificate_json(context, certificate);
  sign_certificate(context, call, certificate.state, json);
  return json;
}

// Answers one certificate by its number; whoever erased may look at it.
Result<Json> one_certificate(HttpContext& context, const Call& call) {
  const std::string text = call.parameter("id");
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid_argument("id is a number");
  std::int64_t wait_ns = 0;
  if (call.has("wait")) {
    EC_ASSIGN_OR_RETURN(wait_ns, wait_parameter(call));
  }
  EC_ASSIGN_OR_RETURN(const erase::Certificate found, wait_for(context, number, wait_ns));
  const Status administers = auth::authorize_administration(call.principal());
  if (!administers.ok() && found.asked_by != call.principal().name) return administers;
  return told_certificate(context, call, found);
}

// {"erasures","fences","refused_readings"}: the newest kListedMax, a few of them in memory at once.
class CertificatePieces final : public PieceSource {
 public:
  CertificatePieces(HttpContext& context, const Call& call) : context_(context) {
    if (call.has("device")) device_ = {namespace_parameter(call), call.parameter("device")};
    owner_ = call.parameter("owner");
  }

  Result<bool> fill(std::string& piece) override {
    if (told_ == 0) piece += "{\"erasures\":[";
    erase::EraseService& erasures = context_.parts.erase;
    while (piece.size() < kPieceBytes) {
      const std::size_t most = std::min(kPerPage, kListedMax - told_);
      EC_ASSIGN_OR_RETURN(const std::vector<erase::Certificate> page,
                          erasures.certificates(device_, owner_, most, before_));
      for (const erase::Certificate& each : page) {
        if (told_++ > 0) piece += ',';
        piece += wire::compact(certificate_json(context_, each));
        before_ = each.number;
      }
      if (page.size() == kPerPage) continue;
      piece += "],\"fences\":" + std::to_string(erasures.fences().size()) +
               ",\"refused_readings\":" + std::to_string(erasures.fences().refused_count()) + "}\n";
      return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kPerPage = 20;

  HttpContext& context_;
  std::optional<catalog::DeviceName> device_;
  std::string owner_;
  std::uint64_t before_ = UINT64_MAX;
  std::size_t told_ = 0;
};

const char* layer_name(FileLayer layer) {
  switch (layer) {
    case FileLayer::Metadata: return "metadata";
    case FileLayer::Values: return "values";
    case FileLayer::Log: break;
  }
  return "log";
}

}  // namespace

Result<erase::Certificate> erase_and_wait(HttpContext& context, const auth::Principal& principal,
                                          const erase::EraseRequest& request,
                                          erase::Everything everything, std::int64_t wait_ns,
                                          std::vector<wire::LeftSelector>* left) {
  EC_ASSIGN_OR_RETURN(const erase::Certificate begun,
                      context.parts.erase.erase(principal, request, everything, left));
  // What followers wait for and backups hold would keep its bytes.
  context.parts.ingest.feed().clear();
  context.moments.release_all();
  context.parts.logger.info("erase", "erasure " + std::to_string(begun.number) + " of " +
                                         std::to_string(begun.series) + " series, asked for by " +
                                         principal.name);
  return wait_for(context, begun.number, wait_ns);
}

void post_erase(HttpContext& context, Call& call) {
  std::vector<wire::LeftSelector> left;
  const auto certificate = begin(context, call, left);
  if (!certificate.ok()) return call.answer_error(certificate.status());
  // The certificate is signed, and names nobody: what it does not cover stands in the head alone.
  tell_left_out(call, left_out_json(call, left));
  call.exchange.audit.detail = "erasure " + std::to_string(certificate->number);
  call.exchange.audit.count = certificate->readings.value_or(0);
  call.answer_json(certificate->state == erase::ErasureState::Done ? 200 : 202,
                   wire::dump(told_certificate(context, call, *certificate)));
}

Result<Json> get_erase_preview(HttpContext& context, const Call& call) {
  EC_ASSIGN_OR_RETURN(const erase::EraseRequest request, request_of(context, call));
  EC_ASSIGN_OR_RETURN(const erase::ErasePreview found,
                      context.parts.erase.preview(call.principal(), request));
  Json json = {{"devices", found.devices}, {"series", found.series}};
  json.update(amount_json(found.amount));
  json["everything"] = found.is_everything;
  json["windows"] = found.windows;
  json["windows_note"] =
      found.cuts_windows ? Json("windows of tiers that the range cuts go whole") : Json(nullptr);
  // Where not all are named here, the record says that they may be any.
  if (found.matched.size() == found.series) {
    query::Reach& reach = call.exchange.audit.reach.emplace();
    for (const auto& each : found.matched) reach.add(each.entry.namespace_name, each.entry.device);
  }
  Json matched = Json::array();
  for (const auto& each : found.matched) {
    Json series = {{"namespace", each.entry.namespace_name},
                   {"device", each.entry.device},
                   {"sensor", each.entry.sensor}};
    series.update(amount_json(each.amount));
    matched.push_back(std::move(series));
  }
  const erase::Reach how_far = context.parts.erase.reach(
      context.parts.erase.drives().look(), found.devices > 0 && found.takes_whole_devices);
  json["level"] = erase::level_name(how_far.level);
  json["level_why"] = how_far.why.empty() ? Json(nullptr) : Json(how_far.why);
  json["matched"] = std::move(matched);
  if (!found.left.empty()) json[kLeftOutMember] = left_out_json(call, found.left);
  if (Json targets = preview_targets_json(context, found); !targets.empty())
    json["targets"] = std::move(targets);
  return json;
}

// The list is for administrators.
void get_erasures(HttpContext& context, Call& call) {
  if (call.has("id")) {
    const auto found = one_certificate(context, call);
    if (!found.ok()) return call.answer_error(found.status());
    return call.answer_json(200, wire::dump(*found));
  }
  if (const Status status = auth::authorize_administration(call.principal()); !status.ok()) {
    return call.answer_error(status);
  }
  answer_in_pieces(call, "application/json", std::make_shared<CertificatePieces>(context, call));
}

Result<Json> get_where(HttpContext& context, const Call& call) {
  EC_ASSIGN_OR_RETURN(const wire::Selection selection, selection_parameters(call));
  EC_ASSIGN_OR_RETURN(
      const query::Whereabouts found,
      query::find_whereabouts(context.parts.query, context.parts.devices, call.principal(),
                              namespace_parameter(call), selection));
  call.exchange.audit.reach = found.reach;
  const config::StorageSettings& storage = context.parts.settings.storage;
  Json files = Json::array();
  for (const query::Whereabouts::File& file : found.files) {
    const std::size_t slash = file.share.path.rfind('/');
    const std::string directory = file.share.path.substr(0, slash);
    const bool is_of_values = directory == storage.values;
    files.push_back(
        {{"drive", is_of_values ? "values" : "metadata"},
         {"drive_location", is_of_values ? storage.values_location : storage.metadata_location},
         {"directory", directory},
         {"file", file.share.path.substr(slash + 1)},
         {"layer", layer_name(file.share.layer)},
         {"bytes", file.share.bytes},
         {"file_bytes", file.share.file_bytes},
         {"locations", file.locations}});
  }
  Json json{{"devices", found.devices},
            {"series", found.series},
            {"bytes", found.bytes},
            {"window_bytes", found.window_bytes},
            {"files", std::move(files)}};
  if (!found.left_out.empty()) json[kLeftOutMember] = query::left_out_json(found.left_out);
  return json;
}

void register_erase_metrics(HttpContext& context) {
  observe::Metrics& metrics = context.parts.metrics;
  metrics.callback(observe::MetricKind::Gauge, "edgecase_erasures_pending",
                   "Erasures that are invisible, with bytes left.", {},
                   [&context] { return static_cast<double>(context.parts.erase.pending_count()); });
  metrics.callback(observe::MetricKind::Counter, "edgecase_refused_readings_total",
                   "Readings refused since their times were erased.", {}, [&context] {
                     return static_cast<double>(context.parts.erase.fences().refused_count());
                   });
}

// Fences of erasures, to list and to lift them.

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
