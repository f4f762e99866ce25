// Keeps the rules of retention. Rules by selector, as people write them, become the engine's rules
// by key prefix (edgecase/options.h), for what is stored already and for series that come later.
//
// The most specific rule that matches a series holds: one of its namespace before one of all; one
// that names the device before a glob; one that names the sensor before a glob; then the one with
// more letters. Without a rule for it alone (anything but `*/*`) the rule of the MQTT topic it came
// by holds, then `*/*`, then the default. Rules of all namespaces leave out those of the store's
// own, whose names begin with `_`.
//
// Where a rule has tiers (TIERS.md), the engine lets nothing of the readings expire: they go when
// the windows that are made of them are durable. Windows expire by rules of the engine, too.
//
// Rules are records of the engine's namespace `_retention` (Placement::Metadata). Thread-safe.
// `mutex_` is held while the engine makes a change durable: changes are rare, and one after
// another.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/tier_spaces.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"
#include "retention/eviction.h"
#include "wire/reading.h"
#include "wire/selector.h"
#include "wire/tiers.h"

namespace edgecase::retention {

// Marks say how far each series is thinned: before its mark it has windows alone, from there on
// readings as they came (TIERS.md). A mark becomes durable in the batch that makes the windows and
// takes the readings. A reading from before it is refused: its window is made, and would not be
// told from one that was counted already.
//
// Records, in the namespace `_retention`; numbers are big-endian:
//   'W' namespace id (4) device id (4) sensor id (4)
//     ->  version (1), mark ns (8), then of each tier that reaches up to it: window ns (8)
//
// Thread-safe. A store without tiers pays one comparison a batch.

struct TierMark {
  std::int64_t before_ns = INT64_MIN;  // INT64_MIN: nothing is thinned
  // Readings before this are gone for good; those up to the mark are hidden, and their bytes wait.
  std::int64_t erased_ns = INT64_MIN;
  std::vector<std::int64_t> every_ns;  // of the tiers that there are of what lies before

  friend bool operator==(const TierMark&, const TierMark&) = default;
};

class TierMarks {
 public:
  static constexpr char kRecord = 'W';

  // At start. Corruption, Unsupported.
  Status load(ByteView key, ByteView value) EC_EXCLUDES(mutex_);

  TierMark find(const catalog::SeriesId& series) const EC_EXCLUDES(mutex_);
  // As of a snapshot (null: now), exactly: find() follows what is durable. Errors: the engine's.
  static Result<TierMark> find_in(Engine& engine, NamespaceId records,
                                  const catalog::SeriesId& series,
                                  const std::shared_ptr<const Snapshot>& snapshot);
  // Nothing from this time on is a window, in snapshots that were taken before.
  std::int64_t reach_ns(const catalog::SeriesId& series) const EC_EXCLUDES(mutex_);
  // Series with readings that are hidden and wait, `most` at most.
  std::vector<catalog::SeriesId> waiting(std::size_t most) const EC_EXCLUDES(mutex_);
  // Before this time some series is thinned; INT64_MIN: none is.
  std::int64_t latest_ns() const { return latest_ns_.load(std::memory_order_relaxed); }
  std::size_t size() const EC_EXCLUDES(mutex_);

  // For the batch that makes it durable, then set() once it is.
  static void append(NamespaceId records, const catalog::SeriesId& series, const TierMark& mark,
                     WriteBatch& batch);
  void set(const catalog::SeriesId& series, TierMark mark) EC_EXCLUDES(mutex_);

  // From now on readings of the series from before this time are refused, while windows are made of
  // those that are there. Whoever calls holds the gate of the fences closed, so that none is on its
  // way in. withdraw_all() takes all of them back.
  void announce(const catalog::SeriesId& series, std::int64_t before_ns) EC_EXCLUDES(mutex_);
  void withdraw_all() EC_EXCLUDES(mutex_);

  // A copy of what was stored once comes in parts, as a restore brings it: meanwhile, and
  // kCopyRestNs after, its readings are not late, so no tiers are made; kCopiesMaxNs after the
  // first in any case. By the clock of the store.
  static constexpr std::int64_t kCopyRestNs = 600'000'000'000;
  static constexpr std::int64_t kCopiesMaxNs = 86'400'000'000'000;
  void note_copied(std::int64_t now_ns);
  bool takes_copies(std::int64_t now_ns) const;

  // Which of the readings come late; empty: none. Whoever asks has passed the gate.
  std::vector<bool> refused(std::span<const wire::Reading> readings,
                            const catalog::Catalog& catalog) const EC_EXCLUDES(mutex_);

  // As Catalog's own.
  Status plan_erasure(NamespaceId records, const catalog::Erased& erased,
                      const catalog::SpanTaker& take) const;
  void forget(const catalog::Erased& erased) EC_EXCLUDES(mutex_);
  std::uint64_t memory_bytes() const EC_EXCLUDES(mutex_);

 private:
  using Key = std::tuple<NamespaceId, std::uint32_t, std::uint32_t>;
  struct Entry {
    std::int64_t before_ns = INT64_MIN;
    std::int64_t erased_ns = INT64_MIN;
    std::uint32_t tiers = 0;  // which of lists_
  };

  static Result<TierMark> decode(ByteView value);
  static Key key_of(const catalog::SeriesId& series) {
    return {series.namespace_id, series.device, series.sensor};
  }
  void raise_latest(std::int64_t before_ns);

  mutable SharedMutex mutex_;
  std::map<Key, Entry> marks_ EC_GUARDED_BY(mutex_);
  std::map<Key, std::int64_t> announced_ EC_GUARDED_BY(mutex_);
  // Lists of tiers: as many as rules had, however many series follow them.
  std::vector<std::vector<std::int64_t>> lists_ EC_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> latest_ns_{INT64_MIN};
  std::atomic<std::int64_t> first_copy_ns_{INT64_MIN}, last_copy_ns_{INT64_MIN};
};

inline constexpr std::string_view kRetentionNamespace = "_retention";
inline constexpr std::size_t kRulesMax = 1000;
// Series that a preview names; its sums count all.
inline constexpr std::size_t kPreviewSeriesMax = 1000;

struct Rule {
  std::string namespace_name;  // empty: all namespaces
  wire::Selector selector;
  std::int64_t retention_ns = kRetentionForever;  // of readings as they came
  std::vector<wire::Tier> tiers = {};             // what they become then; none: nothing

  wire::Keeping keeping() const { return {retention_ns, tiers}; }
};

// What a tier will hold once the readings that are due have become its windows: about, and at most.
struct PreviewTier {
  wire::Tier tier;
  catalog::WindowAmount amount;
};

// What a rule would do, or what those that are there will do.
struct PreviewSeries {
  catalog::SeriesEntry entry;
  wire::Keeping now, then;                // what holds now, and then
  std::uint64_t count = 0;                // readings that would go at once
  std::uint64_t bytes = 0;                // what they take in the value layer
  std::uint64_t thinned = 0;              // readings that would become windows at once
  std::uint64_t windows = 0;              // of tiers, that would go at once
  std::vector<PreviewTier> tiers;         // of `then`
  std::optional<std::int64_t> oldest_ns;  // of them
  std::optional<std::int64_t> next_ns;    // when the first of the rest would go; none: never
};
struct Preview {
  std::uint64_t series = 0;    // that the selector matches
  std::uint64_t readings = 0;  // of theirs
  std::uint64_t count = 0;     // would go at once
  std::uint64_t bytes = 0;
  std::uint64_t thinned = 0, windows = 0;  // as of a series
  std::vector<PreviewTier> tiers;          // of all series together
  std::optional<std::int64_t> oldest_ns;
  std::optional<std::int64_t> next_ns;
  std::vector<PreviewSeries> affected;  // those of which something goes, at once or later

  bool erases_everything() const { return count > 0 && count == readings; }
  // What another one found, of other series.
  void add(Preview more);
};

// LimitReached: kRulesMax.
Status too_many_rules();

class WantedRules;

class RetentionService {
 public:
  // `by_default` is storage.retention. Brings the engine's rules in line. Errors: the engine's.
  static Result<std::unique_ptr<RetentionService>> open(Engine& engine, catalog::Catalog& catalog,
                                                        wire::Keeping by_default);
  static Result<std::unique_ptr<RetentionService>> open(Engine& engine, catalog::Catalog& catalog,
                                                        std::int64_t default_ns) {
    return open(engine, catalog, wire::Keeping{default_ns, {}});
  }

  // In the order of namespace and selector.
  std::vector<Rule> rules() const EC_EXCLUDES(mutex_);
  // What holds for one series now.
  wire::Keeping keeping(const catalog::SeriesEntry& entry) const EC_EXCLUDES(mutex_);
  // When its readings expire: by the clock, so never where they become tiers.
  std::int64_t expiry_ns(const catalog::SeriesEntry& entry) const EC_EXCLUDES(mutex_);
  // How long something is kept of it: readings, or the last of its tiers.
  std::int64_t retention_ns(const catalog::SeriesEntry& entry) const EC_EXCLUDES(mutex_);
  // What holds for series of a namespace of which no other rule says more.
  std::int64_t namespace_ns(std::string_view namespace_name) const EC_EXCLUDES(mutex_);
  const wire::Keeping& by_default() const { return default_; }
  // The tiers that something of a namespace has by its rules, the finest first; of those with
  // windows of one length, how long the one is kept that stays the longest.
  std::vector<wire::Tier> tiers_of(const std::string& namespace_name) const EC_EXCLUDES(mutex_);
  // No reading expires sooner; kRetentionForever: none does.
  std::int64_t shortest_ns() const { return shortest_ns_.load(std::memory_order_relaxed); }

  // Holds on return, for what is stored already and for what comes later; durable. Devices that it
  // names need not have come yet. Errors: InvalidArgument (a retention below 1 ns), NotFound (a
  // namespace that does not exist), LimitReached (kRulesMax), the engine's.
  Status set(const Rule& rule) EC_EXCLUDES(mutex_);
  // The same of several rules: all of them or none.
  Status set_all(std::span<const Rule> rules) EC_EXCLUDES(mutex_);
  // NotFound: there is no such rule.
  Status clear(const std::string& namespace_name, const wire::Selector& selector)
      EC_EXCLUDES(mutex_);
  // What set() would do; without a retention: what the rules that are there will do. Errors as of
  // set().
  Result<Preview> preview(const std::string& namespace_name, const wire::Selector& selector,
                          std::optional<wire::Keeping> keeping) const;
  // The same of several rules, each series once where they are of one namespace; their own
  // retention means nothing. LimitReached: they would be more than kRulesMax.
  Result<Preview> preview_all(std::span<const Rule> rules,
                              std::optional<wire::Keeping> keeping) const EC_EXCLUDES(mutex_);
  // What clear() of these rules would do; those that are not set change nothing.
  Result<Preview> preview_clear(std::span<const Rule> rules) const EC_EXCLUDES(mutex_);

  // What waits for targets: their rules wait too, but no longer than each hold says. All holds at
  // once; durable. After a start on a store with holds the engine's rules stay as they were until
  // the first call. Errors: the engine's.
  Status set_holds(std::vector<Hold> holds) EC_EXCLUDES(mutex_);

  // What is thinned of each series, and in which tiers.
  TierMarks& marks() { return marks_; }
  const TierMarks& marks() const { return marks_; }
  // Where records of marks go.
  NamespaceId records() const { return records_; }
  // Whether readings of some series become tiers, or became: then there is something to look after.
  bool has_tiers() const {
    return shortest_tiered_ns() != kRetentionForever || marks_.latest_ns() != INT64_MIN;
  }
  // No reading becomes a part of a tier sooner; kRetentionForever: none does.
  std::int64_t shortest_tiered_ns() const { return shortest_tiered_ns_.load(); }
  // The place of a tier of a namespace, which is made if there is none, with its rules.
  Result<catalog::TierSpace> tier_space(NamespaceId readings, std::int64_t every_ns)
      EC_EXCLUDES(mutex_);
  // After some were made.
  void tell_marks() EC_EXCLUDES(mutex_);

  // Before readings are written: `ids` are theirs. Series that are new get their rules, and those
  // that a topic says something of. Cheap when there is nothing to do. New series are covered again
  // once they are durable if generation() has changed since: rules that are set meanwhile do not
  // see them.
  Status cover(std::span<const wire::Reading> readings, std::span<const catalog::SeriesId> ids,
               bool has_new_series) EC_EXCLUDES(mutex_);
  std::uint64_t generation() const { return generation_.load(); }

  // Plans what is erased with its names (catalog/catalog.h): `take` gets the keys of what topics
  // said of it, and of the rules that name an erased device; returns these. Nothing changes while
  // change_lock() is held: until forget() has followed the durable removal of the keys. It brings
  // the engine's rules in line, as the next open() does.
  Mutex& change_lock() EC_RETURN_CAPABILITY(mutex_) { return mutex_; }
  Result<std::vector<Rule>> plan_erasure(const catalog::Erased& erased,
                                         const catalog::SpanTaker& take) EC_REQUIRES(mutex_);
  Status forget(const catalog::Erased& erased, const std::vector<Rule>& rules) EC_REQUIRES(mutex_);

 private:
  // What is due to something: a Keeping that is kept elsewhere.
  struct Due {
    std::int64_t raw_ns = kRetentionForever;
    const std::vector<wire::Tier>* tiers = nullptr;  // null: none
    std::int64_t held_ns = 0;                        // as long as this in any case

    bool has_tiers() const { return tiers != nullptr && !tiers->empty(); }
    // The engine's rule: of readings (`every_ns` 0), or of windows.
    std::int64_t engine_ns(std::int64_t every_ns) const;
  };

  RetentionService(Engine& engine, catalog::Catalog& catalog, wire::Keeping by_default);

  Status load() EC_REQUIRES(mutex_);
  Status check_target(const std::string& namespace_name, const wire::Selector& selector) const;
  Due outermost(const std::vector<Rule>& rules, std::string_view namespace_name) const
      EC_REQUIRES(mutex_);
  Due of_device(const std::vector<Rule>& rules, std::string_view namespace_name,
                const std::string& device) const EC_REQUIRES(mutex_);
  Due of_series(const std::vector<Rule>& rules, const catalog::SeriesEntry& entry) const
      EC_REQUIRES(mutex_);
  // How long holds spare all that lies in the scope; null: any device, any sensor.
  std::int64_t held_ns(std::string_view namespace_name, const std::string* device,
                       const std::string* sensor) const EC_REQUIRES(mutex_);
  bool is_new_device(const catalog::SeriesEntry& entry) const;
  bool is_new_series(const catalog::SeriesEntry& entry) const;
  bool add_series(const std::vector<Rule>& rules, const catalog::SeriesEntry& entry,
                  bool may_be_new, const catalog::TierSpace& space, WantedRules& wanted) const
      EC_REQUIRES(mutex_);
  // The engine's rules are made those of `rules`.
  Status align(const std::vector<Rule>& rules) EC_REQUIRES(mutex_);
  Status apply(std::vector<RetentionRule> changes);
  bool is_damaged() const { return is_damaged_ || catalog_.is_damaged(); }
  Status check_changes() const;
  void tell_memory() EC_REQUIRES(mutex_);
  bool may_shorten(const Rule& rule) const EC_REQUIRES(mutex_);
  Status note_topics(std::span<const wire::Reading> readings,
                     std::span<const catalog::SeriesId> ids, bool& changed) EC_REQUIRES(mutex_);
  std::vector<Rule> with(const std::vector<Rule>& rules, const Rule& rule) const;
  static std::vector<Rule> without(std::vector<Rule> rules, const std::string& namespace_name,
                                   const wire::Selector& selector);
  // What would go of what `rules` match if `next` were all rules there are.
  Result<Preview> preview_under(const std::vector<Rule>& next, std::span<const Rule> rules) const
      EC_REQUIRES(mutex_);
  Result<PreviewSeries> preview_series(const std::vector<Rule>& next,
                                       const catalog::SeriesEntry& entry, std::int64_t now_ns,
                                       std::uint64_t& readings) const EC_REQUIRES(mutex_);
  Status preview_tiers(const catalog::SeriesEntry& entry, std::uint64_t bytes, std::int64_t now_ns,
                       PreviewSeries& series) const;
  Result<std::uint64_t> windows_going(const catalog::SeriesEntry& entry, const wire::Keeping& then,
                                      std::int64_t now_ns) const;

  Engine& engine_;
  catalog::Catalog& catalog_;
  const wire::Keeping default_;
  NamespaceId records_ = 0;

  mutable Mutex mutex_;
  std::vector<Rule> rules_ EC_GUARDED_BY(mutex_);
  std::vector<Hold> holds_ EC_GUARDED_BY(mutex_);
  bool has_untold_holds_ EC_GUARDED_BY(mutex_) = false;  // of before the start
  // By namespace id and series prefix.
  std::map<Bytes, wire::Keeping> topics_ EC_GUARDED_BY(mutex_);
  catalog::SetAside set_aside_{engine_};  // for topics_ and marks_
  std::atomic<std::int64_t> shortest_ns_{kRetentionForever};
  std::atomic<bool> active_{false};  // any rule, default or topic
  std::atomic<std::int64_t> shortest_tiered_ns_{kRetentionForever};
  TierMarks marks_;
  std::atomic<std::uint64_t> generation_{0};  // of rules_
  bool is_damaged_ = false;  // some records cannot be read; set before the service is used
};

}  // namespace edgecase::retention
