#include "forward/eraser.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "wire/contract.h"
#include "wire/encoding.h"
#include "wire/json_text.h"
#include "wire/selector.h"

namespace edgecase::forward {
namespace {

using Json = nlohmann::json;

// Selectors of one request: what it leaves out is told in one header.
constexpr std::size_t kSelectorsMax = 16;
constexpr std::size_t kSelectorBytes = 3u << 10;
constexpr char kMayNot[] = "the token may not erase there";
constexpr char kSharesRows[] =
    "InfluxDB erases no single fields, and other fields of the same rows are to stay";

constexpr char kUnknownWindows[] = "what went there as windows cannot be read here any more";
constexpr char kUnreadWindows[] = "what went there cannot be read: ";

}  // namespace

Eraser::Eraser(Asked& asked, const config::ForwardSettings& settings,
               const config::ForwardTarget& target, const Shape& shape, const WindowsThere* windows)
    : asked_(asked),
      target_(target),
      watched_{settings.name, target.selections},
      database_(settings.database),
      namespace_(settings.namespace_name),
      bucket_(settings.bucket),
      every_ns_(shape.every_ns),
      pseudonyms_(shape.salt),
      windows_(windows),
      kind_(target.kind == config::ForwardKind::EdgeCase ? Kind::EdgeCase : Kind::Unknown) {}

std::string Eraser::cannot() const {
  if (kind_ == Kind::EdgeCase) return {};
  if (!bucket_.empty()) return "nothing is erased by InfluxDB 2's paths yet; to do: erase it there";
  if (target_.path.find("/insert/") != std::string::npos)
    return "a cluster of VictoriaMetrics erases by vmselect, not where it takes lines; to do: "
           "delete_series there";
  if (kind_ == Kind::Other)
    return "it has no way to erase that is known here; to do: erase it there";
  return {};
}

Answer Eraser::find_kind() {
  if (kind_ != Kind::Unknown || !cannot().empty()) return {};
  HttpAnswer http;
  Answer answer = asked_.ask("GET", "/ping", http);
  if (answer.verdict != Verdict::Taken) return answer;
  std::string_view version = http.influx_version;
  if (version.starts_with('v')) version.remove_prefix(1);
  if (!version.empty()) {
    kind_ = version.starts_with("1.") ? Kind::Influx1 : Kind::Other;
    return answer;
  }
  answer = asked_.ask("GET", "/api/v1/status/buildinfo", http);
  if (answer.verdict != Verdict::Taken) return answer;
  const Json json = parsed(http);
  const bool is_victoria = http.status == 200 && json.is_object() && json.contains("data") &&
                           json["data"].is_object() && json["data"].contains("version");
  kind_ = is_victoria ? Kind::Victoria : Kind::Other;
  return answer;
}

std::string Eraser::database_of(const std::string& namespace_name) const {
  return database_.empty() ? namespace_name : database_;
}

Answer Eraser::erase(const ErasureOrder& asked, const std::vector<ErasedName>& given,
                     const AllNames& all_names, TargetErasure& result) {
  const ErasureOrder order = order_there(asked);
  std::vector<ErasedName> names = given;
  if (Answer answer = find_kind(); answer.verdict != Verdict::Taken) return answer;
  if (const std::string why = cannot(); !why.empty()) {
    worsen(result, ErasureStep::NotPossible, why);
    return {};
  }
  const bool is_vague = std::any_of(names.begin(), names.end(), [this](const ErasedName& each) {
    return each.is_gone && each.is_device &&
           !watched_.takes_device(each.namespace_name, each.device);
  });
  if (is_vague)
    worsen(result, ErasureStep::NotPossible, "which of its sensors went there is not known here");
  if (kind_ == Kind::Victoria && !order.has_all_times) {
    worsen(result, ErasureStep::NotPossible,
           "VictoriaMetrics erases whole series alone, no ranges of times");
    return {};
  }
  if (const Status found = find_gone(order, names, result); !found.ok())
    return later(kUnreadWindows + found.message());
  Answer answer = erase_part({order}, names, all_names, result);
  if (answer.verdict != Verdict::Taken) return answer;
  const auto cut = cut_windows(order, names, result);
  if (!cut.ok() && cut.status().code() != StatusCode::Corruption)
    return later(kUnreadWindows + cut.status().message());
  if (!cut.ok()) worsen(result, ErasureStep::NotPossible, kUnknownWindows);
  for (const std::int64_t begin_ns : cut.ok() ? *cut : std::set<std::int64_t>()) {
    Wish whole{.order = order, .cut_by_ns = order.range.from_ns};
    whole.order.range = {begin_ns, begin_ns + 1};
    answer = erase_part(whole, names, all_names, result);
    if (answer.verdict != Verdict::Taken) return answer;
  }
  if (kind_ == Kind::Victoria)
    worsen(result, ErasureStep::NotProvable, "VictoriaMetrics keeps names in its index");
  else if (kind_ == Kind::Influx1 || result.step == ErasureStep::Waiting)
    worsen(result, ErasureStep::Confirmed, "");
  return {};
}

Answer Eraser::erase_part(const Wish& wish, const std::vector<ErasedName>& names,
                          const AllNames& all_names, TargetErasure& result) {
  std::vector<ErasedName> there;
  for (const ErasedName& each : names) {
    const Status found = each_there(
        wish, each, [&there](const ErasedName& name) { there.push_back(name); }, result);
    if (found.ok()) continue;
    if (found.code() != StatusCode::Corruption) return later(kUnreadWindows + found.message());
    worsen(result, ErasureStep::NotPossible, kUnknownWindows);
  }
  if (kind_ == Kind::EdgeCase) return erase_at_edgecase(wish.order, there, result);
  for (const auto& [group, fields] : groups_of(there, result)) {
    Answer answer = kind_ == Kind::Influx1 ? erase_at_influx(wish, group, fields, all_names, result)
                                           : erase_at_victoria(group, fields, result);
    if (answer.verdict != Verdict::Taken) return answer;
  }
  return {};
}

Answer Eraser::erase_at_edgecase(const ErasureOrder& order, const std::vector<ErasedName>& there,
                                 TargetErasure& result) {
  std::string times;
  if (order.range.from_ns != INT64_MIN)
    times += "&from=" + wire::percent_encode(wire::time_text(order.range.from_ns));
  if (order.range.to_ns)
    times += "&to=" + wire::percent_encode(wire::time_text(*order.range.to_ns));
  if (order.fence_to_ns)
    times += "&fence_to=" + wire::percent_encode(wire::time_text(*order.fence_to_ns));
  if (order.fence == erase::FenceKind::Copies) times += "&fence=copies";
  std::string of_namespace, selectors;
  std::size_t count = 0;
  const auto send = [&]() -> Answer {
    if (count == 0) return {};
    const std::string path = std::string(wire::routes::kErase) +
                             "?ns=" + wire::percent_encode(of_namespace) + selectors + times +
                             "&wait=1s";
    count = 0;
    selectors.clear();
    return ask_edgecase(path, result);
  };
  for (const ErasedName& each : there) {
    if (each.is_of_device) continue;
    const std::string of = namespace_.empty() ? each.namespace_name : namespace_;
    std::string selector = wire::escape_name(each.device);
    if (!each.is_device) selector += "/" + wire::escape_name(each.sensor);
    if (selector.size() > wire::kSelectorMaxBytes) {
      worsen(result, ErasureStep::NotPossible, "a name is longer than a selector may be");
      continue;
    }
    if (of != of_namespace || count == kSelectorsMax || selectors.size() > kSelectorBytes) {
      if (Answer answer = send(); answer.verdict != Verdict::Taken) return answer;
      of_namespace = of;
    }
    selectors += "&select=" + wire::percent_encode(selector);
    ++count;
  }
  return send();
}

Answer Eraser::ask_edgecase(const std::string& path, TargetErasure& result) {
  HttpAnswer http;
  Answer answer = asked_.ask("POST", path, http);
  if (answer.verdict != Verdict::Taken) return answer;
  const Json json = parsed(http);
  if (http.status == 403) {
    worsen(result, ErasureStep::NotPossible, kMayNot);
    return {};
  }
  const auto code = [&json]() -> std::string {
    if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) return {};
    return json["error"].value("code", std::string());
  };
  // Nothing of it is there.
  if (http.status == 404 && code() == "not_found") return {};
  const bool is_certificate = (http.status == 200 || http.status == 202) && json.is_object() &&
                              json.contains("id") && json["id"].is_number_unsigned();
  if (!is_certificate)
    return later(
        "it answers " + std::to_string(http.status) + " to an erasure, not as EdgeCase does",
        http.status);
  result.certificates.push_back(json["id"].get<std::uint64_t>());
  // Nobody can read it there; its bytes go still.
  if (http.status == 202 && result.step != ErasureStep::NotPossible)
    result.step = ErasureStep::Requested;
  if (http.left_out.empty()) return {};
  const Json left = Json::parse(http.left_out, nullptr, false);
  const bool are_absent =
      left.is_array() && std::all_of(left.begin(), left.end(), [](const Json& each) {
        return each.is_object() && !each.contains("more") &&
               each.value("code", std::string()) == "not_found";
      });
  if (!are_absent)
    worsen(result, ErasureStep::NotPossible, "the token may not erase all of it there");
  return {};
}

Answer Eraser::lift(const TargetErasure& erased, std::string& why) {
  for (const std::uint64_t number : erased.certificates) {
    HttpAnswer http;
    Answer answer = asked_.ask(
        "DELETE", std::string(wire::routes::kFences) + "?id=" + std::to_string(number), http);
    if (answer.verdict != Verdict::Taken) return answer;
    if (http.status == 200 || http.status == 404) continue;  // 404: they are lifted, or joined
    if (http.status == 403) {
      why = "the token may not lift fences there";
      return {};
    }
    return later("it answers " + std::to_string(http.status) + " to the lifting of fences",
                 http.status);
  }
  return {};
}

Answer Eraser::look(TargetErasure& result) {
  // The last is the one that is most likely not done.
  for (auto number = result.certificates.rbegin(); number != result.certificates.rend(); ++number) {
    HttpAnswer http;
    Answer answer = asked_.ask(
        "GET", std::string(wire::routes::kErasures) + "?id=" + std::to_string(*number), http);
    if (answer.verdict != Verdict::Taken) return answer;
    const Json json = parsed(http);
    if (http.status != 200 || !json.is_object() || !json.contains("state")) {
      result.step = ErasureStep::NotProvable;
      result.why = "it took the erasure, and does not show its certificate";
      return {};
    }
    if (json["state"] != "done") return later("its bytes go still");
  }
  result.step = ErasureStep::Confirmed;
  result.why.clear();
  return {};
}

Answer Eraser::erase_at_influx(const Wish& wish, const Group& group,
                               const std::set<std::string>& fields, const AllNames& all_names,
                               TargetErasure& result) {
  const ErasureOrder& order = wish.order;
  InfluxAsker influx(asked_);
  InfluxRows rows;
  std::string which;
  bool is_there = false;
  const auto is_refused = [&] {
    if (rows.is_refused) worsen(result, ErasureStep::NotPossible, kMayNot);
    return rows.is_refused;
  };
  Answer answer = influx.find_database(group.database, is_there, rows.is_refused);
  if (answer.verdict != Verdict::Taken || is_refused() || !is_there) return answer;
  answer = influx.series_condition(group.database, group.measurement, group.tags, which,
                                   rows.is_refused);
  if (answer.verdict != Verdict::Taken || is_refused()) return answer;
  const std::string from = " FROM " + InfluxAsker::name_text(group.measurement);
  std::string when;
  const auto add_time = [&](const char* comparison, std::int64_t time_ns) {
    when += (which.empty() && when.empty() ? " WHERE time " : " AND time ") +
            (comparison + (" " + std::to_string(time_ns)));
  };
  if (order.range.from_ns != INT64_MIN) add_time(">=", order.range.from_ns);
  if (order.range.to_ns) add_time("<", *order.range.to_ns);
  const std::string count = "SELECT COUNT(*)" + from + which + when;
  answer = influx.query(group.database, count, rows);
  if (answer.verdict != Verdict::Taken || is_refused() || rows.values.empty()) return answer;
  constexpr std::string_view kCountOf = "count_";
  std::set<std::string> others;
  for (std::size_t i = 1; i < rows.columns.size() && i < rows.values[0].size(); ++i) {
    const std::string& value = rows.values[0][i];
    if (!rows.columns[i].starts_with(kCountOf) || value.empty() || value == "0") continue;
    const std::string field = rows.columns[i].substr(kCountOf.size());
    if (!fields.contains(field)) others.insert(field);
  }
  // They may be names of another chunk.
  if (!others.empty()) {
    const auto is_erased = [&](const ErasedName& each) {
      if (each.is_device) return;
      const auto identity = wire::decode_identity(each.identity);
      if (identity.ok() &&
          Group{database_of(each.namespace_name), identity->measurement, identity->tags} == group) {
        others.erase(identity->field);
      }
    };
    Status found;
    const Status looked = all_names([&](const ErasedName& each) {
      const Status one = each_there(wish, each, is_erased, result);
      if (found.ok() && one.code() != StatusCode::Corruption) found = one;
    });
    if (!found.ok()) return later(kUnreadWindows + found.message());
    if (!looked.ok()) return later("its names cannot be read: " + looked.message());
  }
  if (!others.empty()) {
    worsen(result, ErasureStep::NotPossible, kSharesRows);
    return {};
  }
  answer = influx.query(
      group.database, (order.has_all_times ? "DROP SERIES" : "DELETE") + from + which + when, rows);
  if (answer.verdict != Verdict::Taken || is_refused()) return answer;
  answer = influx.query(group.database, count, rows);
  if (answer.verdict != Verdict::Taken || is_refused()) return answer;
  return rows.values.empty() ? Answer{} : later("what it was to erase is there still");
}

Answer Eraser::erase_at_victoria(const Group& group, const std::set<std::string>& fields,
                                 TargetErasure& result) {
  std::map<std::string, std::string> labels{{"db", group.database}};
  for (const auto& [key, value] : group.tags) labels[key] = value;
  for (const std::string& field : fields) {
    labels["__name__"] = group.measurement.empty() ? field : group.measurement + "_" + field;
    const auto selector = [&labels](const std::set<std::string>& without) {
      std::string text;
      for (const auto& [key, value] : labels)
        text += (text.empty() ? "{" : ",") + label_text(key, value);
      for (const std::string& key : without) text += "," + label_text(key, "");
      return wire::percent_encode(text + "}");
    };
    HttpAnswer http;
    // All times; by itself it looks at the last day alone.
    Answer answer = asked_.ask("POST", "/api/v1/series?start=1&match[]=" + selector({}), http);
    if (answer.verdict != Verdict::Taken) return answer;
    const Json found = parsed(http);
    if (http.status != 200 || !found.is_object() || !found.contains("data") ||
        !found["data"].is_array()) {
      worsen(result, ErasureStep::NotPossible,
             "it does not tell its series (" + std::to_string(http.status) + ")");
      return {};
    }
    std::set<std::string> others;
    bool is_there = false;
    for (const Json& series : found["data"]) {
      if (!series.is_object()) continue;
      bool is_it = true;
      for (const auto& [key, value] : series.items()) {
        if (labels.contains(key)) continue;
        is_it = false;
        others.insert(key);
      }
      is_there = is_there || is_it;
    }
    if (!is_there) continue;
    answer =
        asked_.ask("POST", "/api/v1/admin/tsdb/delete_series?match[]=" + selector(others), http);
    // Its own key for deletions is not ours.
    if (answer.verdict == Verdict::Denied ||
        (answer.verdict == Verdict::Taken && http.status != 204)) {
      worsen(result, ErasureStep::NotPossible,
             "it does not erase (" + std::to_string(http.status) + ")");
      return {};
    }
    if (answer.verdict != Verdict::Taken) return answer;
  }
  return {};
}

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

}  // namespace

std::string InfluxAsker::name_text(std::string_view name) {
  return in_marks(name, '"');
}

Answer InfluxAsker::query(const std::string& database, const std::string& statement,
                          InfluxRows& rows) {
  rows = {};
  HttpAnswer http;
  const std::string path = std::string(wire::routes::kInfluxQuery) +
                           "?epoch=ns&db=" + wire::percent_encode(database) +
                           "&q=" + wire::percent_encode(statement);
  Answer answer = asked_.ask("POST", path, http);
  if (answer.verdict != Verdict::Taken) return answer;
  rows.is_refused = http.status == 403;
  rows.is_cut = http.is_cut;
  if (rows.is_refused) return {};
  if (rows.is_cut) return later("its answer is longer than is taken", http.status);
  const Json json = parsed(http);
  if (http.status != 200 || !json.is_object() || !json.contains("results") ||
      !json["results"].is_array() || json["results"].empty() || !json["results"][0].is_object() ||
      json["results"][0].contains("error")) {
    return later("it answers a statement with an error", http.status);
  }
  const Json& result = json["results"][0];
  if (!result.contains("series") || !result["series"].is_array() || result["series"].empty())
    return {};
  const Json& series = result["series"][0];
  for (const Json& each : series.value("columns", Json::array()))
    rows.columns.push_back(text_of(each));
  for (const Json& row : series.value("values", Json::array())) {
    std::vector<std::string>& values = rows.values.emplace_back();
    for (const Json& each : row) values.push_back(text_of(each));
  }
  return {};
}

Answer InfluxAsker::find_database(const std::string& database, bool& is_there, bool& is_refused) {
  InfluxRows rows;
  Answer answer = query(database, "SHOW DATABASES", rows);
  is_refused = rows.is_refused;
  is_there = std::any_of(rows.values.begin(), rows.values.end(), [&database](const auto& row) {
    return !row.empty() && row[0] == database;
  });
  return answer;
}

Answer InfluxAsker::series_condition(const std::string& database, const std::string& measurement,
                                     const wire::Identity::Tags& tags, std::string& condition,
                                     bool& is_refused) {
  InfluxRows rows;
  Answer answer = query(database, "SHOW TAG KEYS FROM " + name_text(measurement), rows);
  is_refused = rows.is_refused;
  // A series without a tag is told from those with it.
  std::map<std::string, std::string> all;
  for (const auto& row : rows.values)
    if (!row.empty()) all[row[0]] = "";
  for (const auto& [key, value] : tags) all[key] = value;
  condition.clear();
  for (const auto& [key, value] : all) {
    condition +=
        (condition.empty() ? " WHERE " : " AND ") + name_text(key) + " = " + in_marks(value, '\'');
  }
  return answer;
}

}  // namespace edgecase::forward
