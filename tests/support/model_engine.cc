#include "support/model_engine.h"

#include <condition_variable>
#include <iterator>
#include <utility>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "core/read_view.h"
#include "core/reader.h"
#include "expiry/retention_rules.h"
#include "support/few_numbers.h"

namespace edgecase::test {

struct ModelEngine::State {
  mutable std::mutex mutex;
  Contents contents;
  std::vector<NamespaceInfo> namespaces;
  NamespaceId next_namespace = 1;
  Status next_write, every_write, next_read, every_erasure;
  std::uint64_t writes_left = 0;  // before `later_writes`, where that is not Ok
  Status later_writes;
  bool writes_held = false;
  std::condition_variable released;
  Stats stats;
  engine::RetentionRules rules;
  std::int64_t now_ns = 0;
  std::size_t open_views = 0;
  engine::SnapshotGenerations generations;
  engine::Revocations revocations;
  CommitCompanion* companion = nullptr;
  bool is_short_of_memory = false;
  std::uint64_t shortages = 0;  // so far
};

namespace {

using Map = ModelEngine::Map;

// Keeps a map from being changed; lets it go under the mutex, so that use_count() is the truth for
// whoever holds that.
template <typename Held, typename State>
class View {
 public:
  View(std::shared_ptr<State> state, Held held) : state_(std::move(state)), held_(std::move(held)) {
    ++state_->open_views;
  }
  ~View() {
    const std::lock_guard lock(state_->mutex);
    held_ = Held();
    --state_->open_views;
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  const Held& held() const { return held_; }

 private:
  std::shared_ptr<State> state_;
  Held held_;
};

template <typename State>
class ModelSnapshot final : public Snapshot {
 public:
  ModelSnapshot(std::shared_ptr<State> state, ModelEngine::Contents contents)
      : generation_(state->generations.current()),
        state_(state),
        shortages_(state->shortages),
        revocations_(state->revocations.count()),
        committed_(state->stats.last_sequence),
        view_(std::move(state), std::move(contents)) {}
  const ModelEngine::Contents& contents() const { return view_.held(); }
  std::uint64_t revocations() const override { return revocations_; }
  CommitPosition committed() const override { return committed_; }
  bool keeps_memory() const override {
    const std::lock_guard lock(state_->mutex);
    return state_->shortages > shortages_;
  }

 private:
  std::shared_ptr<const void> generation_;
  std::shared_ptr<State> state_;
  const std::uint64_t shortages_;
  const std::uint64_t revocations_;
  const CommitPosition committed_;
  View<ModelEngine::Contents, State> view_;
};

bool within(const KeyRange& range, ByteView key) {
  return key >= range.lower && (range.upper.empty() || key < range.upper);
}

template <typename State>
class ModelIterator final : public Iterator {
 public:
  ModelIterator(std::shared_ptr<State> state, std::shared_ptr<Map> map, KeyRange range,
                const ReadOptions& options)
      : view_(std::move(state), std::move(map)),
        range_(std::move(range)),
        reverse_(options.direction == Direction::Reverse),
        newer_than_(options.newer_than) {
    if (!reverse_) {
      settle(map_().lower_bound(range_.lower));
    } else {
      settle_before(range_.upper.empty() ? map_().end() : map_().lower_bound(range_.upper));
    }
  }

  bool valid() const override { return valid_; }
  void next() override {
    if (reverse_) {
      settle_before(at_);
    } else {
      settle(std::next(at_));
    }
  }
  void seek(ByteView key) override {
    if (!reverse_) {
      settle(map_().lower_bound(key < range_.lower ? ByteView(range_.lower) : key));
    } else if (!range_.upper.empty() && key >= range_.upper) {
      settle_before(map_().lower_bound(range_.upper));
    } else {
      settle_before(map_().upper_bound(key));
    }
  }
  ByteView key() const override { return at_->first; }
  ByteView value() override { return at_->second.bytes; }
  std::size_t take_numbers(ByteView end, NumberColumns& columns) override {
    return take_few_numbers(*this, reverse_, end, columns);
  }
  CommitPosition position() const override { return at_->second.position; }
  const Status& status() const override { return status_; }

 private:
  const Map& map_() const { return *view_.held(); }
  bool is_old() const { return at_->second.position <= newer_than_; }
  void settle(Map::const_iterator at) {
    for (at_ = at; at_ != map_().end() && is_old();) ++at_;
    valid_ = at_ != map_().end() && within(range_, at_->first);
  }
  void settle_before(Map::const_iterator at) {
    for (valid_ = false; at != map_().begin() && !valid_; valid_ = !is_old()) {
      at_ = --at;
      if (!within(range_, at_->first)) return;
    }
  }

  View<std::shared_ptr<Map>, State> view_;
  KeyRange range_;
  bool reverse_;
  const CommitPosition newer_than_;
  Map::const_iterator at_;
  bool valid_ = false;
  Status status_;
};

}  // namespace

ModelEngine::ModelEngine() : state_(std::make_shared<State>()) {}
ModelEngine::~ModelEngine() = default;

void ModelEngine::fail_next_write(Status status) {
  const std::lock_guard lock(state_->mutex);
  state_->next_write = std::move(status);
}
void ModelEngine::fail_writes(Status status) {
  const std::lock_guard lock(state_->mutex);
  state_->every_write = std::move(status);
  state_->later_writes = ok();
}
void ModelEngine::hold_writes() {
  const std::lock_guard lock(state_->mutex);
  state_->writes_held = true;
}

void ModelEngine::release_writes() {
  const std::lock_guard lock(state_->mutex);
  state_->writes_held = false;
  state_->released.notify_all();
}

void ModelEngine::fail_writes_after(std::uint64_t count, Status status) {
  const std::lock_guard lock(state_->mutex);
  state_->writes_left = count;
  state_->later_writes = std::move(status);
}
void ModelEngine::fail_erasures(Status status) {
  const std::lock_guard lock(state_->mutex);
  state_->every_erasure = std::move(status);
}
// Nothing is stored: there is nothing to overwrite.
Result<ErasureReport> ModelEngine::erase() {
  if (erasing_) erasing_();
  const std::lock_guard lock(state_->mutex);
  if (!state_->every_erasure.ok()) return state_->every_erasure;
  return ErasureReport{};
}
void ModelEngine::fail_next_read(Status status) {
  const std::lock_guard lock(state_->mutex);
  state_->next_read = std::move(status);
}

Result<NamespaceId> ModelEngine::create_namespace(std::string_view name,
                                                  const NamespaceOptions& options) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->every_write.ok()) return state_->every_write;
  if (name.empty() || name.size() > kNamespaceNameMaxBytes) {
    return invalid_argument("namespace name of " + std::to_string(name.size()) + " bytes");
  }
  for (const NamespaceInfo& info : state_->namespaces) {
    if (info.name == name) return already_exists("namespace " + std::string(name));
  }
  if (state_->namespaces.size() >= kNamespaceCountMax) return busy("too many namespaces");
  const NamespaceId id = state_->next_namespace++;
  state_->namespaces.push_back({id, std::string(name), options});
  state_->contents[id] = std::make_shared<Map>();
  return id;
}

Status ModelEngine::drop_namespace(NamespaceId id) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->every_write.ok()) return state_->every_write;
  if (state_->contents.erase(id) == 0) return not_found("namespace " + std::to_string(id));
  std::erase_if(state_->namespaces, [id](const NamespaceInfo& info) { return info.id == id; });
  state_->revocations.note();
  return ok();
}

Result<NamespaceInfo> ModelEngine::find_namespace(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  for (const NamespaceInfo& info : state_->namespaces) {
    if (info.name == name) return info;
  }
  return not_found("namespace " + std::string(name));
}

std::vector<NamespaceInfo> ModelEngine::namespaces() const {
  const std::lock_guard lock(state_->mutex);
  return state_->namespaces;
}

Status ModelEngine::write(const WriteBatch& batch, Durability durability) {
  std::unique_lock lock(state_->mutex);
  state_->released.wait(lock, [this] { return !state_->writes_held; });
  Status failure = next_failure();
  if (state_->companion != nullptr) {
    WriteBatch added;
    state_->companion->add_to(added);
    if (added.count() > 0) state_->companion->committed(failure.ok() ? apply(added) : failure);
  }
  EC_TRY(failure);
  if (batch.count() > 0) EC_TRY(apply(batch));
  ++state_->stats.batches;
  state_->stats.entries_written += batch.count();
  if (durability == Durability::Sync) ++state_->stats.wal_syncs;
  return ok();
}

void ModelEngine::set_commit_companion(CommitCompanion* companion) {
  const std::lock_guard lock(state_->mutex);
  state_->companion = companion;
}

// Both under the mutex.
Status ModelEngine::next_failure() {
  if (!state_->every_write.ok()) return state_->every_write;
  if (!state_->next_write.ok()) return std::exchange(state_->next_write, ok());
  if (!state_->later_writes.ok() && state_->writes_left-- == 0)
    state_->every_write = state_->later_writes;
  return state_->every_write;
}

Status ModelEngine::apply(const WriteBatch& batch) {
  if (batch.range_deletes() > kRangeDeletesPerBatchMax)
    return invalid_argument("too many range deletes");
  if (batch.over_limit() || batch.size_bytes() > kBatchSizeMaxBytes) {
    return invalid_argument("batch is over a limit");
  }
  engine::WriteBatchReader check(batch);
  while (const auto entry = check.next()) {
    if (state_->contents.count(entry->namespace_id) == 0) {
      return invalid_argument("unknown namespace " + std::to_string(entry->namespace_id));
    }
  }
  EC_TRY(check.status());
  engine::WriteBatchReader reader(batch);
  while (const auto entry = reader.next()) {
    std::shared_ptr<Map>& map = state_->contents[entry->namespace_id];
    if (map.use_count() > 1) map = std::make_shared<Map>(*map);
    const CommitPosition position = ++state_->stats.last_sequence;
    if (entry->kind == engine::EntryKind::Put) {
      map->insert_or_assign(Bytes(entry->key),
                            Value{Bytes(entry->value).append(entry->end), position});
    } else if (entry->is_range()) {
      map->erase(map->lower_bound(entry->key),
                 entry->value.empty() ? map->end() : map->lower_bound(entry->value));
      const engine::RangeDelete range =
          engine::make_range_delete(entry->namespace_id, entry->key, entry->value, 0);
      if (entry->kind == engine::EntryKind::EraseRange)
        state_->revocations.note_erased(range.lower, range.upper);
    } else if (const auto found = map->find(entry->key); found != map->end()) {
      map->erase(found);
    }
    state_->stats.user_bytes_written += entry->key.size() + entry->value.size() + entry->end.size();
  }
  return ok();
}

Result<std::shared_ptr<ModelEngine::Map>> ModelEngine::contents(NamespaceId namespace_id,
                                                                const ReadOptions& options) {
  if (!state_->next_read.ok()) return std::exchange(state_->next_read, ok());
  if (state_->contents.count(namespace_id) == 0 && namespace_id != 0 &&
      namespace_id < state_->next_namespace)
    return not_found("namespace " + std::to_string(namespace_id) + " was dropped");
  const Contents* all = &state_->contents;
  if (options.snapshot != nullptr) {
    all = &static_cast<const ModelSnapshot<State>&>(*options.snapshot).contents();
  }
  const auto found = all->find(namespace_id);
  if (found != all->end()) {
    if (!state_->rules.has_namespace(namespace_id)) return found->second;
    auto live = std::make_shared<Map>(*found->second);
    const engine::ExpiryView expiry(std::make_shared<const engine::RetentionRules>(state_->rules),
                                    state_->now_ns);
    std::erase_if(*live, [&](const auto& entry) {
      return expiry.hides(engine::make_full_key(namespace_id, entry.first));
    });
    return live;
  }
  if (state_->contents.count(namespace_id) != 0) return std::make_shared<Map>();
  return invalid_argument("unknown namespace " + std::to_string(namespace_id));
}

Result<Bytes> ModelEngine::get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) {
  const std::lock_guard lock(state_->mutex);
  ++state_->stats.reads.gets;
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<Map> map, contents(namespace_id, options));
  const auto found = map->find(key);
  if (found == map->end()) return not_found("no such key");
  return found->second.bytes;
}

Result<std::unique_ptr<Iterator>> ModelEngine::scan(NamespaceId namespace_id, const KeyRange& range,
                                                    const ReadOptions& options) {
  const std::lock_guard lock(state_->mutex);
  EC_ASSIGN_OR_RETURN(std::shared_ptr<Map> map, contents(namespace_id, options));
  return std::unique_ptr<Iterator>(
      new ModelIterator<State>(state_, std::move(map), range, options));
}

Result<RangeStats> ModelEngine::range_stats(NamespaceId namespace_id, const KeyRange& range,
                                            const ReadOptions& options) {
  const std::lock_guard lock(state_->mutex);
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<Map> map, contents(namespace_id, options));
  RangeStats stats;
  for (auto i = map->lower_bound(range.lower); i != map->end() && within(range, i->first); ++i) {
    if (i->second.position <= options.newer_than) continue;
    ++stats.entries;
    stats.stored_bytes += i->first.size() + i->second.bytes.size();
  }
  return stats;
}

std::weak_ptr<const void> ModelEngine::held_snapshots() {
  const std::lock_guard lock(state_->mutex);
  return state_->generations.turn();
}

std::uint64_t ModelEngine::revocations() const {
  return state_->revocations.count();
}

bool ModelEngine::is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                             std::uint64_t since) const {
  if (state_->revocations.count() == since) return false;
  const Bytes from = engine::make_full_key(namespace_id, first);
  const Bytes to = engine::make_full_key(namespace_id, last);
  const std::lock_guard lock(state_->mutex);
  if (state_->contents.count(namespace_id) == 0) return true;
  const engine::ExpiryView expiry(std::make_shared<const engine::RetentionRules>(state_->rules),
                                  state_->now_ns);
  return (state_->rules.has_namespace(namespace_id) && expiry.may_hide(from, to)) ||
         state_->revocations.has_erased(from, to, since);
}

std::shared_ptr<const Snapshot> ModelEngine::snapshot() {
  const std::lock_guard lock(state_->mutex);
  return std::make_shared<ModelSnapshot<State>>(state_, state_->contents);
}

Status ModelEngine::set_retention(std::vector<RetentionRule> rules) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->every_write.ok()) return state_->every_write;
  if (!state_->next_write.ok()) return std::exchange(state_->next_write, ok());
  for (const RetentionRule& rule : rules) {
    if (state_->contents.count(rule.namespace_id) == 0)
      return not_found("namespace " + std::to_string(rule.namespace_id));
  }
  if (!state_->rules.change(rules, state_->now_ns)) return busy("too many retention rules");
  state_->revocations.note();
  return ok();
}

std::vector<RetentionRule> ModelEngine::retention_rules() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<RetentionRule> all;
  for (const engine::ScopeState& scope : state_->rules.scopes()) {
    if (!scope.retention_ns) continue;
    all.push_back({engine::namespace_of(scope.prefix), Bytes(engine::user_key_of(scope.prefix)),
                   scope.retention_ns});
  }
  return all;
}

void ModelEngine::each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                                      const RetentionTaker& take) const {
  const std::lock_guard lock(state_->mutex);
  state_->rules.each(id, prefixes, take);
}

std::int64_t ModelEngine::expiry_now_ns() {
  const std::lock_guard lock(state_->mutex);
  return state_->now_ns;
}

Eviction ModelEngine::plan_eviction(const EvictionRequest& request) const {
  const std::lock_guard lock(state_->mutex);
  std::map<std::int64_t, std::uint64_t> bytes_at;
  for (const NamespaceId id : request.namespaces) {
    const auto found = state_->contents.find(id);
    if (found == state_->contents.end()) continue;
    for (const auto& [key, value] : *found->second) {
      const Bytes full_key = engine::make_full_key(id, key);
      if (!engine::has_time(full_key)) continue;
      const std::uint64_t ordinal = engine::ordinal_in(full_key);
      if (ordinal < state_->rules.given_up_below(id)) continue;
      bytes_at[engine::time_of_ordinal(ordinal)] += key.size() + value.bytes.size();
    }
  }
  Eviction eviction;
  for (const auto& [time_ns, bytes] : bytes_at) {
    if (eviction.value_bytes >= request.value_bytes || time_ns >= request.limit_ns) break;
    eviction.value_bytes += bytes;
    eviction.before_ns = time_ns + 1;
  }
  return eviction;
}

Status ModelEngine::evict(std::span<const NamespaceId> ids, std::int64_t before_ns) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->every_write.ok()) return state_->every_write;
  for (const NamespaceId id : ids) state_->rules.give_up({id, before_ns});
  state_->revocations.note();
  return ok();
}

std::int64_t ModelEngine::evicted_before_ns(NamespaceId id) const {
  const std::lock_guard lock(state_->mutex);
  return engine::time_of_ordinal(state_->rules.given_up_below(id));
}

void ModelEngine::set_expiry_now_ns(std::int64_t now_ns) {
  const std::lock_guard lock(state_->mutex);
  state_->now_ns = now_ns;
}

void ModelEngine::set_live_bytes(std::uint64_t metadata_bytes, std::uint64_t value_bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->stats.metadata.live_bytes = metadata_bytes;
  state_->stats.values.live_bytes = value_bytes;
}

void ModelEngine::set_short_of_memory(bool is_short) {
  const std::lock_guard lock(state_->mutex);
  state_->is_short_of_memory = is_short;
  if (is_short) ++state_->shortages;
}

bool ModelEngine::is_short_of_memory() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_short_of_memory;
}

void ModelEngine::set_aside(std::uint64_t before, std::uint64_t now) {
  const std::lock_guard lock(state_->mutex);
  state_->stats.set_aside_bytes += now - before;
}

Stats ModelEngine::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

std::size_t ModelEngine::open_views() const {
  const std::lock_guard lock(state_->mutex);
  return state_->open_views;
}

}  // namespace edgecase::test
