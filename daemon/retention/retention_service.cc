#include "retention/retention_service.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "catalog/erased.h"
#include "retention/retention_records.h"
#include "retention/wanted_rules.h"
#include "wire/big_endian.h"
#include "wire/names.h"
#include "wire/reading_key.h"

namespace edgecase::retention {
namespace {

std::size_t letters(std::string_view glob) {
  return static_cast<std::size_t>(
      std::count_if(glob.begin(), glob.end(), [](char c) { return c != '*' && c != '?'; }));
}

auto specificity(const Rule& rule) {
  return std::tuple(!rule.namespace_name.empty(), wire::is_literal(rule.selector.device),
                    wire::is_literal(rule.selector.sensor), letters(rule.selector.device),
                    letters(rule.selector.sensor));
}

bool is_everything(const wire::Selector& selector) {
  return selector.device == "*" && selector.sensor == "*";
}

bool holds_in(const Rule& rule, std::string_view namespace_name) {
  return rule.namespace_name.empty() ? !namespace_name.starts_with('_')
                                     : rule.namespace_name == namespace_name;
}

// The most specific of those that `accepts`; null when there is none.
template <typename Accepts>
const Rule* most_specific(const std::vector<Rule>& rules, const Accepts& accepts) {
  const Rule* best = nullptr;
  for (const Rule& rule : rules) {
    if (accepts(rule) && (best == nullptr || specificity(*best) < specificity(rule))) best = &rule;
  }
  return best;
}

Status too_many_engine_rules() {
  return limit_reached("there are " + std::to_string(kRetentionRulesMax) +
                       " devices and series with a retention of their own, the most");
}

}  // namespace

RetentionService::RetentionService(Engine& engine, catalog::Catalog& catalog,
                                   std::int64_t default_ns)
    : engine_(engine), catalog_(catalog), default_ns_(default_ns) {}

Result<std::unique_ptr<RetentionService>> RetentionService::open(Engine& engine,
                                                                 catalog::Catalog& catalog,
                                                                 std::int64_t default_ns) {
  std::unique_ptr<RetentionService> service(new RetentionService(engine, catalog, default_ns));
  {
    const MutexLock lock(service->mutex_);
    EC_TRY(service->load());
    EC_TRY(service->align(service->rules_));
  }
  return service;
}

Status RetentionService::load() {
  const auto found = engine_.find_namespace(kRetentionNamespace);
  if (found.ok()) {
    records_ = found->id;
  } else {
    EC_ASSIGN_OR_RETURN(records_, engine_.create_namespace(kRetentionNamespace,
                                                           {.placement = Placement::Metadata}));
  }
  ReadOptions options;
  options.on_damage = [this](const DamagedKeys&) { is_damaged_ = true; };
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {}, options));
  for (; iterator->valid(); iterator->next()) {
    const ByteView key = iterator->key();
    const ByteView value = iterator->value();
    if (value.size() != 9 || key.empty()) return corruption("a record of a retention rule is cut");
    if (value.front() != kRecordVersion)
      return unsupported("a retention rule was written by a newer version of EdgeCase");
    const auto retention_ns = static_cast<std::int64_t>(wire::read_big_endian(value.substr(1)));
    if (key.front() == kTopicRecord && key.size() == 1 + kTopicKeyBytes) {
      topics_[Bytes(key.substr(1))] = retention_ns;
      continue;
    }
    const std::size_t device = key.find('\0');
    const std::size_t sensor = key.find('\0', device + 1);
    if (key.front() != kRuleRecord || device == ByteView::npos || sensor == ByteView::npos)
      return corruption("a record of a retention rule is malformed");
    rules_.push_back({std::string(key.substr(1, device - 1)),
                      {std::string(key.substr(device + 1, sensor - device - 1)),
                       std::string(key.substr(sensor + 1))},
                      retention_ns});
  }
  EC_TRY(iterator->status());
  tell_memory();
  return ok();
}

void RetentionService::tell_memory() {
  constexpr std::size_t kNodeBytes = 80;  // of a map, of keys that need no memory of their own
  set_aside_.tell(topics_.size() * kNodeBytes);
}

std::vector<Rule> RetentionService::rules() const {
  const MutexLock lock(mutex_);
  return rules_;
}

std::int64_t RetentionService::outermost_ns(const std::vector<Rule>& rules,
                                            std::string_view namespace_name) const {
  const Rule* rule = most_specific(rules, [&](const Rule& each) {
    return is_everything(each.selector) && holds_in(each, namespace_name);
  });
  if (rule != nullptr) return rule->retention_ns;
  return namespace_name.starts_with('_') ? kRetentionForever : default_ns_;
}

std::int64_t RetentionService::device_ns(const std::vector<Rule>& rules,
                                         std::string_view namespace_name,
                                         std::string_view device) const {
  const Rule* rule = most_specific(rules, [&](const Rule& each) {
    return each.selector.sensor == "*" && holds_in(each, namespace_name) &&
           wire::glob_matches(each.selector.device, device);
  });
  return rule != nullptr ? rule->retention_ns : outermost_ns(rules, namespace_name);
}

std::int64_t RetentionService::series_ns(const std::vector<Rule>& rules,
                                         std::string_view namespace_name, std::string_view device,
                                         std::string_view sensor,
                                         const catalog::SeriesId& id) const {
  const Rule* rule = most_specific(rules, [&](const Rule& each) {
    return holds_in(each, namespace_name) && each.selector.matches(device, sensor);
  });
  if (rule != nullptr && !is_everything(rule->selector)) return rule->retention_ns;
  const auto topic = topics_.find(topic_key(id));
  if (topic != topics_.end()) return topic->second;
  return rule != nullptr ? rule->retention_ns : outermost_ns(rules, namespace_name);
}

std::int64_t RetentionService::retention_ns(const catalog::SeriesEntry& entry) const {
  const MutexLock lock(mutex_);
  return series_ns(rules_, entry.namespace_name, entry.device, entry.sensor, entry.id);
}

std::int64_t RetentionService::namespace_ns(std::string_view namespace_name) const {
  const MutexLock lock(mutex_);
  return outermost_ns(rules_, namespace_name);
}

// Whether a device is new. Nothing is stored of one whose records are not durable yet.
bool RetentionService::is_new_device(const catalog::SeriesEntry& entry) const {
  const wire::Selector all_of_it{wire::escape_name(entry.device), "*"};
  return catalog_.select_rows(entry.namespace_name, all_of_it).empty();
}

bool RetentionService::is_new_series(const catalog::SeriesEntry& entry) const {
  return !catalog_.find(entry.namespace_name, entry.device, entry.sensor).ok();
}

// Rules of the engine that give one series what it is due, besides its namespace's; a longer prefix
// wins there. Whether it takes one for the series alone.
bool RetentionService::add_series(const std::vector<Rule>& rules, const catalog::SeriesEntry& entry,
                                  bool may_be_new, WantedRules& wanted) const {
  const std::int64_t outermost = outermost_ns(rules, entry.namespace_name);
  const std::int64_t of_device = device_ns(rules, entry.namespace_name, entry.device);
  if (of_device != outermost && !wanted.added_last(entry.id.device))
    wanted.add_device(entry.id.device, may_be_new && is_new_device(entry), of_device);
  const std::int64_t of_series =
      series_ns(rules, entry.namespace_name, entry.device, entry.sensor, entry.id);
  if (of_series == of_device) return false;
  wanted.add_series(entry.id, may_be_new && is_new_series(entry), of_series);
  return true;
}

Status RetentionService::apply(std::vector<RetentionRule> changes) {
  return changes.empty() ? ok() : engine_.set_retention(std::move(changes));
}

Status RetentionService::align(const std::vector<Rule>& rules) {
  std::vector<RetentionRule> changes;
  for (const std::string& name : catalog_.namespaces()) {
    const auto info = engine_.find_namespace(name);
    if (!info.ok()) continue;  // dropped meanwhile
    WantedRules wanted;
    if (const std::int64_t ns = outermost_ns(rules, name); ns != kRetentionForever)
      wanted.add_namespace(ns);
    EC_TRY(catalog_.each(name, {}, [&](const catalog::SeriesEntry& entry) EC_REQUIRES(mutex_) {
      add_series(rules, entry, false, wanted);
      return wanted.is_full() ? too_many_engine_rules() : ok();
    }));
    wanted.append_changes(engine_, info->id, changes);
  }
  // Some rules, or the names that they are of, are not known: what would go, going by the rest,
  // might be what one of them keeps. The engine's own stay as they are.
  if (is_damaged()) changes.clear();
  ++generation_;
  active_ = !rules.empty() || default_ns_ != kRetentionForever || !topics_.empty();
  std::int64_t shortest_ns = default_ns_;
  for (const Rule& rule : rules) shortest_ns = std::min(shortest_ns, rule.retention_ns);
  for (const auto& [key, said_ns] : topics_) shortest_ns = std::min(shortest_ns, said_ns);
  shortest_ns_ = shortest_ns;
  return apply(std::move(changes));
}

Status RetentionService::check_target(const std::string& namespace_name,
                                      const wire::Selector& selector) const {
  if (!namespace_name.empty() && !catalog_.has_namespace(namespace_name))
    return not_found("no namespace " + namespace_name + "; edgecase namespace create makes it");
  for (const std::string& glob : {selector.device, selector.sensor})
    if (glob.find('\0') != std::string::npos)
      return invalid_argument("a selector has no control characters");
  return ok();
}

std::vector<Rule> RetentionService::with(const std::vector<Rule>& rules, const Rule& rule) const {
  std::vector<Rule> next = without(rules, rule.namespace_name, rule.selector);
  const auto behind = std::find_if(next.begin(), next.end(), [&](const Rule& each) {
    return rule_key(rule.namespace_name, rule.selector) <
           rule_key(each.namespace_name, each.selector);
  });
  next.insert(behind, rule);
  return next;
}

std::vector<Rule> RetentionService::without(std::vector<Rule> rules,
                                            const std::string& namespace_name,
                                            const wire::Selector& selector) {
  std::erase_if(rules, [&](const Rule& each) { return same_rule(each, namespace_name, selector); });
  return rules;
}

Status RetentionService::check_changes() const {
  if (!is_damaged()) return ok();
  return corruption(
      "records of retention rules, or of names, are damaged: rules stay as they are until edgecase "
      "check --repair, with the service stopped");
}

Status too_many_rules() {
  return limit_reached("there are " + std::to_string(kRulesMax) + " retention rules, the most");
}

// Whether it may let something go that would stay: then a full drive has room for it.
bool RetentionService::may_shorten(const Rule& rule) const {
  for (const Rule& each : rules_) {
    if (same_rule(each, rule.namespace_name, rule.selector))
      return rule.retention_ns < each.retention_ns;
  }
  return rule.retention_ns != kRetentionForever;
}

Status RetentionService::set(const Rule& rule) {
  return set_all({&rule, 1});
}

Status RetentionService::set_all(std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    if (rule.retention_ns <= 0) return invalid_argument("a retention of nothing erases what comes");
    EC_TRY(check_target(rule.namespace_name, rule.selector));
  }
  EC_TRY(check_changes());
  const MutexLock lock(mutex_);
  std::vector<Rule> next = rules_;
  WriteBatch batch, undo;
  undo.set_makes_room();
  for (const Rule& rule : rules) {
    next = with(next, rule);
    if (next.size() > kRulesMax) return too_many_rules();
    const Bytes key = rule_key(rule.namespace_name, rule.selector);
    batch.put(records_, key, record_value(rule.retention_ns));
    if (may_shorten(rule)) batch.set_makes_room();
    undo.remove(records_, key);
    for (const Rule& each : rules_) {
      if (same_rule(each, rule.namespace_name, rule.selector))
        undo.put(records_, key, record_value(each.retention_ns));
    }
  }
  // Cut short between the two, the next start brings the engine in line.
  EC_TRY(engine_.write(batch, Durability::Sync));
  if (Status aligned = align(next); !aligned.ok()) {
    static_cast<void>(engine_.write(undo, Durability::Sync).ok());
    return aligned;
  }
  rules_ = next;
  return ok();
}

Status RetentionService::clear(const std::string& namespace_name, const wire::Selector& selector) {
  EC_TRY(check_changes());
  const MutexLock lock(mutex_);
  const auto is_meant = [&](const Rule& each) { return same_rule(each, namespace_name, selector); };
  if (std::none_of(rules_.begin(), rules_.end(), is_meant))
    return not_found("no retention rule for " + selector.device + "/" + selector.sensor);
  const std::vector<Rule> next = without(rules_, namespace_name, selector);
  // For good: it may name a device, whose erasure later on would not know of it.
  const catalog::KeySpan span = catalog::span_of_key(records_, rule_key(namespace_name, selector));
  WriteBatch batch;
  batch.erase_range(span.namespace_id, span.lower, span.upper);
  EC_TRY(engine_.write(batch, Durability::Sync));
  EC_TRY(align(next));
  rules_ = next;
  return ok();
}

Status RetentionService::note_topics(std::span<const wire::Reading> readings,
                                     std::span<const catalog::SeriesId> ids, bool& changed) {
  WriteBatch batch;
  std::map<Bytes, std::int64_t> next;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const std::int64_t said_ns = readings[i].retention_ns;
    if (said_ns == wire::kRetentionUnsaid) continue;
    const Bytes key = topic_key(ids[i]);
    const auto known = topics_.find(key);
    const bool same = said_ns == wire::kRetentionOfNoTopic
                          ? known == topics_.end()
                          : known != topics_.end() && known->second == said_ns;
    if (!same) next[key] = said_ns;
  }
  for (const auto& [key, said_ns] : next) {
    if (said_ns == wire::kRetentionOfNoTopic) {
      batch.remove(records_, kTopicRecord + key);
    } else {
      batch.put(records_, kTopicRecord + key, record_value(said_ns));
    }
  }
  if (next.empty()) return ok();
  EC_TRY(engine_.write(batch, Durability::Sync));
  for (const auto& [key, said_ns] : next) {
    if (said_ns == wire::kRetentionOfNoTopic) {
      topics_.erase(key);
    } else {
      topics_[key] = said_ns;
      shortest_ns_ = std::min(shortest_ns_.load(), said_ns);
    }
  }
  active_ = true;
  changed = true;
  tell_memory();
  return ok();
}

Status RetentionService::cover(std::span<const wire::Reading> readings,
                               std::span<const catalog::SeriesId> ids, bool has_new_series) {
  if (readings.empty()) return ok();  // every one of a batch may have been refused
  const bool topics = std::any_of(readings.begin(), readings.end(),
                                  [](const wire::Reading& each) { return each.retention_ns > 0; });
  const bool may_forget = active_.load() && readings.front().retention_ns != wire::kRetentionUnsaid;
  if (!topics && !may_forget && !(has_new_series && active_.load())) return ok();
  const MutexLock lock(mutex_);
  bool topics_changed = false;
  EC_TRY(note_topics(readings, ids, topics_changed));
  if (!topics_changed && !has_new_series) return ok();
  std::vector<RetentionRule> changes;
  std::map<NamespaceId, WantedRules> wanted;
  const catalog::SeriesId* last = nullptr;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const catalog::SeriesId& id = ids[i];
    if (last != nullptr && *last == id) continue;
    last = &id;
    const wire::Reading& reading = readings[i];
    const catalog::SeriesEntry entry{std::string(reading.namespace_name),
                                     std::string(reading.device), std::string(reading.sensor), id};
    const auto [rules, first] = wanted.try_emplace(id.namespace_id);
    const std::int64_t outermost = outermost_ns(rules_, entry.namespace_name);
    if (first && outermost != kRetentionForever) rules->second.add_namespace(outermost);
    const bool own = add_series(rules_, entry, has_new_series, rules->second);
    // What topics no longer say anything of.
    const Bytes prefix = series_prefix(id);
    if (topics_changed && !own && engine_has(engine_, id.namespace_id, prefix))
      changes.push_back({id.namespace_id, prefix, std::nullopt});
  }
  for (auto& [id, rules] : wanted) rules.append_additions(engine_, id, changes);
  return apply(std::move(changes));
}

}  // namespace edgecase::retention
