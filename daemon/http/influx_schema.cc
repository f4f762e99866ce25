// Statements that change what there is (CREATE and DROP DATABASE, policies, series, measurements),
// and the lists of names that SHOW answers with.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "http/influx_query.h"
#include "influxql/series_view.h"
#include "influxql/time_windows.h"
#include "wire/names.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using auth::Operation;
using influxql::Policy;
using influxql::Statement;
using influxql::Verb;

constexpr std::int64_t kHourNs = 3600 * wire::kNanosecondsPerSecond;
constexpr std::int64_t kDayNs = 24 * kHourNs;
constexpr std::string_view kAutogen = influxql::kPolicyOfReadings;
// No device or sensor is called so: whoever may do it there may do it everywhere.
constexpr std::string_view kAnyName = "\x01";

Status no_database(const std::string& name) {
  return not_found("database not found: " + name);
}

bool may_do_all(Operation operation, const auth::Principal& principal, const std::string& name) {
  return auth::allows(operation, principal, name, kAnyName, kAnyName);
}

// Everything of one statement.
class SchemaChange {
 public:
  SchemaChange(HttpContext& context, Call& call, const Statement& statement,
               const std::string& database)
      : context_(context), call_(call), statement_(statement), database_(database) {}

  Result<std::string> run() {
    const bool needs_post =
        statement_.verb != Verb::CreateDatabase || statement_.policy.duration_ns;
    if (needs_post && call_.request.method != "POST") {
      return unsupported(
          "what erases, or says how long readings are kept, needs a POST request here; nothing was "
          "done of it");
    }
    Status done;
    switch (statement_.verb) {
      case Verb::CreateDatabase: done = create_database(); break;
      case Verb::CreateRetentionPolicy:
      case Verb::AlterRetentionPolicy: done = set_policy(); break;
      case Verb::DropRetentionPolicy: done = drop_policy(); break;
      case Verb::DropDatabase: done = drop_database(); break;
      default: done = erase_series(); break;
    }
    EC_TRY(done);
    return notice_;
  }

 private:
  const auth::Principal& principal() const { return call_.principal(); }

  bool is_there(const std::string& name) const {
    return !name.starts_with('_') &&
           (name == wire::kDefaultNamespace || context_.parts.catalog.has_namespace(name)) &&
           auth::allows_namespace(principal(), name);
  }

  Status create_database();
  Status check_policy() const;
  Status set_policy();
  Status set_tier() const;
  Status keep(const std::string& name, std::int64_t duration_ns);
  Status drop_policy() const;
  Status drop_database();
  Status clear_rules(const std::string& name);
  Status erase_series();
  Result<std::optional<erase::EraseRequest>> erasure(const std::vector<influxql::Source>& sources,
                                                     std::optional<influxql::NamedSeries>& named);
  Status run_erasure(const erase::EraseRequest& request, std::string& detail,
                     std::uint64_t& readings);

  HttpContext& context_;
  Call& call_;
  const Statement& statement_;
  const std::string& database_;
  std::string notice_;
};

// InfluxDB's words. There are no shards here: how long one would be is checked, and not kept.
Status SchemaChange::check_policy() const {
  const Policy& policy = statement_.policy;
  const std::int64_t duration_ns = policy.duration_ns.value_or(0);
  if (duration_ns != 0 && duration_ns < kHourNs)
    return invalid_argument("retention policy duration must be at least 1h0m0s");
  if (duration_ns != 0 && policy.shard_duration_ns.value_or(0) > duration_ns) {
    return invalid_argument("retention policy duration must be greater than the shard duration");
  }
  return ok();
}

Status SchemaChange::create_database() {
  const std::string& name = statement_.name;
  const Policy& policy = statement_.policy;
  EC_TRY(auth::authorize_creation(principal(), name));
  EC_TRY(check_policy());
  if (!policy.name.empty() && policy.name != kAutogen) {
    return unsupported(
        "the retention policy of readings is called autogen here, and others are tiers: see "
        "edgecase retention set --help");
  }
  const bool was_there = context_.parts.catalog.has_namespace(name);
  EC_TRY(context_.parts.catalog.ensure_namespace(name).status());
  if (!policy.duration_ns) return ok();
  const std::int64_t wanted_ns = *policy.duration_ns == 0 ? kRetentionForever : *policy.duration_ns;
  if (context_.parts.retention.namespace_ns(name) == wanted_ns) return ok();
  if (was_there) return invalid_argument("retention policy conflicts with an existing policy");
  return keep(name, *policy.duration_ns);
}

Status SchemaChange::set_policy() {
  if (!is_there(statement_.database)) return no_database(statement_.database);
  if (statement_.name != kAutogen) return set_tier();
  EC_TRY(check_policy());
  EC_TRY(auth::authorize_creation(principal(), statement_.database));
  if (!statement_.policy.duration_ns) return ok();
  return keep(statement_.database, *statement_.policy.duration_ns);
}

// A policy that is a tier stays as its rule has it.
Status SchemaChange::set_tier() const {
  const std::vector<wire::Tier> tiers = context_.parts.retention.tiers_of(statement_.database);
  const auto tier = std::find_if(tiers.begin(), tiers.end(), [this](const wire::Tier& each) {
    return wire::format_duration(each.every_ns) == statement_.name;
  });
  const bool is_new = statement_.verb == Verb::CreateRetentionPolicy;
  if (tier == tiers.end()) {
    if (!is_new) return not_found("retention policy not found: " + statement_.name);
    return unsupported(
        "retention policies beside autogen are tiers, and are called by the length of their "
        "windows: see edgecase retention set --help; ALTER RETENTION POLICY autogen says how long "
        "readings are kept");
  }
  const std::int64_t asked_ns = statement_.policy.duration_ns.value_or(0);
  const bool is_same =
      !statement_.policy.duration_ns ||
      (asked_ns == 0 ? tier->keep_ns == kRetentionForever : tier->keep_ns == asked_ns);
  if (is_same && !statement_.policy.is_default) return ok();
  return unsupported("the retention policy " + statement_.name + " is a tier, kept " +
                     wire::keep_text(tier->keep_ns) + ": edgecase retention set SELECTOR ... " +
                     "--then " + statement_.name +
                     ":DURATION says how long; autogen is the default");
}

// 0: forever. A shorter life erases: it takes the scope to erase all of the namespace.
Status SchemaChange::keep(const std::string& name, std::int64_t duration_ns) {
  retention::Rule rule{name, {}, duration_ns == 0 ? kRetentionForever : duration_ns};
  // What the rule says of tiers stays.
  for (const retention::Rule& each : context_.parts.retention.rules()) {
    if (each.namespace_name == name && each.selector.device == "*" && each.selector.sensor == "*")
      rule.tiers = each.tiers;
  }
  EC_TRY(wire::check_keeping(rule.keeping()));
  if (!may_do_all(Operation::Write, principal(), name))
    return not_allowed("this token may not write all of " + name +
                       ", and does not say how long it is kept");
  const bool is_shorter = rule.retention_ns < context_.parts.retention.namespace_ns(name);
  if (is_shorter && !may_do_all(Operation::Erase, principal(), name)) {
    return not_allowed("this token may not erase all of " + name +
                       ", which a shorter duration would do");
  }
  RecordedChange record(context_, call_, "retention.set", name, {});
  EC_TRY(record.begin(true));
  // The engine may need a rule for each of tens of thousands of series, and a few lists of them.
  const auto& give_memory_back = context_.parts.give_memory_back;
  if (give_memory_back) give_memory_back();
  const Status done = context_.parts.retention.set(rule);
  if (give_memory_back) give_memory_back();
  return record.end(done, "keep " + wire::keep_text(rule.retention_ns), 0);
}

Status SchemaChange::drop_policy() const {
  if (!is_there(statement_.database)) return ok();  // as InfluxDB
  if (influxql::tier_of_policy(context_.parts.query, statement_.database, statement_.name).ok() &&
      statement_.name != kAutogen) {
    return unsupported("the retention policy " + statement_.name +
                       " is a tier: edgecase retention set SELECTOR ..., without --then " +
                       statement_.name + ":..., takes it away, and says first what goes");
  }
  if (statement_.name != kAutogen) return ok();  // as InfluxDB
  return unsupported(
      "autogen holds all readings of a database and stays; DROP DATABASE takes it along, ALTER "
      "RETENTION POLICY autogen says how long it is kept");
}

Status SchemaChange::drop_database() {
  const std::string& name = statement_.name;
  if (!is_there(name)) {
    if (!name.starts_with('_')) return ok();  // loaders begin by dropping what may not be there
    return not_allowed("names that begin with _ are the store's own");
  }
  if (!may_do_all(Operation::Erase, principal(), name))
    return not_allowed("this token may not erase all of " + name);
  erase::EraseRequest request;
  request.namespace_name = name;
  request.fence = erase::FenceKind::Copies;
  RecordedChange record(context_, call_, "namespace.drop", name, {});
  EC_TRY(record.begin(true));
  std::string detail;
  std::uint64_t readings = 0;
  Status done = run_erasure(request, detail, readings);
  if (done.ok()) done = clear_rules(name);
  if (done.ok()) done = context_.parts.catalog.drop_namespace(name);
  if (done.ok()) done = context_.parts.devices.forget_namespace(name);
  return record.end(done, detail, readings);
}

// What comes under that name later is another database.
Status SchemaChange::clear_rules(const std::string& name) {
  for (const retention::Rule& rule : context_.parts.retention.rules()) {
    if (rule.namespace_name != name) continue;
    const Status cleared = context_.parts.retention.clear(name, rule.selector);
    if (cleared.code() != StatusCode::NotFound) EC_TRY(cleared);
  }
  return ok();
}

// What DELETE, DROP SERIES or DROP MEASUREMENT takes; nothing: no time is meant. `named` is asked
// later on, about `sources`.
Result<std::optional<erase::EraseRequest>> SchemaChange::erasure(
    const std::vector<influxql::Source>& sources, std::optional<influxql::NamedSeries>& named) {
  erase::EraseRequest request;
  request.namespace_name = database_;
  request.fence = erase::FenceKind::Copies;
  influxql::TimeSpan span;
  std::optional<influxql::Expr> rest;
  if (statement_.where) {
    EC_ASSIGN_OR_RETURN(rest, influxql::split_time(*statement_.where,
                                                   context_.parts.clock.wall_ns(), nullptr, span));
  }
  const bool has_time = span.has_from() || span.has_to();
  if (statement_.verb == Verb::DropSeries && has_time)
    return invalid_argument("DROP SERIES doesn't support time in WHERE clause");
  auto made =
      influxql::NamedSeries::make(context_.parts.catalog, database_, sources, std::move(rest));
  EC_TRY(made.status());
  named.emplace(std::move(made).value());
  if (span.from_ns > span.to_ns) return std::optional<erase::EraseRequest>();
  if (span.has_from()) request.from_ns = span.from_ns;
  if (span.has_to()) request.to_ns = span.to_ns + 1;
  return std::optional(std::move(request));
}

Status SchemaChange::erase_series() {
  if (!is_there(database_)) return no_database(database_);
  EC_TRY(auth::authorize(Operation::Erase, principal(), database_, {}));
  std::vector<influxql::Source> measurement;
  const bool is_measurement = statement_.verb == Verb::DropMeasurement;
  if (is_measurement) measurement.emplace_back().name = statement_.name;
  std::optional<influxql::NamedSeries> named;
  EC_ASSIGN_OR_RETURN(std::optional<erase::EraseRequest> request,
                      erasure(is_measurement ? measurement : statement_.sources, named));
  if (!request) return ok();
  query::Reach reach;
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::SeriesRow> found, named->find(&reach));
  if (found.empty()) return ok();  // as InfluxDB
  request->find = [&named] { return named->find(nullptr); };
  RecordedChange record(context_, call_, "erase", database_, reach);
  EC_TRY(record.begin(true));
  std::string detail;
  std::uint64_t readings = 0;
  const Status done = run_erasure(*request, detail, readings);
  return record.end(done, detail, readings);
}

// Nothing that matches is nothing to do.
Status SchemaChange::run_erasure(const erase::EraseRequest& request, std::string& detail,
                                 std::uint64_t& readings) {
  const auto done =
      erase_and_wait(context_, principal(), request, erase::Everything::Allowed, kErasureWaitNs);
  if (done.status().code() == StatusCode::NotFound) return ok();
  EC_TRY(done.status());
  const std::string number = std::to_string(done->number);
  detail = "erasure " + number;
  readings = done->readings.value_or(0);
  call_.response.set_header("X-EdgeCase-Erasure", number);
  if (done->state != erase::ErasureState::Done) {
    const Status obstacle = context_.parts.erase.obstacle();
    notice_ = "erasure " + number + " is invisible, its bytes are not gone yet" +
              (obstacle.ok() ? std::string() : ": " + obstacle.message());
  }
  return ok();
}

}  // namespace

bool changes_schema(Verb verb) {
  switch (verb) {
    case Verb::CreateDatabase:
    case Verb::DropDatabase:
    case Verb::CreateRetentionPolicy:
    case Verb::AlterRetentionPolicy:
    case Verb::DropRetentionPolicy:
    case Verb::Delete:
    case Verb::DropSeries:
    case Verb::DropMeasurement: return true;
    default: return false;
  }
}

Result<std::string> change_schema(HttpContext& context, Call& call, const Statement& statement,
                                  const std::string& database) {
  return SchemaChange(context, call, statement, database).run();
}

std::string go_duration(std::int64_t ns) {
  struct Unit {
    std::int64_t ns;
    const char* name;
  };
  for (const Unit& unit : {Unit{1'000'000, "ms"}, Unit{1'000, "µs"}, Unit{1, "ns"}}) {
    if (ns < wire::kNanosecondsPerSecond && ns >= unit.ns)
      return std::to_string(ns / unit.ns) + unit.name;
  }
  const std::int64_t seconds = ns / wire::kNanosecondsPerSecond;
  constexpr std::int64_t kMinute = 60, kHour = 3600;
  std::string text;
  if (seconds >= kHour) text += std::to_string(seconds / kHour) + "h";
  if (seconds >= kMinute) text += std::to_string(seconds % kHour / kMinute) + "m";
  return text + std::to_string(seconds % kMinute) + "s";
}

std::string shard_text(std::int64_t kept_ns) {
  if (kept_ns == kRetentionForever || kept_ns > 180 * kDayNs) return go_duration(7 * kDayNs);
  return go_duration(kept_ns >= 2 * kDayNs ? kDayNs : kHourNs);
}

namespace {

auto order_of(const Name& name) {
  return std::tie(name.group, name.first, name.second);
}

bool is_before(const Name& a, const Name& b) {
  return order_of(a) < order_of(b);
}

std::size_t hash_of(const Name& name) {
  constexpr std::size_t kFactor = 31;
  const std::hash<std::string_view> hash;
  return (hash(name.group) * kFactor + hash(name.first)) * kFactor + hash(name.second);
}

}  // namespace

Name Names::name_of(const Held& held) const {
  const std::string_view text = std::string_view(text_).substr(held.at, held.size);
  const std::size_t second = std::size_t{held.group} + held.first;
  return {text.substr(0, held.group), text.substr(held.group, held.first), text.substr(second)};
}

Result<bool> Names::peek(Name& name) {
  if (next_ == names_.size()) {
    if (has_looked_ && is_all_) return false;
    EC_TRY(look_through());
    if (names_.empty()) return false;
  }
  name = name_of(names_[next_]);
  return true;
}

void Names::pop() {
  last_.set(name_of(names_[next_++]));
}

void Names::drop() {
  text_ = {};
  names_ = {};
  next_ = 0;
  beyond_ = {};
  has_looked_ = is_all_ = false;
}

Status Names::look_through() {
  drop();
  recent_.assign(kRecentMax, 0);
  EC_TRY(look_([this](const Name& name) { take(name); }));
  recent_ = {};
  sort();
  is_all_ = !beyond_.is_there;
  has_looked_ = true;
  return ok();
}

void Names::take(const Name& name) {
  if (last_.is_there && !is_before(last_.name(), name)) return;
  if (beyond_.is_there && !is_before(name, beyond_.name())) return;
  std::uint32_t& recent = recent_[hash_of(name) % kRecentMax];
  if (recent > 0 && recent <= names_.size() &&
      order_of(name_of(names_[recent - 1])) == order_of(name))
    return;
  const std::size_t size = name.group.size() + name.first.size() + name.second.size();
  // Parts of an identity are at most kIdentityMaxBytes together.
  names_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(size),
                    static_cast<std::uint16_t>(name.group.size()),
                    static_cast<std::uint16_t>(name.first.size())});
  recent = static_cast<std::uint32_t>(names_.size());
  text_.append(name.group).append(name.first).append(name.second);
  if (held_bytes() > held_max_bytes_) shrink();
}

// In order, each once.
void Names::sort() {
  std::sort(names_.begin(), names_.end(), [this](const Held& a, const Held& b) {
    if (a.group != b.group || a.first != b.first) return is_before(name_of(a), name_of(b));
    // Parts that are as long lie one behind another.
    const std::string_view text = text_;
    return text.substr(a.at, a.size) < text.substr(b.at, b.size);
  });
  const auto is_same = [this](const Held& a, const Held& b) {
    return order_of(name_of(a)) == order_of(name_of(b));
  };
  names_.erase(std::unique(names_.begin(), names_.end(), is_same), names_.end());
}

// Leaves out those that came twice, and the last ones where that is not enough: room for half as
// much is made, so that the next time is not at once. One name stays, however long it is.
void Names::shrink() {
  sort();
  std::string kept;
  std::vector<Held> names;
  for (Held held : names_) {
    if (!names.empty() && kept.size() + names.size() * sizeof(Held) > held_max_bytes_ / 2) {
      beyond_.set(name_of(held));
      break;
    }
    const std::string_view text = std::string_view(text_).substr(held.at, held.size);
    held.at = static_cast<std::uint32_t>(kept.size());
    kept += text;
    names.push_back(held);
  }
  text_ = std::move(kept);
  names_ = std::move(names);
}

}  // namespace edgecase::http
