// The audit log: /api/v1/audit and /api/v1/audit/verify, for administrators.
#include <algorithm>
#include <charconv>
#include <compare>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "audit/audit_log.h"
#include "catalog/catalog.h"
#include "edgecase/mutex.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

// In memory at once, of an owner.
constexpr std::size_t kNamesAtOnce = 1'000;
constexpr std::size_t kCertificatesAtOnce = 20;

using wire::Json;

void append_number(std::uint64_t number, std::string& text) {
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  text.append(digits, end);
}

// ,"name":"value"
void append_member(std::string_view name, std::string_view value, std::string& text) {
  text.append(",\"").append(name).append("\":");
  const bool is_plain = std::all_of(value.begin(), value.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  if (!is_plain) {
    text += wire::compact(Json(value));
  } else {
    text.append(1, '"').append(value).append(1, '"');
  }
}

Status no_log() {
  return unsupported("there is no audit log here");
}

}  // namespace

// What pseudonyms stand for, as long as the devices are there. It remembers where the catalog has
// their names, and learns of new devices when it is asked; what it told it keeps until something
// else is said of any device, or one goes: then the last of that is gone from here, too.
// Thread-safe.
class DeviceNames {
 public:
  explicit DeviceNames(HttpContext& context)
      : context_(context), set_aside_(context.parts.engine) {}

  void learn() {
    const WriterLock lock(mutex_);
    const std::size_t before = rows_.size();
    for (const std::uint32_t rows = context_.parts.catalog.device_rows(); known_ < rows; ++known_) {
      const auto device = context_.parts.catalog.device_at(known_);
      if (!device.ok()) continue;
      rows_.push_back(
          {context_.parts.audit->device_pseudonym(device->namespace_id, device->id,
                                                  device->namespace_name, device->device),
           known_});
    }
    const auto newer = rows_.begin() + static_cast<std::ptrdiff_t>(before);
    std::sort(newer, rows_.end());
    std::inplace_merge(rows_.begin(), newer, rows_.end());
    tell_memory();
  }
  // What a listing says of it, but for its count.
  Result<std::string> said_of(std::uint64_t pseudonym) {
    {
      const ReaderLock lock(mutex_);
      const auto found = said_.find(pseudonym);
      if (found != said_.end()) return found->second;
    }
    const std::uint64_t changes = context_.parts.devices.changes();
    std::string said = "{\"pseudonym\":\"" + audit::pseudonym_text(pseudonym) + '"';
    const catalog::DeviceName name = name_of(pseudonym);
    if (name.device.empty()) return said;
    append_member("device", name.device, said);
    EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata,
                        context_.parts.devices.metadata(name));
    if (!metadata.owner.empty()) append_member("owner", metadata.owner, said);
    keep(pseudonym, said, changes);
    return said;
  }
  void let_go() {
    const WriterLock lock(mutex_);
    said_.clear();
    said_bytes_ = 0;
  }

 private:
  static constexpr std::size_t kSaidMaxBytes = 1u << 20;
  // What a text takes besides its bytes: the node of the map, and what the heap adds.
  static constexpr std::size_t kSaidEntryBytes = 96;

  // Empty: it stands for nothing that is there.
  catalog::DeviceName name_of(std::uint64_t pseudonym) const {
    const ReaderLock lock(mutex_);
    // The newest, where a device came again.
    const auto after = std::upper_bound(rows_.begin(), rows_.end(),
                                        Row{pseudonym, std::numeric_limits<std::uint32_t>::max()});
    if (after == rows_.begin() || std::prev(after)->pseudonym != pseudonym) return {};
    auto device = context_.parts.catalog.device_at(std::prev(after)->row);
    if (!device.ok()) return {};
    return {std::move(device->namespace_name), std::move(device->device)};
  }

  // Unless something has changed since `changes`; if it does later, let_go() comes after.
  void keep(std::uint64_t pseudonym, const std::string& said, std::uint64_t changes) {
    const std::size_t bytes = kSaidEntryBytes + said.size();
    const WriterLock lock(mutex_);
    if (changes != context_.parts.devices.changes()) return;
    if (said_bytes_ + bytes > kSaidMaxBytes) {
      said_.clear();
      said_bytes_ = 0;
    }
    if (said_.try_emplace(pseudonym, said).second) said_bytes_ += bytes;
    tell_memory();
  }

  void tell_memory() EC_REQUIRES(mutex_) {
    set_aside_.tell(rows_.capacity() * sizeof(Row) + said_bytes_);
  }

  struct Row {
    std::uint64_t pseudonym = 0;
    std::uint32_t row = 0;  // of the catalog
    friend auto operator<=>(const Row&, const Row&) = default;
  };

  HttpContext& context_;
  mutable SharedMutex mutex_;
  std::uint32_t known_ EC_GUARDED_BY(mutex_) = 0;  // rows that were looked at
  std::vector<Row> rows_ EC_GUARDED_BY(mutex_);    // sorted
  std::unordered_map<std::uint64_t, std::string> said_ EC_GUARDED_BY(mutex_);
  std::size_t said_bytes_ EC_GUARDED_BY(mutex_) = 0;
  catalog::SetAside set_aside_ EC_GUARDED_BY(mutex_);
};

namespace {

// Names and owners of the devices that one listing tells of.
class Told {
 public:
  explicit Told(std::shared_ptr<DeviceNames> names) : names_(std::move(names)) {}

  Status append(const audit::Target& target, std::string& text) {
    if (known_.size() >= kKnownMax) known_.clear();
    const auto [at, is_new] = known_.try_emplace(target.pseudonym);
    if (is_new) {
      EC_ASSIGN_OR_RETURN(at->second, names_->said_of(target.pseudonym));
    }
    text.append(at->second).append(",\"count\":");
    append_number(target.count, text);
    text += '}';
    return ok();
  }

 private:
  static constexpr std::size_t kKnownMax = 4'096;

  const std::shared_ptr<DeviceNames> names_;
  std::unordered_map<std::uint64_t, std::string> known_;
};

// One line, as compact() would write it. Thousands are asked for at a time: no object is made of
// each.
Status append_record(const audit::Record& record, Told& told, std::string& text) {
  text += "{\"sequence\":";
  append_number(record.sequence, text);
  text += ",\"time\":\"";
  wire::append_time(record.time_ns, text);
  text += record.trust == ClockTrust::Trusted ? "\",\"clock_trusted\":true"
                                              : "\",\"clock_trusted\":false";
  append_member("actor", record.actor, text);
  append_member("token", record.token, text);
  append_member("operation", record.operation, text);
  append_member("result", audit::outcome_name(record.outcome), text);
  append_member("namespace", record.namespace_name, text);
  append_member("select", record.selector, text);
  text += ",\"devices\":[";
  for (const audit::Target& target : record.targets) {
    if (text.back() != '[') text += ',';
    EC_TRY(told.append(target, text));
  }
  text += "],\"more_devices\":";
  append_number(record.more_devices, text);
  text += ",\"count\":";
  append_number(record.count, text);
  append_member("detail", record.detail, text);
  append_member("hash", auth::hex_text(auth::view_of(record.hash)), text);
  text += '}';
  return ok();
}

Result<bool> descending(const Call& call) {
  const std::string text = call.parameter("desc");
  if (!call.has("desc") || text == "false" || text == "0") return false;
  if (text.empty() || text == "true" || text == "1") return true;
  return invalid_argument("desc is none of true, false, 1, 0");
}

void add_erased(const erase::Certificate& certificate, audit::ListRequest& request) {
  for (const std::string& digits : certificate.device_pseudonyms) {
    std::uint64_t pseudonym = 0;
    const char* const begin = digits.data();
    const auto [end, error] =
        std::from_chars(begin, begin + std::min<std::size_t>(digits.size(), 16), pseudonym, 16);
    if (error == std::errc() && end == begin + 16) request.owned.push_back(pseudonym);
  }
}

using NameTest = audit::ListRequest::NameTest;

Result<bool> any_of_owner(const catalog::DeviceIndex& devices, const std::string& owner,
                          const NameTest& is_meant) {
  for (catalog::DevicePage page{std::nullopt, kNamesAtOnce};;) {
    EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                        devices.find("", catalog::owned_by(owner), page));
    for (const catalog::DeviceName& name : names) {
      if (is_meant(name.namespace_name, name.device)) return true;
    }
    if (names.size() < page.limit) return false;
    page.after = names.back();
  }
}

// Devices that are the owner's now, and those that erasures by this owner took, of each erasure
// erase::kPseudonymsMax at most.
Status add_owned(const HttpContext& context, audit::ListRequest& request) {
  EC_TRY(wire::check_name("owner", request.owner));
  const auto& devices = context.parts.devices;
  const auto note = [&](std::string_view namespace_name, std::string_view device) {
    request.owned.push_back(context.parts.audit->names().of_device(namespace_name, device));
    return false;
  };
  EC_TRY(any_of_owner(devices, request.owner, note).status());
  request.any_owned = [&devices, owner = request.owner](const NameTest& is_meant) {
    const auto any = any_of_owner(devices, owner, is_meant);
    return !any.ok() || *any;  // where it cannot be found out it may be
  };
  std::uint64_t before = UINT64_MAX;
  while (true) {
    EC_ASSIGN_OR_RETURN(
        const std::vector<erase::Certificate> page,
        context.parts.erase.certificates(std::nullopt, request.owner, kCertificatesAtOnce, before));
    for (const erase::Certificate& each : page) add_erased(each, request);
    if (page.size() < kCertificatesAtOnce) return ok();
    before = page.back().number;
  }
}

Result<audit::ListRequest> list_request(const HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  if (context.parts.audit == nullptr) return no_log();
  const std::int64_t now_ns = context.parts.clock.wall_ns();
  audit::ListRequest request;
  request.namespace_name = namespace_parameter(call);
  request.device = call.parameter("device");
  if (!request.device.empty() && request.namespace_name.empty()) {
    return invalid_argument("a device is in one namespace");
  }
  if (call.has("owner")) {
    request.owner = call.parameter("owner");
    EC_TRY(add_owned(context, request));
  }
  if (call.has("from")) {
    EC_ASSIGN_OR_RETURN(request.from_ns, wire::parse_time_ns(call.parameter("from"), now_ns));
  }
  if (call.has("to")) {
    EC_ASSIGN_OR_RETURN(request.to_ns, wire::parse_time_ns(call.parameter("to"), now_ns));
  }
  if (call.has("limit")) {
    const std::string text = call.parameter("limit");
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, request.limit);
    if (error != std::errc{} || stop != end) return invalid_argument("limit is no whole number");
  }
  EC_ASSIGN_OR_RETURN(request.descending, descending(call));
  return request;
}

// {"records":[record, ...]}
class RecordPieces final : public PieceSource {
 public:
  RecordPieces(std::shared_ptr<audit::RecordCursor> cursor,
               const std::shared_ptr<DeviceNames>& names)
      : cursor_(std::move(cursor)), told_(names) {}

  Result<bool> fill(std::string& piece) override {
    if (is_first_) piece += "{\"records\":[";
    audit::Record record;
    while (piece.size() < kPieceBytes) {
      EC_ASSIGN_OR_RETURN(const bool more, cursor_->next(record));
      if (!more) {
        piece += "]}\n";
        return false;
      }
      if (!std::exchange(is_first_, false)) piece += ',';
      piece += '\n';
      EC_TRY(append_record(record, told_, piece));
    }
    return true;
  }
  void let_go() override { cursor_->let_go(); }

 private:
  const std::shared_ptr<audit::RecordCursor> cursor_;
  Told told_;
  bool is_first_ = true;
};

// `sequence` and `head`: what a report said that the log had reached.
Result<std::optional<audit::Mark>> told_head(const Call& call) {
  if (!call.has("sequence") && !call.has("head")) return std::optional<audit::Mark>();
  audit::Mark mark;
  const std::string text = call.parameter("sequence");
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mark.sequence);
  if (error != std::errc() || stop != end) return invalid_argument("sequence is no whole number");
  if (!auth::parse_digest(call.parameter("head"), mark.hash))
    return invalid_argument("head is not 64 hex digits");
  return std::optional<audit::Mark>(mark);
}

void register_audit_metrics(HttpContext& context) {
  using observe::MetricKind;
  const auto add = [&context](MetricKind kind, const char* name, const char* help, auto value) {
    context.parts.metrics.callback(kind, name, help, {}, [&context, value] {
      return static_cast<double>(value(context.parts.audit->state()));
    });
  };
  using State = audit::AuditLog::State;
  add(MetricKind::Counter, "edgecase_audit_records_total", "Records of the audit log.",
      [](const State& state) { return state.records; });
  add(MetricKind::Gauge, "edgecase_audit_queued", "Records that are not durable yet.",
      [](const State& state) { return state.queued; });
  add(MetricKind::Counter, "edgecase_audit_failures_total",
      "Writes of the audit log, or of its head, that failed.",
      [](const State& state) { return state.failures; });
  add(MetricKind::Counter, "edgecase_audit_lost_total", "Records that found the queue full.",
      [](const State& state) { return state.lost; });
}

// What an answer says of the record that is made of it.
const char* acknowledged_means(const std::string& mode) {
  if (mode == "strict") return "the record is durable before the answer";
  if (mode == "batched") return "stored: the record is durable with it; else within 1 s";
  return "nothing is recorded";
}

}  // namespace

void get_audit(HttpContext& context, Call& call) {
  const std::shared_ptr<DeviceNames>& names = context.device_names;
  const auto request = list_request(context, call);
  if (!request.ok()) return call.answer_error(request.status());
  auto opened = audit::RecordCursor::open(*context.parts.audit, *request);
  if (!opened.ok()) return call.answer_error(opened.status());
  const std::shared_ptr<audit::RecordCursor> cursor = std::move(opened).value();
  names->learn();
  answer_in_pieces(call, "application/json", std::make_shared<RecordPieces>(cursor, names));
}

Result<Json> get_audit_verify(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  if (context.parts.audit == nullptr) return no_log();
  EC_ASSIGN_OR_RETURN(const std::optional<audit::Mark> told, told_head(call));
  EC_ASSIGN_OR_RETURN(const audit::Verification found, audit::verify(*context.parts.audit, told));
  Json faults = Json::array();
  for (const audit::Fault& fault : found.faults) {
    faults.push_back({{"sequence", fault.sequence}, {"message", fault.what}});
  }
  Json answer{{"intact", found.fault_count == 0},
              {"records", found.records},
              {"first", found.first},
              {"last", found.last},
              {"head", auth::hex_text(auth::view_of(found.head))},
              {"fault_count", found.fault_count},
              {"faults", std::move(faults)}};
  if (!found.unchecked.empty()) answer["unchecked"] = found.unchecked;
  return answer;
}

std::string audit_status_json(const HttpContext& context) {
  if (context.parts.audit == nullptr) return "null";
  const audit::AuditLog::State state = context.parts.audit->state();
  const auto words = [](const Status& status) {
    return status.ok() ? Json(nullptr) : Json(status.to_string());
  };
  const std::string& mode = context.parts.settings.audit.mode;
  return wire::compact({{"mode", mode},
                        {"acknowledged_means", acknowledged_means(mode)},
                        {"sequence", state.sequence},
                        {"head", auth::hex_text(auth::view_of(state.hash))},
                        {"first", state.first},
                        {"records", state.records},
                        {"queued", state.queued},
                        {"failures", state.failures},
                        {"lost", state.lost},
                        {"failure", words(state.failure)},
                        {"head_failure", words(state.head_failure)}});
}

void begin_audit_routes(HttpContext& context) {
  const auto names = std::make_shared<DeviceNames>(context);
  context.device_names = names;
  context.parts.devices.on_change([names] { names->let_go(); });
  if (context.parts.audit != nullptr) register_audit_metrics(context);
}

}  // namespace edgecase::http
