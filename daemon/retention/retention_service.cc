#include "retention/retention_service.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "catalog/catalog.h"
#include "retention/retention_records.h"
#include "wire/names.h"
#include "wire/reading.h"

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

// Where there is something of a namespace: its readings first, as windows of no length, then tiers.
std::vector<catalog::TierSpace> spaces_of(const Engine& engine, NamespaceId readings) {
  std::vector<catalog::TierSpace> spaces = catalog::tier_spaces_of(engine, readings);
  spaces.insert(spaces.begin(), {readings, 0});
  return spaces;
}

// What a series is there: itself, or its columns.
std::vector<catalog::SeriesId> series_in(const catalog::TierSpace& space,
                                         const catalog::SeriesId& series) {
  if (space.every_ns == 0) return {series};
  std::vector<catalog::SeriesId> columns;
  if (series.sensor > catalog::kTierSensorMax) return columns;
  for (std::uint32_t column = 0; column < catalog::kTierColumns; ++column) {
    columns.push_back(
        catalog::tier_series(space.id, series, static_cast<catalog::TierColumn>(column)));
  }
  return columns;
}

Status too_many_engine_rules() {
  return limit_reached("there are " + std::to_string(kRetentionRulesMax) +
                       " devices and series with a retention of their own, the most");
}

}  // namespace

std::int64_t RetentionService::Due::engine_ns(std::int64_t every_ns) const {
  if (every_ns == 0) return has_tiers() ? kRetentionForever : std::max(raw_ns, held_ns);
  if (tiers == nullptr) return kRetentionForever;
  // Windows that the rule does not have any more are for the maker of tiers to take.
  const auto found = std::find_if(tiers->begin(), tiers->end(), [=](const wire::Tier& tier) {
    return tier.every_ns == every_ns;
  });
  return found == tiers->end() ? kRetentionForever : found->keep_ns;
}

RetentionService::RetentionService(Engine& engine, catalog::Catalog& catalog,
                                   wire::Keeping by_default)
    : engine_(engine), catalog_(catalog), default_(std::move(by_default)) {}

Result<std::unique_ptr<RetentionService>> RetentionService::open(Engine& engine,
                                                                 catalog::Catalog& catalog,
                                                                 wire::Keeping by_default) {
  std::unique_ptr<RetentionService> service(
      new RetentionService(engine, catalog, std::move(by_default)));
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
    if (key.empty()) return corruption("a record of a retention rule is cut");
    if (key.front() == kHoldRecord) {
      has_untold_holds_ = true;
      continue;
    }
    if (key.front() == TierMarks::kRecord) {
      EC_TRY(marks_.load(key, value));
      continue;
    }
    EC_ASSIGN_OR_RETURN(wire::Keeping keeping, read_record_value(value));
    if (key.front() == kTopicRecord && key.size() == 1 + kTopicKeyBytes) {
      topics_[Bytes(key.substr(1))] = std::move(keeping);
      continue;
    }
    const std::size_t device = key.find('\0');
    const std::size_t sensor = key.find('\0', device + 1);
    if (key.front() != kRuleRecord || device == ByteView::npos || sensor == ByteView::npos)
      return corruption("a record of a retention rule is malformed");
    rules_.push_back({std::string(key.substr(1, device - 1)),
                      {std::string(key.substr(device + 1, sensor - device - 1)),
                       std::string(key.substr(sensor + 1))},
                      keeping.raw_ns,
                      std::move(keeping.tiers)});
  }
  EC_TRY(iterator->status());
  tell_memory();
  return ok();
}

void RetentionService::tell_memory() {
  constexpr std::size_t kNodeBytes = 112;  // of a map, of keys that need no memory of their own
  set_aside_.tell(topics_.size() * kNodeBytes + marks_.memory_bytes());
}

void RetentionService::tell_marks() {
  const MutexLock lock(mutex_);
  tell_memory();
}

Result<catalog::TierSpace> RetentionService::tier_space(NamespaceId readings,
                                                        std::int64_t every_ns) {
  const MutexLock lock(mutex_);
  const bool is_there = engine_.find_namespace(catalog::tier_space_name(readings, every_ns)).ok();
  EC_ASSIGN_OR_RETURN(const catalog::TierSpace space,
                      catalog::ensure_tier_space(engine_, readings, every_ns));
  // Cut short between the two, the next start brings the engine in line.
  if (!is_there) EC_TRY(align(rules_));
  return space;
}

std::vector<wire::Tier> RetentionService::tiers_of(const std::string& namespace_name) const {
  std::map<std::int64_t, std::int64_t> keeps;  // by length
  const auto add = [&keeps](const std::vector<wire::Tier>& tiers) {
    for (const auto& [every, keep] : tiers) keeps[every] = std::max(keeps[every], keep);
  };
  const auto id = engine_.find_namespace(namespace_name);
  const Bytes prefix = id.ok() ? topic_key({id->id, 0, 0}).substr(0, sizeof id->id) : Bytes();
  const MutexLock lock(mutex_);
  if (const Due due = outermost(rules_, namespace_name); due.tiers != nullptr) add(*due.tiers);
  for (const Rule& rule : rules_)
    if (!is_everything(rule.selector) && holds_in(rule, namespace_name)) add(rule.tiers);
  for (const auto& [key, keeping] : topics_)
    if (id.ok() && key.starts_with(prefix)) add(keeping.tiers);
  std::vector<wire::Tier> tiers;
  for (const auto& [every_ns, keep_ns] : keeps) tiers.push_back({every_ns, keep_ns});
  return tiers;
}

std::vector<Rule> RetentionService::rules() const {
  const MutexLock lock(mutex_);
  return rules_;
}

RetentionService::Due RetentionService::outermost(const std::vector<Rule>& rules,
                                                  std::string_view namespace_name) const {
  const std::int64_t held = held_ns(namespace_name, nullptr, nullptr);
  const Rule* rule = most_specific(rules, [&](const Rule& each) {
    return is_everything(each.selector) && holds_in(each, namespace_name);
  });
  if (rule != nullptr) return {rule->retention_ns, &rule->tiers, held};
  if (namespace_name.starts_with('_')) return {};
  return {default_.raw_ns, &default_.tiers, held};
}

RetentionService::Due RetentionService::of_device(const std::vector<Rule>& rules,
                                                  std::string_view namespace_name,
                                                  const std::string& device) const {
  const Rule* rule = most_specific(rules, [&](const Rule& each) {
    return each.selector.sensor == "*" && holds_in(each, namespace_name) &&
           wire::glob_matches(each.selector.device, device);
  });
  Due due =
      rule != nullptr ? Due{rule->retention_ns, &rule->tiers} : outermost(rules, namespace_name);
  due.held_ns = held_ns(namespace_name, &device, nullptr);
  return due;
}

RetentionService::Due RetentionService::of_series(const std::vector<Rule>& rules,
                                                  const catalog::SeriesEntry& entry) const {
  const Rule* rule = most_specific(rules, [&](const Rule& each) {
    return holds_in(each, entry.namespace_name) &&
           each.selector.matches(entry.device, entry.sensor);
  });
  const std::int64_t held = held_ns(entry.namespace_name, &entry.device, &entry.sensor);
  if (rule != nullptr && !is_everything(rule->selector))
    return {rule->retention_ns, &rule->tiers, held};
  const auto topic = topics_.find(topic_key(entry.id));
  if (topic != topics_.end()) return {topic->second.raw_ns, &topic->second.tiers, held};
  if (rule != nullptr) return {rule->retention_ns, &rule->tiers, held};
  Due due = outermost(rules, entry.namespace_name);
  due.held_ns = held;
  return due;
}

// Whether a device is new. Nothing is stored of one whose records are not durable yet.
bool RetentionService::is_new_device(const catalog::SeriesEntry& entry) const {
  const wire::Selector all_of_it{wire::escape_name(entry.device), "*"};
  return catalog_.select_rows(entry.namespace_name, all_of_it).empty();
}

bool RetentionService::is_new_series(const catalog::SeriesEntry& entry) const {
  return !catalog_.find(entry.namespace_name, entry.device, entry.sensor).ok();
}

// Rules of the engine that give one series what it is due in a place, besides its namespace's; a
// longer prefix wins there. Whether it takes one for the series alone.
bool RetentionService::add_series(const std::vector<Rule>& rules, const catalog::SeriesEntry& entry,
                                  bool may_be_new, const catalog::TierSpace& space,
                                  WantedRules& wanted) const {
  const std::int64_t every_ns = space.every_ns;
  const std::int64_t outermost_ns = outermost(rules, entry.namespace_name).engine_ns(every_ns);
  const std::int64_t device_ns =
      of_device(rules, entry.namespace_name, entry.device).engine_ns(every_ns);
  if (device_ns != outermost_ns && !wanted.added_last(entry.id.device))
    wanted.add_device(entry.id.device, may_be_new && is_new_device(entry), device_ns);
  const std::int64_t series_ns = of_series(rules, entry).engine_ns(every_ns);
  if (series_ns == device_ns) return false;
  const bool is_new = may_be_new && is_new_series(entry);
  for (const catalog::SeriesId& id : series_in(space, entry.id))
    wanted.add_series(id, is_new, series_ns);
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
    for (const catalog::TierSpace& space : spaces_of(engine_, info->id)) {
      WantedRules wanted;
      if (const std::int64_t ns = outermost(rules, name).engine_ns(space.every_ns);
          ns != kRetentionForever)
        wanted.add_namespace(ns);
      EC_TRY(catalog_.each(name, {}, [&](const catalog::SeriesEntry& entry) EC_REQUIRES(mutex_) {
        add_series(rules, entry, false, space, wanted);
        return wanted.is_full() ? too_many_engine_rules() : ok();
      }));
      wanted.append_changes(engine_, space.id, changes);
    }
  }
  // Some rules, or the names that they are of, are not known: what would go, going by the rest,
  // might be what one of them keeps. The engine's own stay as they are.
  if (is_damaged() || has_untold_holds_) changes.clear();
  ++generation_;
  active_ = !rules.empty() || default_.raw_ns != kRetentionForever || !topics_.empty();
  std::int64_t shortest_ns = kRetentionForever, shortest_tiered_ns = kRetentionForever;
  const auto look_at = [&](std::int64_t raw_ns, const std::vector<wire::Tier>& tiers) {
    std::int64_t& shortest = tiers.empty() ? shortest_ns : shortest_tiered_ns;
    shortest = std::min(shortest, raw_ns);
  };
  look_at(default_.raw_ns, default_.tiers);
  for (const Rule& rule : rules) look_at(rule.retention_ns, rule.tiers);
  for (const auto& [key, said] : topics_) look_at(said.raw_ns, said.tiers);
  shortest_ns_ = shortest_ns;
  shortest_tiered_ns_ = shortest_tiered_ns;
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
      return rule.retention_ns < each.retention_ns || rule.tiers != each.tiers;
  }
  return rule.retention_ns != kRetentionForever;
}

Status RetentionService::set(const Rule& rule) {
  return set_all({&rule, 1});
}

Status RetentionService::set_all(std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    EC_TRY(wire::check_keeping(rule.keeping()));
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
    batch.put(records_, key, record_value(rule.retention_ns, rule.tiers));
    if (may_shorten(rule)) batch.set_makes_room();
    undo.remove(records_, key);
    for (const Rule& each : rules_) {
      if (same_rule(each, rule.namespace_name, rule.selector))
        undo.put(records_, key, record_value(each.retention_ns, each.tiers));
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
  std::map<Bytes, std::optional<wire::Keeping>> next;  // none: its topic says nothing
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const wire::Reading& reading = readings[i];
    if (reading.retention_ns == wire::kRetentionUnsaid) continue;
    std::optional<wire::Keeping> said;
    if (reading.retention_ns != wire::kRetentionOfNoTopic) {
      said = wire::Keeping{reading.retention_ns, {}};
      if (reading.metadata != nullptr) said->tiers = reading.metadata->tiers;
    }
    const Bytes key = topic_key(ids[i]);
    const auto known = topics_.find(key);
    const bool is_known = known != topics_.end();
    if (is_known != said.has_value() || (is_known && known->second != *said))
      next[key] = std::move(said);
  }
  for (const auto& [key, said] : next) {
    if (said) {
      batch.put(records_, kTopicRecord + key, record_value(said->raw_ns, said->tiers));
    } else {
      batch.remove(records_, kTopicRecord + key);
    }
  }
  if (next.empty()) return ok();
  EC_TRY(engine_.write(batch, Durability::Sync));
  for (auto& [key, said] : next) {
    if (!said) {
      topics_.erase(key);
      continue;
    }
    std::atomic<std::int64_t>& shortest = said->tiers.empty() ? shortest_ns_ : shortest_tiered_ns_;
    shortest = std::min(shortest.load(), said->raw_ns);
    topics_[key] = *std::move(said);
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
  struct Place {
    catalog::TierSpace space;
    WantedRules wanted = {};
  };
  std::map<NamespaceId, std::vector<Place>> places;
  const catalog::SeriesId* last = nullptr;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const catalog::SeriesId& id = ids[i];
    if (last != nullptr && *last == id) continue;
    last = &id;
    const wire::Reading& reading = readings[i];
    const catalog::SeriesEntry entry{std::string(reading.namespace_name),
                                     std::string(reading.device), std::string(reading.sensor), id};
    const auto [at, is_first] = places.try_emplace(id.namespace_id);
    if (is_first) {
      for (const catalog::TierSpace& space : spaces_of(engine_, id.namespace_id)) {
        Place& place = at->second.emplace_back(Place{space});
        const std::int64_t ns = outermost(rules_, entry.namespace_name).engine_ns(space.every_ns);
        if (ns != kRetentionForever) place.wanted.add_namespace(ns);
      }
    }
    for (Place& place : at->second) {
      const bool own = add_series(rules_, entry, has_new_series, place.space, place.wanted);
      if (own || !topics_changed) continue;
      // What topics no longer say anything of.
      for (const catalog::SeriesId& each : series_in(place.space, id)) {
        const Bytes prefix = series_prefix(each);
        if (engine_has(engine_, place.space.id, prefix))
          changes.push_back({place.space.id, prefix, std::nullopt});
      }
    }
  }
  for (auto& [id, all] : places) {
    for (Place& place : all) place.wanted.append_additions(engine_, place.space.id, changes);
  }
  return apply(std::move(changes));
}

}  // namespace edgecase::retention
