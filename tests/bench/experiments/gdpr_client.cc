#include "bench/experiments/gdpr_client.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/processes.h"
#include "edgecase/machine.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
namespace {

using Json = nlohmann::json;
namespace routes = wire::routes;

constexpr int kRepeatMs = 20;
constexpr int kRepeatsMax = 30'000;  // ten minutes: many erasures wait for one another
constexpr std::size_t kShownBytes = 300;

std::string place_of(std::uint64_t number) {
  return "?ns=" + gdpr_namespace(gdpr_ttl_class(number));
}
std::string device_of(std::uint64_t number) {
  return place_of(number) + "&device=" + gdpr_key(number);
}
std::string selector_of(std::uint64_t number, const char* sensor) {
  return place_of(number) + "&select=" + gdpr_key(number) + "/" + sensor;
}
std::string purpose_of(std::uint64_t number) {
  return gdpr_purpose(gdpr_purpose_of(number));
}

Json parse(const std::string& text) {
  return Json::parse(text, nullptr, false);
}
const Json& member(const Json& json, const char* name) {
  static const Json kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(name);
  return found == json.end() ? kNothing : *found;
}
std::string text_of(const Json& json, const char* name) {
  const Json& found = member(json, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

// Rows of NDJSON: device to value.
std::map<std::string, std::string> rows_of(const std::string& body) {
  std::map<std::string, std::string> rows;
  for (std::size_t first = 0; first < body.size();) {
    const std::size_t end = std::min(body.find('\n', first), body.size());
    const Json row = parse(body.substr(first, end - first));
    rows[text_of(row, "device")] = text_of(row, "value");
    first = end + 1;
  }
  return rows;
}

std::int64_t client_now_ns() {
  return system_clock().wall_ns();
}

}  // namespace

Result<GdprClient::Answer> GdprClient::ask(const char* method, const std::string& path,
                                           const std::string& body) {
  const std::string request = http_request(method, path, target_.headers, body);
  for (int i = 0; i < kRepeatsMax; ++i) {
    Answer answer;
    EC_ASSIGN_OR_RETURN(
        const HttpAnswer got,
        http_.exchange(request, [&answer](std::string_view piece) { answer.body.append(piece); }));
    answer.status = got.status;
    if (answer.status != 503) return answer;
    ++repeats_;
    sleep_ms(kRepeatMs);
  }
  return busy("the daemon answers 503 for ten minutes to " + path);
}

bool GdprClient::judged(bool is_right, const std::string& what, const Answer& answer) {
  if (!is_right && mistake_.empty())
    mistake_ =
        what + ": HTTP " + std::to_string(answer.status) + " " + answer.body.substr(0, kShownBytes);
  return is_right;
}

Result<bool> GdprClient::run(const GdprOperation& operation) {
  switch (operation.act) {
    case GdprAct::CreateRecord: return create_record();
    case GdprAct::DeleteRecord: return delete_record(operation.number);
    case GdprAct::UpdateMetadataOfPurpose:
    case GdprAct::UpdateMetadataOfUser: return update_group(operation);
    case GdprAct::UpdateMetadata: return update_metadata(operation);
    case GdprAct::UpdateData: return update_data(operation.number);
    case GdprAct::ReadData: return read_data(operation.number);
    case GdprAct::ReadMetadata: return read_metadata(operation.number);
    case GdprAct::ReadDataOfPurpose: return read_data_of_purpose(operation.number);
    case GdprAct::ReadDataOfUser: return read_data_of_user(operation.number);
    case GdprAct::ReadMetadataOfUser: return read_metadata_of_user(operation.number);
    case GdprAct::ReadLog: return read_log(operation.other);
    case GdprAct::VerifyDeletion: return verify_deletion(operation.number);
  }
  return false;
}

Result<bool> GdprClient::create_record() {
  const std::shared_lock world(locks_.world);
  const std::uint64_t number = model_.take_number();
  GdprRecord record = model_.layout().record(number);
  record.time_ns = client_now_ns();
  EC_ASSIGN_OR_RETURN(Answer answer,
                      ask("POST", routes::kDevices, gdpr_description(number, record)));
  if (!judged(answer.status == 200, "describe " + gdpr_key(number), answer)) return false;
  EC_ASSIGN_OR_RETURN(answer, ask("POST", routes::kReadings, gdpr_reading(number, record)));
  model_.add(number, record);
  return judged(answer.status == 200, "create " + gdpr_key(number), answer);
}

// Returns once nobody can read it any more; the bytes go meanwhile, see wait_until_gone().
Result<bool> GdprClient::delete_record(std::uint64_t number) {
  const std::shared_lock world(locks_.world);
  const std::lock_guard own(locks_.stripe(number));
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("POST", std::string(routes::kErase) +
                                                           selector_of(number, "*") + "&wait=0s"));
  const bool was_there = !model_.record(number).is_erased;
  if (!was_there) return judged(answer.status == 404, "erase again " + gdpr_key(number), answer);
  model_.set_erased(number);
  const Json certificate = parse(answer.body);
  const Json& id = member(certificate, "id");
  const bool is_right = (answer.status == 200 || answer.status == 202) && id.is_number_unsigned();
  if (is_right) last_erasure_ = std::max(last_erasure_, id.get<std::uint64_t>());
  return judged(is_right, "erase " + gdpr_key(number), answer);
}

Status GdprClient::wait_until_gone(std::uint64_t number) {
  if (number == 0) return ok();
  const std::string path =
      std::string(routes::kErasures) + "?id=" + std::to_string(number) + "&wait=10s";
  for (int i = 0; i < kRepeatsMax; ++i) {
    EC_ASSIGN_OR_RETURN(const Answer answer, ask("GET", path));
    if (answer.status != 200) return io_error("no certificate: " + answer.body);
    const Json certificate = parse(answer.body);
    if (text_of(certificate, "state") == "done") return ok();
    if (member(certificate, "drive_away") == true) return unavailable("a drive is away");
    sleep_ms(1);
  }
  return busy("erased bytes are still there");
}

// Updates a record. One that was erased is not stored, and told: its time was.
Result<bool> GdprClient::update_data(std::uint64_t number) {
  const std::shared_lock world(locks_.world);
  const std::lock_guard own(locks_.stripe(number));
  GdprRecord record = model_.record(number);
  ++record.version;
  const std::int64_t from_ns = client_now_ns();
  EC_ASSIGN_OR_RETURN(const Answer answer,
                      ask("POST", routes::kReadings, gdpr_reading(number, record)));
  const std::string what = "update data of " + gdpr_key(number);
  if (record.is_erased) {
    const bool is_told = answer.status == 200 && member(parse(answer.body), "erased") == 1;
    return judged(is_told, what + ", erased", answer);
  }
  const bool is_there =
      GdprModel::presence(number, record, from_ns, client_now_ns()) == Presence::There;
  if (answer.status == 200) model_.set_version(number, record.version);
  return judged(answer.status == 200 || !is_there, what, answer);
}

std::uint32_t GdprClient::value_of(const GdprOperation& operation) const {
  return model_.layout().value(operation.other, operation.field);
}

Result<bool> GdprClient::update_metadata(const GdprOperation& operation) {
  const std::uint64_t number = operation.number;
  const std::shared_lock world(locks_.world);
  const std::lock_guard own(locks_.stripe(number));
  const GdprRecord record = model_.record(number);
  const std::string text = gdpr_text(operation.field, value_of(operation));
  std::string path = routes::kDevice + device_of(number);
  if (operation.field == GdprField::User) {
    path += "&owner=" + text;
  } else if (operation.field == GdprField::Objection) {
    path += "&object=" + text;
  } else {
    path += std::string("&label=") + gdpr_label(operation.field) + "=" + text;
  }
  // What is said of a record that was erased since it was read is not taken.
  std::string nanoseconds = std::to_string(record.time_ns % 1'000'000'000);
  nanoseconds.insert(0, 9 - nanoseconds.size(), '0');
  path += "&as_of=@" + std::to_string(record.time_ns / 1'000'000'000) + "." + nanoseconds;
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("POST", path));
  if (!record.is_erased && answer.status == 200)
    model_.set_value(number, operation.field, value_of(operation));
  return judged(answer.status == (record.is_erased ? 400 : 200),
                "update metadata of " + gdpr_key(number), answer);
}

std::string GdprClient::query_of_purpose(std::uint64_t number) const {
  return place_of(number) + "&purpose=" + purpose_of(number) + "&after=" + gdpr_key(number) +
         "&limit=" + std::to_string(target_.page);
}

std::string GdprClient::query_of_user(std::uint64_t number) const {
  const std::uint32_t user = model_.layout().value(number, GdprField::User);
  return "?ns=*&owner=" + gdpr_text(GdprField::User, user);
}

std::vector<std::uint64_t> GdprClient::group_of_user(std::uint64_t number) const {
  return model_.of_user(model_.layout().value(number, GdprField::User));
}

Result<bool> GdprClient::list(const std::string& query,
                              const std::vector<std::uint64_t>& expected) {
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("GET", routes::kDevices + query));
  const Json json = parse(answer.body);
  const Json& devices = member(json, "devices");
  bool is_right = answer.status == 200 && devices.is_array() && devices.size() == expected.size();
  for (std::size_t i = 0; is_right && i < expected.size(); ++i) {
    is_right = text_of(devices[i], "device") == gdpr_key(expected[i]) &&
               text_of(devices[i], "namespace") == gdpr_namespace(gdpr_ttl_class(expected[i]));
  }
  return judged(is_right, "list " + query + " of " + std::to_string(expected.size()), answer);
}

// Finds the group, and says the same of all in it.
Result<bool> GdprClient::update_group(const GdprOperation& operation) {
  const std::unique_lock world(locks_.world);
  const std::uint64_t number = operation.number;
  const bool by_user = operation.act == GdprAct::UpdateMetadataOfUser;
  std::vector<std::uint64_t> group =
      by_user ? group_of_user(number)
              : model_.of_purpose(gdpr_ttl_class(number), gdpr_purpose_of(number), number,
                                  target_.page);
  group.resize(std::min(group.size(), target_.page));
  const std::string query = by_user
                                ? query_of_user(number) + "&limit=" + std::to_string(target_.page)
                                : query_of_purpose(number);
  EC_ASSIGN_OR_RETURN(const bool is_found, list(query, group));
  if (!is_found || group.empty()) return is_found;
  const std::string text = gdpr_text(operation.field, value_of(operation));
  Json said = Json::array();
  for (const std::uint64_t each : group) {
    Json device = {{"namespace", gdpr_namespace(gdpr_ttl_class(each))}, {"device", gdpr_key(each)}};
    if (operation.field == GdprField::User) {
      device["owner"] = text;
    } else if (operation.field == GdprField::Objection) {
      device["objections"] = {text};
    } else {
      device["labels"] = {{gdpr_label(operation.field), text}};
    }
    said.push_back(std::move(device));
  }
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("POST", routes::kDevices, said.dump()));
  if (!judged(answer.status == 200, "update group " + query, answer)) return false;
  for (const std::uint64_t each : group)
    model_.set_value(each, operation.field, value_of(operation));
  return true;
}

Result<bool> GdprClient::read_data(std::uint64_t number) {
  const std::shared_lock world(locks_.world);
  const std::lock_guard own(locks_.stripe(number));
  const GdprRecord record = model_.record(number);
  const std::int64_t from_ns = client_now_ns();
  EC_ASSIGN_OR_RETURN(const Answer answer,
                      ask("GET", routes::kLast + selector_of(number, kGdprSensor) +
                                     "&purpose=" + purpose_of(number)));
  const std::string what = "read " + gdpr_key(number);
  if (record.is_erased) return judged(answer.status == 404, what + ", erased", answer);
  const auto rows = rows_of(answer.body);
  const Presence presence = GdprModel::presence(number, record, from_ns, client_now_ns());
  const bool is_data =
      rows.size() == 1 && rows.begin()->second == gdpr_data(number, record.version);
  const bool is_right = presence == Presence::There  ? is_data
                        : presence == Presence::Gone ? rows.empty()
                                                     : is_data || rows.empty();
  return judged(answer.status == 200 && is_right, what, answer);
}

Result<bool> GdprClient::read_metadata(std::uint64_t number) {
  const std::shared_lock world(locks_.world);
  const std::lock_guard own(locks_.stripe(number));
  const GdprRecord record = model_.record(number);
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("GET", routes::kDevice + device_of(number)));
  const std::string what = "read metadata of " + gdpr_key(number);
  if (record.is_erased) return judged(answer.status == 404, what + ", erased", answer);
  Json got = parse(answer.body);
  if (got.is_object()) got.erase("location");
  return judged(answer.status == 200 && got == parse(gdpr_description(number, record)), what,
                answer);
}

// The next of the purpose, then the data of each, for that purpose.
Result<bool> GdprClient::read_data_of_purpose(std::uint64_t number) {
  const std::vector<std::uint64_t> group =
      model_.of_purpose(gdpr_ttl_class(number), gdpr_purpose_of(number), number, target_.page);
  EC_ASSIGN_OR_RETURN(bool is_right, list(query_of_purpose(number), group));
  for (const std::uint64_t each : group) {
    EC_ASSIGN_OR_RETURN(const bool is_read, read_data(each));
    is_right = is_right && is_read;
  }
  return is_right;
}

// What `edgecase export --owner` asks for.
Result<bool> GdprClient::read_data_of_user(std::uint64_t number) {
  const std::vector<std::uint64_t> group = group_of_user(number);
  const std::string query = query_of_user(number);
  const std::int64_t from_ns = client_now_ns();
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("GET", routes::kQuery + query));
  const std::string what = "read data, " + query;
  if (group.empty()) return judged(answer.status == 404, what, answer);
  auto rows = rows_of(answer.body);
  bool is_right = answer.status == 200;
  for (const std::uint64_t each : group) {
    const GdprRecord record = model_.record(each);
    const Presence presence = GdprModel::presence(each, record, from_ns, client_now_ns());
    const auto row = rows.extract(gdpr_key(each));
    if (row.empty()) {
      is_right = is_right && presence != Presence::There;
    } else {
      is_right =
          is_right && presence != Presence::Gone && row.mapped() == gdpr_data(each, record.version);
    }
  }
  return judged(is_right && rows.empty(), what, answer);
}

Result<bool> GdprClient::read_metadata_of_user(std::uint64_t number) {
  return list(query_of_user(number), group_of_user(number));
}

// As many of the newest records as there are, one after another.
Result<bool> GdprClient::read_log(std::uint32_t lines) {
  EC_ASSIGN_OR_RETURN(
      const Answer answer,
      ask("GET", std::string(routes::kAudit) + "?desc=true&limit=" + std::to_string(lines)));
  // A record is a line, which need not be taken apart to know which one it is.
  constexpr std::string_view kRecord = "\n{\"sequence\":";
  std::string_view rest = answer.body;
  bool is_right = answer.status == 200 && rest.starts_with("{\"records\":[");
  std::uint64_t records = 0, next = 0;
  for (std::size_t at = rest.find('\n'); is_right && at + 1 < rest.size(); at = rest.find('\n')) {
    rest.remove_prefix(at);
    is_right = rest.starts_with(kRecord);
    rest.remove_prefix(std::min(kRecord.size(), rest.size()));
    std::uint64_t sequence = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), sequence);
    is_right = is_right && error == std::errc() && (records == 0 || sequence == next);
    next = sequence - 1;
    ++records;
  }
  is_right = is_right && records <= lines && answer.body.ends_with("}]}\n");
  // Fewer than asked for only where the log begins: at record 1.
  if (is_right && records < lines) is_right = records > 0 && next == 0;
  return judged(is_right, "read " + std::to_string(lines) + " lines of the log", answer);
}

Result<bool> GdprClient::verify_deletion(std::uint64_t number) {
  EC_ASSIGN_OR_RETURN(const Answer answer, ask("GET", routes::kErasures + device_of(number)));
  const Json json = parse(answer.body);
  const Json& erasures = member(json, "erasures");
  const bool is_erased = model_.record(number).is_erased;
  bool is_right = answer.status == 200 && erasures.is_array();
  is_right = is_right && erasures.size() == (is_erased ? 1 : 0);
  if (is_right && is_erased) is_right = text_of(erasures[0], "state") == "done";
  return judged(is_right, "verify deletion of " + gdpr_key(number), answer);
}

}  // namespace edgecase::cli::bench
