// Moments to back up, for administrators: /api/v1/backups. Readings of one come from /api/v1/query
// and /api/v1/series with its name as the parameter `moment`.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/validate.h"
#include "http/http_routes.h"
#include "http/refusal.h"
#include "report/compliance_report.h"
#include "wire/json_values.h"
#include "wire/keeping.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

using wire::Json;

Json rules_json(const HttpServerParts& parts) {
  Json rules = Json::array();
  for (const retention::Rule& rule : parts.retention.rules()) {
    rules.push_back({{"namespace", rule.namespace_name.empty() ? "*" : rule.namespace_name},
                     {"select", rule.selector.device + "/" + rule.selector.sensor},
                     {"keep", wire::keep_text(rule.retention_ns)}});
    if (!rule.tiers.empty()) rules.back()["then"] = wire::tiers_text(rule.tiers);
  }
  return rules;
}

Json namespaces_json(const HttpServerParts& parts) {
  Json namespaces = Json::array();
  for (const std::string& name : parts.catalog.namespaces()) {
    if (wire::is_writable_namespace(name)) namespaces.push_back(name);
  }
  return namespaces;
}

// A moment with what is stored beside readings, as the requests that set it take it:
//   {"moment","made","state":{"namespaces","thinned_series","devices","retention"}}
// What is said of devices, which is more than memory has room for, is looked up as it is told. A
// moment of which not all could be told is let go of: nobody goes on with it.
class MomentPieces final : public PieceSource {
 public:
  MomentPieces(HttpContext& context, std::string moment, std::int64_t made_ns)
      : context_(context), moment_(std::move(moment)), made_ns_(made_ns) {}
  ~MomentPieces() override {
    if (!is_told_) static_cast<void>(context_.moments.release(moment_).ok());
  }
  MomentPieces(const MomentPieces&) = delete;
  MomentPieces& operator=(const MomentPieces&) = delete;

  Result<bool> fill(std::string& piece) override {
    if (std::exchange(is_first_, false)) append_head(piece);
    while (piece.size() < kPieceBytes) {
      EC_ASSIGN_OR_RETURN(const bool more, append_device(piece));
      if (more) continue;
      piece += "],\"retention\":" + wire::compact(rules_json(context_.parts)) + "}}\n";
      is_told_ = true;
      return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kNamesPerPage = 500;

  void append_head(std::string& piece) const {
    const HttpServerParts& parts = context_.parts;
    piece += "{\"moment\":" + wire::compact(moment_) +
             ",\"made\":" + wire::compact(wire::time_text(made_ns_)) +
             ",\"state\":{\"namespaces\":" + wire::compact(namespaces_json(parts)) +
             ",\"thinned_series\":" + std::to_string(parts.retention.marks().size()) +
             ",\"devices\":[";
  }

  // False: that was the last.
  Result<bool> append_device(std::string& piece) {
    if (next_ == names_.size()) {
      if (is_last_page_) return false;
      if (!names_.empty()) page_.after = names_.back();
      EC_ASSIGN_OR_RETURN(names_, context_.parts.devices.all(page_));
      next_ = 0;
      is_last_page_ = names_.size() < page_.limit;
      if (names_.empty()) return false;
    }
    const catalog::DeviceName& name = names_[next_++];
    EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata said, context_.parts.devices.metadata(name));
    if (said.empty()) return true;  // it was erased meanwhile
    Json device = device_json(name, said);
    device["consents"] = report::consents_json(said);
    if (!std::exchange(is_first_device_, false)) piece += ',';
    piece += wire::compact(device);
    return true;
  }

  HttpContext& context_;
  const std::string moment_;
  const std::int64_t made_ns_;
  catalog::DevicePage page_{std::nullopt, kNamesPerPage};
  std::vector<catalog::DeviceName> names_;  // of a page
  std::size_t next_ = 0;
  bool is_last_page_ = false;
  bool is_first_ = true, is_first_device_ = true;
  bool is_told_ = false;
};

// No erasure begins or ends meanwhile: `made_ns` is before or after it, as what the moment holds.
Result<std::string> pin(HttpContext& context, const Call& call, std::int64_t& made_ns) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_TRY(config::check_location(context.parts.settings.storage, call.parameter("location")));
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  made_ns = context.parts.clock.wall_ns();
  return context.moments.pin();
}

}  // namespace

void post_backup(HttpContext& context, Call& call) {
  std::int64_t made_ns = 0;
  auto moment = pin(context, call, made_ns);
  if (!moment.ok()) return call.answer_error(moment.status());
  answer_in_pieces(call, "application/json",
                   std::make_shared<MomentPieces>(context, std::move(moment).value(), made_ns));
  if (call.response.status == 200) call.response.status = 201;
}

Result<Json> delete_backup(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_TRY(context.moments.release(call.parameter("moment")));
  return Json{{"moment", call.parameter("moment")}, {"released", true}};
}

Result<std::shared_ptr<const Snapshot>> moment_parameter(HttpContext& context, const Call& call) {
  if (!call.has("moment")) return std::shared_ptr<const Snapshot>();
  EC_TRY(auth::authorize_administration(call.principal()));
  return context.moments.use(call.parameter("moment"));
}

}  // namespace edgecase::http
