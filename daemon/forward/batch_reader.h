// Reads from the store what a target does not have: the readings of a range of positions behind a
// place, in the order of keys, as the lines that the target takes. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/settings.h"
#include "edgecase/engine.h"
#include "forward/courier.h"
#include "forward/cursor.h"
#include "forward/series_names.h"
#include "forward/thinned.h"
#include "forward/windows.h"
#include "wire/reading.h"
#include "wire/reading_format.h"

namespace edgecase::forward {

class BatchReader {
 public:
  // Keys that are looked at for one batch: who wants few of them still gets a turn to stop.
  static constexpr std::size_t kKeysMax = 200'000;

  struct Wish {
    CommitPosition after = 0, upto = 0;
    std::optional<Place> behind = {};
    bool skips_nameless = false;  // they wait no longer: counted as unfit
    Round round = {};             // of targets with `every`
    std::size_t lines_max = Batch::kLinesMax;
  };

  BatchReader(Engine& engine, const catalog::Catalog& catalog,
              const config::ForwardSettings& settings, const config::ForwardTarget& target,
              const Shape& shape = {}, const retention::RetentionService* rules = nullptr,
              const Thinned* thinned = nullptr);

  // Errors: Busy, where a reading is durable and its name is not to be found yet; the engine's.
  Result<Batch> read(const Wish& wish);
  // Reads what is there still of the first `taken` of these places.
  Result<Batch> read(const std::vector<Refusal>& refused, std::size_t& taken);
  // How many readings lie in the range, wanted or not, at most.
  Result<std::uint64_t> count(const Wish& wish) const;
  // Rules of series by row from `row` on, some of them, whether something of these goes or not;
  // `row` is where to go on, or none: that was all.
  Batch read_rules(std::optional<catalog::SeriesRow>& row);
  // As the target calls it, until the next call; null: nobody knows it here.
  const SeriesNames::Series* series_of(const catalog::SeriesId& id) { return names_.find(id); }
  // A window of a tier, as columns of the series.
  void add_window(const catalog::SeriesId& id, const SeriesNames::Series& there,
                  const WholeWindow& window, WindowColumns columns, Batch& batch);
  // Their rule, where rules go along.
  void add_column_rules(const catalog::SeriesId& id, const SeriesNames::Series& there,
                        const SentWindows& sent, Batch& batch);
  // The target knows the rules of that batch.
  void note_said(const Batch& batch);
  // Forgets names and what was read. Rules that were told stay, by number.
  void forget();

 private:
  struct Scan;
  std::vector<NamespaceInfo> wanted_namespaces() const;
  Status read_namespace(const NamespaceInfo& from, const Wish& wish, Scan& scan);
  // Adds the reading at `at`. What is not wanted is passed over; what does not fit counts as unfit.
  Status add(const NamespaceInfo& from, const wire::ReadingKey& key, Iterator& at,
             bool skips_nameless, Batch& batch);
  Status add(const NamespaceInfo& from, const wire::ReadingKey& key,
             const catalog::SeriesEntry& series, ByteView value, Batch& batch);
  void add(NamespaceId from, const wire::ReadingKey& key, const catalog::SeriesEntry& series,
           const wire::Value& value, Batch& batch);
  // All columns of the window.
  Status add_window(const NamespaceInfo& from, wire::ReadingKey key,
                    const SeriesNames::Series& series,
                    const std::shared_ptr<const Snapshot>& snapshot, Batch& batch);
  Status read_windows(const NamespaceInfo& from, const Wish& wish, Iterator& at, Scan& scan);
  // Null: there is none that is wanted. Busy: none yet.
  Result<const SeriesNames::Series*> series_of(const NamespaceInfo& from,
                                               const wire::ReadingKey& key, bool skips_nameless,
                                               Batch& batch);
  // The column's number, for readings of that series and type.
  std::uint32_t column_in(Batch& batch, NamespaceId namespace_id, const wire::ReadingKey& key,
                          const wire::Reading& reading);
  // Adds the sent window that begins then, which the target refused.
  Status add_sent_window(const catalog::SeriesId& id, const SeriesNames::Series& there,
                         std::int64_t begin_ns, const SentWindows::Span& span, Batch& batch);
  void add_rule(const catalog::SeriesId& id, const SeriesNames::Series& series, Batch& batch);
  void add_rule_line(const catalog::SeriesEntry& there, const std::string& keeping, Batch& batch);
  void begin_part(const std::string& namespace_name, Batch& batch) const;

  Engine& engine_;
  const catalog::Catalog& catalog_;
  const retention::RetentionService* const rules_;  // that are told; null: none are
  const retention::RetentionService* const tiers_;  // null: there are none
  const Thinned* const thinned_;
  const config::ForwardKind kind_;
  const std::optional<std::int64_t> from_ns_;
  const std::string name_, database_, bucket_, namespace_;
  SeriesNames names_;
  std::optional<Windows> windows_;  // of thinned targets
  wire::ReadingFormatter formatter_;
  // What the target was told of series last, kSeriesMax of them; the rest is told again.
  std::unordered_map<catalog::SeriesId, std::string, SeriesNames::SeriesHash> said_,
      said_of_columns_;
  std::string head_;  // scratch
};

}  // namespace edgecase::forward
