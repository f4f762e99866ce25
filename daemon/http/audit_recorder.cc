#include "http/http_routes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "audit/audit_log.h"
#include "edgecase/mutex.h"
#include "wire/contract.h"
#include "wire/names.h"

namespace edgecase::http {
namespace {

namespace routes = wire::routes;

// What the log calls a request, and how much it says of it.
Audited row_of(const Call& call) {
  return call.route == nullptr ? Audited{} : call.route->audit;
}

// Whether nothing is recorded here of a call, as long as it is not denied.
bool is_passed_over(const Call& call) {
  const AuditKind kind = row_of(call).kind;
  return kind == AuditKind::Ingest || kind == AuditKind::Free;
}

// What the page at / asks for, again and again. Whoever else says so of a request has its records
// joined in the same way, and loses none.
bool is_of_page(const Call& call) {
  const std::string& path = call.request.path;
  if (call.exchange.head.page.empty()) return false;
  if (call.has("export") || call.has("moment") || call.has("owner")) return false;
  return path == routes::kSeries || path == routes::kQuery || path == routes::kFind ||
         path == routes::kLast;
}

// Statements of InfluxQL.
bool is_influx_query(const Call& call) {
  return call.request.path == routes::kInfluxQuery || call.request.path == routes::kInfluxQueryV2;
}

Audited audited(const Call& call) {
  const std::string& path = call.request.path;
  if (path == routes::kQuery && call.has("export") && call.parameter("export") != "false") {
    return {"export", AuditKind::Read};
  }
  if (path == routes::kQuery && call.has("moment")) return {"backup.read", AuditKind::Read};
  if (is_of_page(call)) return {"page", AuditKind::Read};
  return row_of(call);
}

// Purposes, times, durations and ids of tokens; longer or other texts are left out.
constexpr std::string_view kPlain = "0123456789abcdefghijklmnopqrstuvwxyzTZ:.+-@_,";
constexpr std::size_t kPlainMaxBytes = 40;

bool is_denied(int http_status) {
  return http_status == 401 || http_status == 403;
}

void add_detail(const std::string& text, audit::Record& record) {
  if (!record.detail.empty()) record.detail += ", ";
  record.detail += text;
}

// /api/v1/blob/NAMESPACE/DEVICE/SENSOR
void describe_blob(const audit::RecordNames& names, std::string_view path, audit::Record& record) {
  path.remove_prefix(std::min(path.size(), std::string_view(routes::kBlob).size() + 1));
  const std::size_t first = path.find('/');
  const std::size_t second = first == std::string_view::npos ? first : path.find('/', first + 1);
  record.namespace_name = path.substr(0, first);
  if (second == std::string_view::npos) return;
  const wire::Selector one{wire::escape_name(path.substr(first + 1, second - first - 1)),
                           wire::escape_name(path.substr(second + 1))};
  names.describe(record.namespace_name, one, record);
}

// What a parameter may hold, and how that stands in a record.
enum class Holds : unsigned char { Namespace, Device, Personal, Plain };
struct ParameterRow {
  std::string_view name;
  Holds holds;
};
constexpr std::array kParameters = {
    ParameterRow{"name", Holds::Namespace},    ParameterRow{"db", Holds::Namespace},
    ParameterRow{"bucket", Holds::Namespace},  ParameterRow{"measurement", Holds::Personal},
    ParameterRow{"tag", Holds::Personal},      ParameterRow{"field", Holds::Personal},
    ParameterRow{"device", Holds::Device},     ParameterRow{"owner", Holds::Personal},
    ParameterRow{"label", Holds::Personal},    ParameterRow{"location", Holds::Personal},
    ParameterRow{"of_owner", Holds::Personal}, ParameterRow{"of_label", Holds::Personal},
    ParameterRow{"of_purpose", Holds::Plain},  ParameterRow{"of_object", Holds::Plain},
    ParameterRow{"purpose", Holds::Plain},     ParameterRow{"object", Holds::Plain},
    ParameterRow{"id", Holds::Plain},          ParameterRow{"keep", Holds::Plain},
    ParameterRow{"then", Holds::Plain},        ParameterRow{"from", Holds::Plain},
    ParameterRow{"to", Holds::Plain},          ParameterRow{"expires", Holds::Plain},
    ParameterRow{"after", Holds::Plain},       ParameterRow{"transfer", Holds::Plain}};

// "of_owner" tells an owner, as "owner" does.
std::string_view kind_of(std::string_view parameter) {
  return parameter.starts_with("of_") ? parameter.substr(3) : parameter;
}

void describe(const audit::RecordNames& names, std::string_view wanted, const ParameterRow& row,
              const std::string& text, audit::Record& record) {
  switch (row.holds) {
    case Holds::Namespace: record.namespace_name = text; return;
    case Holds::Device: return names.describe(wanted, {wire::escape_name(text), "*"}, record);
    case Holds::Personal:
      return add_detail(std::string(row.name) + " " + names.of_text(kind_of(row.name), text),
                        record);
    case Holds::Plain:
      if (text.empty() || text.size() > kPlainMaxBytes) return;
      if (text.find_first_not_of(kPlain) != std::string::npos) return;
      return add_detail(std::string(row.name) + " " + text, record);
  }
}

// What reaches over all devices where nothing says which ones.
bool is_of_devices(const Call& call) {
  constexpr std::array kPaths = {
      routes::kQuery,        routes::kLast,        routes::kTail,
      routes::kSeries,       routes::kDevices,     routes::kWhere,
      routes::kErasePreview, routes::kErase,       routes::kRetentionPreview,
      routes::kDevice,       routes::kInfluxQuery, routes::kInfluxQueryV2};
  const std::string& path = call.request.path;
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end() ||
         (path == routes::kRetention && call.request.method != "GET");
}

// Names become pseudonyms, what is no name stays; values, and parameters that are not known here,
// are left out.
void describe(const audit::RecordNames& names, const Call& call, audit::Record& record) {
  if (call.request.path.starts_with(routes::kBlob)) {
    return describe_blob(names, call.request.path, record);
  }
  const std::string wanted = namespace_parameter(call);
  record.namespace_name = wanted.empty() ? "*" : wanted;
  bool is_filtered = false;
  std::vector<wire::Selector> selectors;
  const auto [first, last] = call.request.parameters.equal_range("select");
  for (auto at = first; at != last; ++at) {
    auto selector = wire::parse_selector(at->second);
    if (selector.ok()) selectors.push_back(std::move(selector).value());
  }
  if (!selectors.empty()) names.describe(wanted, selectors, record);
  for (const auto& [name, text] : call.request.parameters) {
    for (const ParameterRow& row : kParameters) {
      if (row.name != name) continue;
      describe(names, wanted, row, text, record);
      is_filtered = is_filtered || row.holds == Holds::Personal;
    }
  }
  // A request by owner or label, or one with a body (note_described()), may reach any device.
  if (record.targets.empty() && (is_filtered || is_of_devices(call))) record.reaches_more = true;
}

// What a record says of a request whatever becomes of it.
struct Prepared {
  Audited what;
  audit::Record record;
  audit::Draft draft = {};  // the same
};

// Requests are asked again and again: what was prepared last is remembered. Thread-safe.
class Preparation {
 public:
  static constexpr std::size_t kRememberedMax = 1'024;
  static constexpr std::size_t kTargetMaxBytes = 512;  // longer ones are not remembered

  explicit Preparation(audit::AuditLog& log) : log_(log) {}

  // Null: nothing is recorded of it, unless it was denied.
  std::shared_ptr<const Prepared> of(const Call& call, int http_status) {
    if (!is_denied(http_status) && is_passed_over(call)) return nullptr;
    std::string key;
    const auth::Principal& principal = call.principal();
    const RequestHead& head = call.exchange.head;
    key.reserve(principal.name.size() + head.method.size() + head.target.size() + 16);
    key.append(principal.name).append(1, '\0');
    if (principal.grant) key.append(principal.grant->token_id);
    key.append(1, '\0').append(head.method).append(1, head.page.empty() ? '\0' : '\1');
    key.append(head.target);
    {
      const MutexLock lock(mutex_);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
    }
    auto made = std::make_shared<Prepared>();
    made->what = audited(call);
    const bool is_recorded =
        made->what.kind == AuditKind::Read || made->what.kind == AuditKind::Change;
    if (!is_recorded && !is_denied(http_status)) return nullptr;
    made->record = audit::record_of(made->what.operation, principal);
    describe(log_.names(), call, made->record);
    made->draft = audit::draft_of(made->record);
    // What changes something is not asked for again and again.
    if (made->what.kind != AuditKind::Read || head.target.size() > kTargetMaxBytes) return made;
    const MutexLock lock(mutex_);
    if (known_.size() >= kRememberedMax) known_.clear();
    return known_.emplace(std::move(key), std::move(made)).first->second;
  }
  void forget() {
    const MutexLock lock(mutex_);
    known_.clear();
  }

 private:
  audit::AuditLog& log_;
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Prepared>> known_ EC_GUARDED_BY(mutex_);
};

// What the log tells of each view of the page in the minute at hand, so that it is told once. Its
// list of series comes first and names the devices whose readings follow; one that it did not name
// has a record of its own. The panels of a dashboard, which ask by InfluxQL, are one view of
// whoever asks. Thread-safe.
class PageViews {
 public:
  static constexpr std::size_t kViewsMax = 256;  // beyond them each request has its record
  static constexpr std::int64_t kMinuteNs = 60'000'000'000;

  explicit PageViews(Clock& clock) : clock_(clock) {}

  // True: this minute's records tell all that the answer is about. Else they will, with this one's.
  bool covers(const Call& call) {
    const std::optional<query::Reach>& reach = call.exchange.audit.reach;
    const bool is_of_dashboard = is_influx_query(call) && call.exchange.audit.detail.empty();
    if (!is_of_page(call) && !is_of_dashboard) return false;
    if (call.response.status != 200 || !reach) return false;
    const std::int64_t minute = clock_.boot_ns() / kMinuteNs;
    // A page has its own name; purposes are told apart, since a record tells them.
    const std::string view =
        call.principal().name + '\0' +
        (is_of_dashboard ? "influx " + call.parameter("purpose") : call.exchange.head.page);
    const MutexLock lock(mutex_);
    if (minute != minute_) views_.clear();
    minute_ = minute;
    if (!views_.contains(view) && views_.size() >= kViewsMax) return false;
    Told& told = views_[view];
    std::vector<std::uint64_t> fresh;
    for (const auto& [namespace_name, device] : reach->devices) {
      const std::uint64_t hash = std::hash<std::string>{}(namespace_name + '/' + device);
      if (!std::binary_search(told.devices.begin(), told.devices.end(), hash))
        fresh.push_back(hash);
    }
    const bool is_told = told.is_any && fresh.empty() && reach->more <= told.more;
    if (is_told) return true;
    told.is_any = true;
    told.more = std::max(told.more, reach->more);
    if (told.devices.size() + fresh.size() > kDevicesMax) return false;
    told.devices.insert(told.devices.end(), fresh.begin(), fresh.end());
    std::sort(told.devices.begin(), told.devices.end());
    return false;
  }

 private:
  static constexpr std::size_t kDevicesMax = 4 * query::Reach::kDevicesMax;
  struct Told {
    bool is_any = false;
    std::vector<std::uint64_t> devices;  // by hash, sorted
    std::uint64_t more = 0;
  };

  Clock& clock_;
  Mutex mutex_;
  std::int64_t minute_ EC_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Told> views_ EC_GUARDED_BY(mutex_);
};

struct Recorder {
  Recorder(audit::AuditLog& audit_log, Clock& clock)
      : log(audit_log), preparation(audit_log), pages(clock) {}

  audit::AuditLog& log;
  Preparation preparation;
  PageViews pages;
};

void give_up(Call& call, const Status& status) {
  call.response.pieces = nullptr;
  call.answer_error(status);
}

bool may_be_held(const Call& call) {
  return !call.response.pieces && call.response.body.size() < call.exchange.held_max_bytes;
}

// A selector that reaches over devices is told by those that it reached, as far as they are known.
void name_reached(const audit::RecordNames& names, const query::Reach& reach,
                  audit::Record& record) {
  static_assert(query::Reach::kDevicesMax == audit::kTargetsMax);
  for (const auto& [namespace_name, device] : reach.devices) {
    record.targets.push_back({names.of_device(namespace_name, device), 0});
  }
  record.more_devices = reach.more;
  record.reaches_more = reach.more > 0;
}

audit::Draft draft_of(const audit::RecordNames& names, const Prepared& prepared, const Call& call) {
  const AuditNote& note = call.exchange.audit;
  const bool is_reached = note.reach && prepared.record.reaches_more;
  audit::Draft draft;
  if (note.detail.empty() && note.namespace_name.empty() && !is_reached) {
    draft = prepared.draft;
  } else {
    audit::Record record = prepared.record;
    if (!note.detail.empty()) add_detail(note.detail, record);
    if (!note.namespace_name.empty()) record.namespace_name = note.namespace_name;
    if (is_reached) name_reached(names, *note.reach, record);
    draft = audit::draft_of(record);
  }
  draft.outcome = audit::outcome_of_http(call.response.status);
  draft.count = note.count;
  return draft;
}

// The devices that a body names, for the record that it begins as for that of its result.
void note_described(const Call& call) {
  if (call.request.path != routes::kDevices || call.request.method != "POST") return;
  if (!auth::authorize_administration(call.principal()).ok()) return;
  const auto described = decode_descriptions(call.body(), namespace_parameter(call));
  if (!described.ok()) return;
  query::Reach& reach = call.exchange.audit.reach.emplace();
  for (const catalog::DeviceChange& change : *described)
    reach.add(change.name.namespace_name, change.name.device);
}

// What a full drive finds room for, since it makes some.
bool makes_room(const Call& call) {
  const std::string& path = call.request.path;
  return path == routes::kErase || path == routes::kRetention ||
         (path == routes::kNamespaces && call.request.method == "DELETE");
}

// Where a full drive takes no record, it takes this one in the commit of what makes room
// (WriteBatch::makes_room()); and if it took neither, nothing is done. after_answer() looks.
Status begin_urgently(audit::AuditLog& log, const Call& call, audit::Record record) {
  EC_ASSIGN_OR_RETURN(const audit::Ticket ticket, log.append_urgent(std::move(record)));
  static_cast<void>(log.settle(ticket).ok());
  call.exchange.audit.begun = ticket.last;
  return ok();
}

Status before_change(Recorder& recorder, const Call& call) {
  if (row_of(call).kind != AuditKind::Change) return ok();
  const auto prepared = recorder.preparation.of(call, 0);
  if (prepared == nullptr || prepared->what.kind != AuditKind::Change) return ok();
  const bool is_urgent = makes_room(call);
  if (!is_urgent) EC_TRY(recorder.log.ready());
  note_described(call);
  audit::Record record = prepared->record;
  if (call.exchange.audit.reach)
    name_reached(recorder.log.names(), *call.exchange.audit.reach, record);
  record.outcome = audit::Outcome::Begun;
  return is_urgent ? begin_urgently(recorder.log, call, std::move(record))
                   : recorder.log.note(std::move(record));
}

// What must be durable before the answer leaves. That room was made is said by the record that it
// began, which was so with it: what became of it may follow, once a drive that is full by then
// takes it.
audit::Ticket enough_for(const Call& call, audit::Ticket ticket) {
  const bool is_done = call.exchange.audit.begun != 0 && call.response.status / 100 == 2;
  return is_done ? audit::Ticket{call.exchange.audit.begun, 1} : ticket;
}

// The answer leaves when its record is durable, or is a refusal.
void await_record(audit::AuditLog& log, Call& call, audit::Ticket ticket,
                  const std::shared_ptr<const Prepared>& prepared) {
  const auto settle = [&log, ticket, enough = enough_for(call, ticket)] {
    const Status settled = log.settle(ticket);
    return settled.ok() || log.is_settled(enough) ? ok() : settled;
  };
  // A read that read nothing after all has a record that says so; a change or denial stays.
  const bool is_undone = prepared->what.kind == AuditKind::Read && !is_denied(call.response.status);
  const auto refused = [&log, ticket, is_undone, prepared](const Status& why) {
    if (is_undone) log.amend(ticket, prepared->record, why);
  };
  if (may_be_held(call)) {
    call.exchange.settlement = {[&log, ticket] { return log.is_settled(ticket); }, settle, refused};
  } else if (const Status settled = settle(); !settled.ok()) {
    refused(settled);
    give_up(call, settled);
  }
}

void after_answer(Recorder& recorder, Call& call) {
  audit::AuditLog& log = recorder.log;
  const int http_status = call.response.status;
  if (http_status == 429) return log.note_throttled();
  const auto prepared = recorder.preparation.of(call, http_status);
  if (prepared == nullptr) return;
  const AuditKind kind = prepared->what.kind;
  // Followers ask again and again; what they were told of counts.
  const bool is_told = kind == AuditKind::Change ||
                       (kind == AuditKind::Read &&
                        (call.request.path != routes::kTail || call.exchange.audit.count > 0));
  if (!is_told && !is_denied(http_status)) return;
  if (recorder.pages.covers(call)) return;
  const auto ticket = log.append(draft_of(log.names(), *prepared, call));
  // To say who was erased is to name them once more.
  if (call.request.path == routes::kErase) log.names().forget();
  if (!ticket.ok()) return give_up(call, ticket.status());
  if (log.mode() == audit::Mode::Strict) await_record(log, call, *ticket, prepared);
}

}  // namespace

RecordedChange::RecordedChange(HttpContext& context, const Call& call, std::string_view operation,
                               const std::string& namespace_name, const query::Reach& reach)
    : log_(context.parts.audit != nullptr && context.parts.audit->is_on() ? context.parts.audit
                                                                          : nullptr),
      record_(audit::record_of(operation, call.principal())) {
  if (log_ == nullptr) return;
  record_.namespace_name = namespace_name;
  name_reached(log_->names(), reach, record_);
}

Status RecordedChange::begin(bool makes_room) {
  if (log_ == nullptr) return ok();
  audit::Record begun = record_;
  begun.outcome = audit::Outcome::Begun;
  if (!makes_room) {
    EC_TRY(log_->ready());
    return log_->note(std::move(begun));
  }
  EC_ASSIGN_OR_RETURN(const audit::Ticket ticket, log_->append_urgent(std::move(begun)));
  static_cast<void>(log_->settle(ticket).ok());
  begun_ = ticket.last;
  return ok();
}

Status RecordedChange::end(const Status& status, const std::string& detail, std::uint64_t count) {
  if (log_ == nullptr) return status;
  record_.outcome = audit::outcome_of(status);
  if (!detail.empty()) add_detail(detail, record_);
  record_.count = count;
  const auto ticket = log_->append(std::move(record_));
  // To say who was erased is to name them once more.
  log_->names().forget();
  const Status settled = ticket.ok() ? log_->settle(*ticket) : ticket.status();
  if (settled.ok() || !status.ok()) return status;
  // As enough_for().
  return begun_ != 0 && log_->is_settled({begun_, 1}) ? ok() : settled;
}

void record_requests(Router& router, HttpContext& context) {
  audit::AuditLog* const log = context.parts.audit;
  if (log == nullptr || !log->is_on()) return;
  const auto recorder = std::make_shared<Recorder>(*log, context.parts.clock);
  context.parts.erase.on_gone([weak = std::weak_ptr(recorder)] {
    if (const auto there = weak.lock()) there->preparation.forget();
  });
  router.on_run({[recorder](const Call& call) { return before_change(*recorder, call); },
                 [recorder](Call& call) { after_answer(*recorder, call); }});
}

}  // namespace edgecase::http
