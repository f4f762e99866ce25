#include "forward/batch_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "wire/decimal.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

// The columns of a window take turns (wire/tiers.h).
constexpr std::size_t kColumnsAsked = 8;
constexpr std::size_t kRulesAtOnce = 500;

wire::ReadingFormat format_of(config::ForwardKind kind) {
  return kind == config::ForwardKind::Influx ? wire::ReadingFormat::Line
                                             : wire::ReadingFormat::Ndjson;
}

ReadOptions passing_over_damage() {
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  return options;
}

void append_plain(const wire::Value& value, std::string& text) {
  switch (value.type) {
    case wire::ValueType::Bool: text += value.boolean ? "true" : "false"; return;
    case wire::ValueType::Int64: text += std::to_string(value.int64); return;
    default: wire::append_double(value.float64, text); return;
  }
}

// Keys of a namespace behind a place; empty: none of them.
std::optional<KeyRange> keys_behind(NamespaceId id, const std::optional<Place>& place) {
  if (!place || place->namespace_id < id) return KeyRange{};
  if (place->namespace_id > id) return std::nullopt;
  return KeyRange{place->key + '\0', {}};
}

}  // namespace

struct BatchReader::Scan {
  ReadOptions options;
  Batch batch;
  std::size_t keys = 0;
};

BatchReader::BatchReader(Engine& engine, const catalog::Catalog& catalog,
                         const config::ForwardSettings& settings,
                         const config::ForwardTarget& target, const Shape& shape,
                         const retention::RetentionService* rules, const Thinned* thinned)
    : engine_(engine),
      catalog_(catalog),
      rules_(settings.retention ? rules : nullptr),
      tiers_(rules),
      thinned_(thinned),
      kind_(target.kind),
      from_ns_(target.from == config::ForwardFrom::Time ? std::optional(target.from_ns)
                                                        : std::nullopt),
      name_(settings.name),
      database_(settings.database),
      bucket_(settings.bucket),
      namespace_(settings.namespace_name),
      names_(catalog, target.selections, Pseudonyms(shape.salt), rules_, shape.every_ns),
      formatter_(format_of(target.kind)) {
  if (shape.every_ns > 0) windows_.emplace(engine, shape.every_ns, rules);
}

std::vector<NamespaceInfo> BatchReader::wanted_namespaces() const {
  std::vector<NamespaceInfo> wanted;
  for (NamespaceInfo& each : engine_.namespaces()) {
    if (!each.name.starts_with('_') && names_.wants(each.name)) wanted.push_back(std::move(each));
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const NamespaceInfo& a, const NamespaceInfo& b) { return a.id < b.id; });
  return wanted;
}

Result<Batch> BatchReader::read(const Wish& wish) {
  Scan scan;
  scan.batch.revocations = engine_.revocations();
  if (windows_) scan.batch.window_ns = windows_->every_ns();
  scan.options = passing_over_damage();
  scan.options.snapshot = engine_.snapshot();
  scan.options.newer_than = wish.after;
  scan.options.large_value_bytes = Batch::kValueMaxBytes;
  for (const NamespaceInfo& each : wanted_namespaces()) {
    const Status status = read_namespace(each, wish, scan);
    if (status.code() == StatusCode::NotFound) continue;  // dropped meanwhile
    EC_TRY(status);
    if (!scan.batch.is_whole) break;
  }
  return std::move(scan.batch);
}

Status BatchReader::read_namespace(const NamespaceInfo& from, const Wish& wish, Scan& scan) {
  const std::optional<KeyRange> range = keys_behind(from.id, wish.behind);
  if (!range) return ok();
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(from.id, *range, scan.options));
  if (windows_) return read_windows(from, wish, *at, scan);
  Batch& batch = scan.batch;
  for (; at->valid(); at->next()) {
    wire::ReadingKey key;
    // What was committed later belongs to a later range, and hides what it replaced.
    const bool belongs = at->position() <= wish.upto && wire::decode_reading_key(at->key(), key) &&
                         !wire::is_undated_time(key.time_ns) &&
                         (!from_ns_ || key.time_ns >= *from_ns_);
    if (belongs) EC_TRY(add(from, key, *at, wish.skips_nameless, batch));
    if (!at->valid()) break;  // its value cannot be read
    if (++scan.keys < kKeysMax && !batch.is_full(wish.lines_max)) continue;
    batch.is_whole = false;
    batch.last = {from.id, Bytes(at->key())};
    return ok();
  }
  return at->status();
}

// A window is read whole when the first reading of it is met, and passed over then.
Status BatchReader::read_windows(const NamespaceInfo& from, const Wish& wish, Iterator& at,
                                 Scan& scan) {
  Batch& batch = scan.batch;
  const std::int64_t every_ns = windows_->every_ns();
  while (at.valid()) {
    wire::ReadingKey key;
    Bytes behind(at.key());
    const bool is_reading = at.position() <= wish.upto && wire::decode_reading_key(at.key(), key) &&
                            !wire::is_undated_time(key.time_ns) &&
                            (!from_ns_ || key.time_ns >= *from_ns_);
    std::int64_t last_ns = 0;
    if (is_reading &&
        __builtin_add_overflow(window_begin_ns(key.time_ns, every_ns), every_ns - 1, &last_ns)) {
      last_ns = INT64_MAX;
    }
    if (is_reading && wish.round.takes(at.position(), last_ns + (last_ns < INT64_MAX ? 1 : 0))) {
      EC_ASSIGN_OR_RETURN(const SeriesNames::Series* series,
                          series_of(from, key, wish.skips_nameless, batch));
      if (series != nullptr) EC_TRY(add_window(from, key, *series, scan.options.snapshot, batch));
      behind = wire::make_reading_key({key.device, key.sensor, last_ns});
      at.seek(behind + '\0');
    } else {
      at.next();
    }
    if (++scan.keys < kKeysMax && !batch.is_full(wish.lines_max)) continue;
    batch.is_whole = false;
    batch.last = {from.id, std::move(behind)};
    return ok();
  }
  return at.status();
}

Result<const SeriesNames::Series*> BatchReader::series_of(const NamespaceInfo& from,
                                                          const wire::ReadingKey& key,
                                                          bool skips_nameless, Batch& batch) {
  const SeriesNames::Series* series = names_.find({from.id, key.device, key.sensor});
  if (series == nullptr) {
    if (!skips_nameless) return busy("a reading has no name yet");
    ++batch.unfit;
    return series;
  }
  if (!series->is_wanted) return nullptr;
  if (rules_ != nullptr) add_rule({from.id, key.device, key.sensor}, *series, batch);
  return series;
}

// A reading whose value is how long its series is kept.
void BatchReader::add_rule(const catalog::SeriesId& id, const SeriesNames::Series& series,
                           Batch& batch) {
  if (!batch.said.empty() && batch.said.back().first == id) return;
  if (const auto known = said_.find(id); known != said_.end() && known->second == series.keeping)
    return;
  batch.said.emplace_back(id, series.keeping);
  if (!windows_) return add_rule_line(series.entry, series.keeping, batch);
  for (wire::WindowColumn column : wire::kWindowColumns)
    add_rule_line(column_of(series.entry, column), series.keeping, batch);
}

void BatchReader::add_rule_line(const catalog::SeriesEntry& there, const std::string& keeping,
                                Batch& batch) {
  wire::Reading reading;
  reading.value = wire::Value::of_text(keeping);
  reading.namespace_name = namespace_.empty() ? std::string_view(there.namespace_name) : namespace_;
  reading.device = there.device;
  reading.sensor = there.sensor;
  reading.time_ns = 0;
  wire::SeriesIdentity identity;
  identity.body = there.identity;
  if (!identity.body.empty()) reading.identity = &identity;
  formatter_.reading(reading, batch.rules);
}

// Windows are kept as their tier is, not as readings are.
void BatchReader::add_column_rules(const catalog::SeriesId& id, const SeriesNames::Series& there,
                                   const SentWindows& sent, Batch& batch) {
  if (rules_ == nullptr || windows_ || sent.spans.empty()) return;
  const auto here = catalog_.series_at(there.row);
  if (!here.ok()) return;
  std::int64_t every_ns = 0;
  WindowColumns columns = 0;
  for (const SentWindows::Span& each : sent.spans) {
    every_ns = std::max(every_ns, each.every_ns);
    columns |= each.columns;
  }
  const wire::Keeping keeping = keeping_of_columns(rules_->keeping(*here), every_ns);
  const std::string text =
      keeping.raw_ns == kRetentionForever ? std::string() : wire::keeping_text(keeping);
  if (const auto known = said_of_columns_.find(id);
      known != said_of_columns_.end() && known->second == text)
    return;
  batch.said_of_columns.emplace_back(id, text);
  for (const wire::WindowColumn column : wire::kWindowColumns)
    if ((columns & column_bit(column)) != 0)
      add_rule_line(column_of(there.entry, column), text, batch);
}

Batch BatchReader::read_rules(std::optional<catalog::SeriesRow>& row) {
  Batch batch;
  std::vector<catalog::SeriesRow> rows = catalog_.select_rows("", wire::Selector());
  std::sort(rows.begin(), rows.end());
  auto at = std::lower_bound(rows.begin(), rows.end(), row.value_or(0));
  const auto went = thinned_ == nullptr ? Result<std::optional<std::uint64_t>>(std::nullopt)
                                        : thinned_->sent_readings(name_);
  const bool has_columns = !windows_ && (!went.ok() || *went);
  for (; at != rows.end() && batch.said.size() < kRulesAtOnce; ++at) {
    auto entry = catalog_.series_at(*at);
    if (!entry.ok()) continue;
    const catalog::SeriesId id = entry->id;
    const SeriesNames::Series series = names_.series_of(*at, *std::move(entry));
    if (!series.is_wanted) continue;
    add_rule(id, series, batch);
    if (!has_columns) continue;
    if (const auto sent = thinned_->sent(name_, id); sent.ok())
      add_column_rules(id, series, *sent, batch);
  }
  row = at == rows.end() ? std::nullopt : std::optional(*at);
  return batch;
}

void BatchReader::note_said(const Batch& batch) {
  if (said_.size() + batch.said.size() > SeriesNames::kSeriesMax) said_.clear();
  for (const auto& [id, keeping] : batch.said) said_[id] = keeping;
  if (said_of_columns_.size() + batch.said_of_columns.size() > SeriesNames::kSeriesMax)
    said_of_columns_.clear();
  for (const auto& [id, keeping] : batch.said_of_columns) said_of_columns_[id] = keeping;
}

void BatchReader::add_window(const catalog::SeriesId& id, const SeriesNames::Series& there,
                             const WholeWindow& window, WindowColumns columns, Batch& batch) {
  batch.window_ns = std::max(batch.window_ns, window.every_ns);
  const wire::ReadingKey key{id.device, id.sensor, window.begin_ns};
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    if ((columns & column_bit(column)) == 0) continue;
    if (const auto value = window.value_of(column))
      add(id.namespace_id, key, column_of(there.entry, column), *value, batch);
  }
}

Status BatchReader::add_sent_window(const catalog::SeriesId& id, const SeriesNames::Series& there,
                                    std::int64_t begin_ns, const SentWindows::Span& span,
                                    Batch& batch) {
  if (span.has_several_lengths()) {
    const auto here = catalog_.series_at(there.row);
    if (!here.ok()) return ok();  // erased meanwhile
    return Windows(engine_, 0, tiers_)
        .each_tiered(*here, begin_ns, begin_ns + 1, nullptr, [&](const WholeWindow& window) {
          if (window.begin_ns == begin_ns) add_window(id, there, window, span.columns, batch);
          return true;
        });
  }
  return each_window(engine_, id, span.every_ns, begin_ns, begin_ns + 1, nullptr,
                     [&](const wire::Window& window) {
                       add_window(id, there, as_it_is(window), span.columns, batch);
                       return true;
                     });
}

Status BatchReader::add_window(const NamespaceInfo& from, wire::ReadingKey key,
                               const SeriesNames::Series& series,
                               const std::shared_ptr<const Snapshot>& snapshot, Batch& batch) {
  key.time_ns = window_begin_ns(key.time_ns, windows_->every_ns());
  const catalog::SeriesId id{from.id, key.device, key.sensor};
  retention::Leaving why = retention::Leaving::Expired;
  bool is_whole = key.time_ns >= windows_->kept_from_ns(id, why);
  if (is_whole) {
    std::optional<catalog::SeriesEntry> tiered;
    if (windows_->is_tiered(id, key.time_ns)) {
      auto here = catalog_.series_at(series.row);
      if (!here.ok() || !(here->id == id)) return ok();  // erased meanwhile
      tiered = *std::move(here);
    }
    why = retention::Leaving::Thinned;
    EC_ASSIGN_OR_RETURN(
        is_whole,
        windows_->compute(from.id, key, tiered ? &*tiered : nullptr, snapshot, batch.unfit,
                          [&](wire::WindowColumn column, const wire::Value& value) {
                            add(from.id, key, column_of(series.entry, column), value, batch);
                          }));
  }
  if (is_whole) return ok();
  EC_ASSIGN_OR_RETURN(const std::uint64_t readings, windows_->count(from.id, key, snapshot));
  batch.unsent[static_cast<std::size_t>(why)] += readings;
  return ok();
}

Status BatchReader::add(const NamespaceInfo& from, const wire::ReadingKey& key, Iterator& at,
                        bool skips_nameless, Batch& batch) {
  EC_ASSIGN_OR_RETURN(const SeriesNames::Series* series,
                      series_of(from, key, skips_nameless, batch));
  if (series == nullptr) return ok();
  EC_ASSIGN_OR_RETURN(const auto large, at.large_value());
  if (large != nullptr) {
    ++batch.unfit;
    return ok();
  }
  const ByteView value = at.value();
  return at.valid() ? add(from, key, series->entry, value, batch) : ok();
}

Status BatchReader::add(const NamespaceInfo& from, const wire::ReadingKey& key,
                        const catalog::SeriesEntry& series, ByteView value, Batch& batch) {
  wire::Value decoded;
  if (wire::decode_value(value, decoded)) {
    add(from.id, key, series, decoded, batch);
  } else {
    ++batch.unfit;
  }
  return ok();
}

void BatchReader::add(NamespaceId from, const wire::ReadingKey& key,
                      const catalog::SeriesEntry& series, const wire::Value& value, Batch& batch) {
  wire::Reading reading;
  reading.value = value;
  reading.namespace_name =
      namespace_.empty() ? std::string_view(series.namespace_name) : namespace_;
  reading.device = series.device;
  reading.sensor = series.sensor;
  reading.time_ns = key.time_ns;
  wire::SeriesIdentity identity;
  identity.body = series.identity;
  if (!identity.body.empty()) reading.identity = &identity;
  const std::size_t begin = batch.text.size();
  std::uint32_t column = Batch::kWhole;
  if (kind_ == config::ForwardKind::EdgeCase && wire::is_plain(value.type)) {
    column = column_in(batch, from, key, reading);
    append_plain(value, batch.text);
    batch.text += '\n';
  } else {
    formatter_.reading(reading, batch.text);
  }
  // A comment: line protocol has no form for it.
  if (kind_ == config::ForwardKind::Influx && batch.text[begin] == '#') {
    batch.text.resize(begin);
    ++batch.unfit;
    return;
  }
  begin_part(series.namespace_name, batch);
  batch.lines.push_back({static_cast<std::uint32_t>(batch.text.size()), from, key, column});
  batch.parts.back().end = batch.lines.size();
}

std::uint32_t BatchReader::column_in(Batch& batch, NamespaceId namespace_id,
                                     const wire::ReadingKey& key, const wire::Reading& reading) {
  const bool is_int = reading.value.type == wire::ValueType::Int64;
  // Neighbours are mostly of one series; windows have columns of several names under one key.
  if (batch.window_ns == 0 && !batch.lines.empty()) {
    const Batch::Line& before = batch.lines.back();
    const bool is_same = before.column != Batch::kWhole && before.namespace_id == namespace_id &&
                         before.key.device == key.device && before.key.sensor == key.sensor;
    if (is_same && batch.columns[before.column].is_int == is_int) return before.column;
  }
  head_.clear();
  formatter_.begin_column(reading, head_);
  const auto is_it = [&](const Batch::Column& column) {
    return column.is_int == is_int && column.head == head_;
  };
  const auto columns = std::span(batch.columns).last(std::min(batch.columns.size(), kColumnsAsked));
  const auto found = std::find_if(columns.rbegin(), columns.rend(), is_it);
  if (found != columns.rend()) return static_cast<std::uint32_t>(&*found - batch.columns.data());
  batch.columns.push_back({head_, is_int});
  batch.head_bytes += head_.size();
  return static_cast<std::uint32_t>(batch.columns.size() - 1);
}

// A request goes to one database.
void BatchReader::begin_part(const std::string& namespace_name, Batch& batch) const {
  std::string database;
  if (kind_ == config::ForwardKind::Influx && bucket_.empty())
    database = database_.empty() ? namespace_name : database_;
  if (!batch.parts.empty() && batch.parts.back().database == database) return;
  batch.parts.push_back({std::move(database), batch.lines.size(), batch.lines.size()});
}

Result<Batch> BatchReader::read(const std::vector<Refusal>& refused, std::size_t& taken) {
  Batch batch;
  batch.revocations = engine_.revocations();
  if (windows_) batch.window_ns = windows_->every_ns();
  const std::vector<NamespaceInfo> namespaces = wanted_namespaces();
  for (taken = 0; taken < refused.size() && !batch.is_full(); ++taken) {
    const Place& place = refused[taken].place;
    const auto from =
        std::find_if(namespaces.begin(), namespaces.end(),
                     [&place](const NamespaceInfo& info) { return info.id == place.namespace_id; });
    wire::ReadingKey key;
    if (from == namespaces.end() || !wire::decode_reading_key(place.key, key)) continue;
    const SeriesNames::Series* series = names_.find({from->id, key.device, key.sensor});
    if (series == nullptr || !series->is_wanted) continue;
    const catalog::SeriesId id{from->id, key.device, key.sensor};
    std::optional<SentWindows::Span> span;
    if (thinned_ != nullptr) {
      EC_ASSIGN_OR_RETURN(const SentWindows sent, thinned_->sent(name_, id));
      if (const SentWindows::Span* const found = sent.find(key.time_ns)) span = *found;
    }
    if (windows_ && (!span || span->every_ns == windows_->every_ns())) {
      EC_TRY(add_window(*from, key, *series, nullptr, batch));
      continue;
    }
    if (windows_) {
      EC_TRY(add_sent_window(id, *series, key.time_ns, *span, batch));
      continue;
    }
    const Result<Bytes> value = engine_.get(from->id, place.key, {});
    if (value.ok()) {
      EC_TRY(add(*from, key, series->entry, *value, batch));
    } else if (value.status().code() == StatusCode::NotFound) {
      if (span) EC_TRY(add_sent_window(id, *series, key.time_ns, *span, batch));
    } else {
      return value.status();
    }
  }
  return batch;
}

Result<std::uint64_t> BatchReader::count(const Wish& wish) const {
  std::uint64_t entries = 0;
  ReadOptions options = passing_over_damage();
  options.newer_than = wish.after;
  for (const NamespaceInfo& each : wanted_namespaces()) {
    const std::optional<KeyRange> range = keys_behind(each.id, wish.behind);
    if (!range) continue;
    const auto stats = engine_.range_stats(each.id, *range, options);
    if (stats.status().code() == StatusCode::NotFound) continue;
    if (!stats.ok()) return stats.status();
    entries += stats->entries;
  }
  return entries;
}

void BatchReader::forget() {
  names_.forget();
  head_ = std::string();
  formatter_ = wire::ReadingFormatter(format_of(kind_));
}

}  // namespace edgecase::forward
