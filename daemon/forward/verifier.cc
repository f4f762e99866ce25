#include "forward/forwarding.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "forward/eraser.h"
#include "wire/contract.h"
#include "wire/encoding.h"
#include "wire/json_text.h"
#include "wire/reading.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

constexpr std::int64_t kHourNs = 3600LL * 1'000'000'000;

std::size_t index_of(wire::WindowColumn column) {
  return static_cast<std::size_t>(column);
}

}  // namespace

Verifier::Verifier(Engine& engine, const catalog::Catalog& catalog, Clock& clock, Asked& asked,
                   const config::ForwardSettings& settings, const config::ForwardTarget& target,
                   const Shape& shape, const retention::RetentionService* rules,
                   const Thinned* thinned)
    : engine_(engine),
      catalog_(catalog),
      clock_(clock),
      asked_(asked),
      target_(target),
      watched_{settings.name, target.selections},
      database_(settings.database),
      namespace_(settings.namespace_name),
      pseudonyms_(shape.salt),
      windows_(engine, shape.every_ns, rules),
      thinned_(thinned),
      kind_(asked, settings, target),
      lines_(wire::ReadingFormat::Line),
      objects_(wire::ReadingFormat::Ndjson) {}

Result<VerifyPage> Verifier::page(const VerifyRequest& request) {
  if (const Answer answer = kind_.find_kind(); answer.verdict != Verdict::Taken)
    return status_of(answer);
  if (!kind_.cannot().empty())
    return unsupported(
        "this target cannot be asked what it holds; it is no EdgeCase, InfluxDB 1 "
        "or VictoriaMetrics that answers where it takes lines");
  // By number: new ones come behind those that were compared.
  std::vector<catalog::SeriesRow> rows = catalog_.select_rows("", wire::Selector());
  std::sort(rows.begin(), rows.end());
  const std::int64_t begin_ns = request.from_ns.value_or(INT64_MIN);
  catalog::SeriesRow first = 0;
  std::int64_t from_ns = begin_ns;
  if (!request.behind.empty()) {
    const char* const end = request.behind.data() + request.behind.size();
    const auto row = std::from_chars(request.behind.data(), end, first);
    const bool has_colon = row.ec == std::errc() && row.ptr != end && *row.ptr == ':';
    const auto time =
        has_colon ? std::from_chars(row.ptr + 1, end, from_ns) : std::from_chars_result{};
    if (!has_colon || time.ec != std::errc() || time.ptr != end) {
      return invalid_argument("behind is not what a page before answered as next");
    }
  }
  VerifyPage page;
  const std::int64_t until_ns = clock_.boot_ns() + kPageNs;
  for (auto row = std::lower_bound(rows.begin(), rows.end(), first); row != rows.end(); ++row) {
    if (*row != first) from_ns = begin_ns;
    const auto entry = catalog_.series_at(*row);
    if (!entry.ok() || !watched_.takes(entry->namespace_name, entry->device, entry->sensor))
      continue;
    EC_ASSIGN_OR_RETURN(const std::optional<std::int64_t> rest,
                        compare(*entry, request, from_ns, until_ns, page));
    if (rest) {
      page.next = std::to_string(*row) + ":" + std::to_string(*rest);
      return page;
    }
    if (clock_.boot_ns() < until_ns && page.again.size() < kAgainMax) continue;
    if (row + 1 != rows.end())
      page.next = std::to_string(*row + 1) + ":" + std::to_string(begin_ns);
    return page;
  }
  return page;
}

Result<std::optional<std::int64_t>> Verifier::compare(const catalog::SeriesEntry& entry,
                                                      const VerifyRequest& request,
                                                      std::int64_t from_ns, std::int64_t until_ns,
                                                      VerifyPage& page) {
  if (target_.from == config::ForwardFrom::Time) from_ns = std::max(from_ns, target_.from_ns);
  EC_ASSIGN_OR_RETURN(const bool is_over,
                      compare_sent_windows(entry, request, until_ns, from_ns, page));
  if (is_over) return std::optional(from_ns);
  if (windows_.every_ns() > 0) return compare_windows(entry, request, from_ns, until_ns, page);
  const catalog::SeriesEntry there = pseudonyms_.of(entry);
  const auto identity = catalog::identity_of(there);
  if (!identity.ok()) return std::optional<std::int64_t>();
  const Series series{there, *identity};
  while (true) {
    std::vector<Local> some;
    std::optional<std::int64_t> rest;
    {
      ReadOptions options;
      options.fill_cache = false;
      options.newer_than = request.after;
      options.large_value_bytes = kBytesAtOnce;
      const KeyRange keys = erase::range_of_series(entry.id, {from_ns, request.to_ns});
      EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(entry.id.namespace_id, keys, options));
      std::size_t bytes = 0;
      for (; at->valid(); at->next()) {
        wire::ReadingKey key;
        if (at->position() > request.upto || !wire::decode_reading_key(at->key(), key) ||
            wire::is_undated_time(key.time_ns)) {
          continue;
        }
        if (some.size() == kReadingsAtOnce || bytes > kBytesAtOnce) {
          rest = key.time_ns;
          break;
        }
        EC_ASSIGN_OR_RETURN(const auto large, at->large_value());
        if (large != nullptr) {
          ++page.unchecked;
          continue;
        }
        wire::Reading reading;
        const ByteView value = at->value();
        if (!at->valid()) break;
        if (!wire::decode_value(value, reading.value)) continue;
        reading.time_ns = key.time_ns;
        Local local{key.time_ns, Bytes(at->key()), {}, at->position() <= request.shown};
        if (!describe(series, reading, local.as_it_is)) continue;
        bytes += local.as_it_is.size();
        some.push_back(std::move(local));
      }
      EC_TRY(at->status());
    }
    if (!some.empty()) {
      EC_ASSIGN_OR_RETURN(const bool is_shown, compare_some(series, some, request, until_ns, page));
      if (!is_shown) return std::optional(some.front().time_ns);
    }
    if (!rest || clock_.boot_ns() > until_ns || page.again.size() == kAgainMax) return rest;
    from_ns = *rest;
  }
}

Result<Verifier::ColumnSeries> Verifier::columns_of(const catalog::SeriesEntry& entry) const {
  const catalog::SeriesEntry there = pseudonyms_.of(entry);
  ColumnSeries columns;
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    Series& series = columns[index_of(column)];
    series.entry = column_of(there, column);
    EC_ASSIGN_OR_RETURN(series.identity, catalog::identity_of(series.entry));
  }
  return columns;
}

// What has settled there alone; so nothing is to come. Readings that are here lie behind, with the
// windows of `every` that hold some.
Result<bool> Verifier::compare_sent_windows(const catalog::SeriesEntry& entry,
                                            const VerifyRequest& request, std::int64_t until_ns,
                                            std::int64_t& from_ns, VerifyPage& page) {
  if (thinned_ == nullptr) return false;
  EC_ASSIGN_OR_RETURN(const SentWindows sent, thinned_->sent(watched_.name, entry.id));
  if (sent.spans.empty()) return false;
  EC_ASSIGN_OR_RETURN(const std::optional<OwedWindows> owed,
                      thinned_->owed(watched_.name, entry.id));
  EC_ASSIGN_OR_RETURN(const ColumnSeries columns, columns_of(entry));
  const std::int64_t done_to_ns = owed ? sent.done_to_of(*owed) : sent.done_to_ns;
  const std::int64_t to_ns = std::min(done_to_ns, request.to_ns.value_or(INT64_MAX));
  for (const SentWindows::Span& span : sent.spans) {
    std::int64_t begin_ns = std::max(from_ns, span.begin_ns);
    std::int64_t end_ns = std::min(span.end_ns, to_ns);
    // The last one may have more by now that is owed still.
    if (owed && owed->to_ns > done_to_ns)
      end_ns = std::min(end_ns, window_begin_ns(done_to_ns, span.every_ns));
    if (begin_ns < end_ns && span.has_several_lengths()) {
      const auto pass_over = [&page](const WholeWindow&) { return ++page.unchecked > 0; };
      EC_TRY(windows_.each_tiered(entry, begin_ns, end_ns, engine_.snapshot(), pass_over));
      continue;
    }
    while (begin_ns < end_ns) {
      SomeColumns some;
      EC_ASSIGN_OR_RETURN(const std::int64_t next_ns,
                          read_span(entry, columns, sent, span, begin_ns, end_ns, some));
      for (std::size_t i = 0; i < some.size(); ++i)
        if (!some[i].empty())
          EC_TRY(compare_some(columns[i], some[i], request, until_ns, page).status());
      begin_ns = next_ns;
      const bool is_late = clock_.boot_ns() > until_ns || page.again.size() == kAgainMax;
      if (next_ns == INT64_MAX || !is_late) continue;
      from_ns = next_ns;
      return true;
    }
  }
  return false;
}

// Windows of one span, kWindowsAtOnce of them; where to go on.
Result<std::int64_t> Verifier::read_span(const catalog::SeriesEntry& entry,
                                         const ColumnSeries& columns, const SentWindows& sent,
                                         const SentWindows::Span& span, std::int64_t from_ns,
                                         std::int64_t to_ns, SomeColumns& some) {
  std::int64_t next_ns = INT64_MAX;
  std::size_t count = 0;
  const auto take = [&](const WholeWindow& window) {
    if (window.begin_ns < from_ns || window.every_ns != span.every_ns || window.has_readings ||
        sent.find(window.begin_ns) != &span)
      return true;
    if (count == kWindowsAtOnce) next_ns = window.begin_ns;
    if (count++ == kWindowsAtOnce) return false;
    const Bytes key = wire::make_reading_key({entry.id.device, entry.id.sensor, window.begin_ns});
    for (const wire::WindowColumn column : wire::kWindowColumns) {
      const auto value = window.value_of(column);
      if (!value || (span.columns & column_bit(column)) == 0) continue;
      wire::Reading reading;
      reading.time_ns = window.begin_ns;
      reading.value = *value;
      Local local{window.begin_ns, key, {}, true};
      const std::size_t i = index_of(column);
      if (describe(columns[i], reading, local.as_it_is)) some[i].push_back(std::move(local));
    }
    return true;
  };
  const auto snapshot = engine_.snapshot();
  if (span.every_ns == windows_.every_ns()) {
    EC_TRY(windows_.each_tiered(entry, from_ns, to_ns, snapshot, take));
    return next_ns;
  }
  EC_TRY(each_window(engine_, entry.id, span.every_ns, from_ns, to_ns, snapshot,
                     [&](const wire::Window& window) { return take(as_it_is(window)); }));
  return next_ns;
}

// Windows of which everything was sent, some of them. Where to go on; none: that was all.
Result<std::optional<std::int64_t>> Verifier::find_whole(const catalog::SeriesEntry& entry,
                                                         const VerifyRequest& request,
                                                         std::int64_t from_ns,
                                                         std::vector<WholeSent>& whole) {
  const std::int64_t every_ns = windows_.every_ns();
  retention::Leaving why = retention::Leaving::Expired;
  const std::int64_t oldest_ns = windows_.kept_from_ns(entry.id, why);
  std::optional<std::int64_t> rest;
  ReadOptions options;
  options.fill_cache = false;
  const KeyRange keys = erase::range_of_series(entry.id, {from_ns, request.to_ns});
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(entry.id.namespace_id, keys, options));
  std::optional<std::int64_t> window_ns;
  bool is_sent = false, is_newer = false, is_settled = true;
  const auto end_window = [&] {
    if (window_ns && *window_ns >= oldest_ns && is_sent && !is_newer)
      whole.push_back({*window_ns, is_settled});
    is_sent = is_newer = false;
    is_settled = true;
  };
  for (; at->valid(); at->next()) {
    wire::ReadingKey key;
    if (!wire::decode_reading_key(at->key(), key) || wire::is_undated_time(key.time_ns)) continue;
    if (const std::int64_t begin_ns = window_begin_ns(key.time_ns, every_ns);
        window_ns != begin_ns) {
      end_window();
      window_ns = begin_ns;
      if (whole.size() == kWindowsAtOnce) {
        rest = key.time_ns;
        break;
      }
    }
    (at->position() > request.upto ? is_newer : is_sent) = true;
    is_settled = is_settled && at->position() <= request.shown;
    if (at->position() <= request.after) is_newer = true;  // it may not have gone
  }
  EC_TRY(at->status());
  if (!rest) end_window();
  return rest;
}

Result<std::optional<std::int64_t>> Verifier::compare_windows(const catalog::SeriesEntry& entry,
                                                              const VerifyRequest& request,
                                                              std::int64_t from_ns,
                                                              std::int64_t until_ns,
                                                              VerifyPage& page) {
  EC_ASSIGN_OR_RETURN(const ColumnSeries columns, columns_of(entry));
  std::array<std::vector<Local>, wire::kWindowColumns.size()> some;
  while (true) {
    std::vector<WholeSent> whole;
    EC_ASSIGN_OR_RETURN(const auto rest, find_whole(entry, request, from_ns, whole));
    for (const auto& window : whole) {
      const wire::ReadingKey key{entry.id.device, entry.id.sensor, window.begin_ns};
      const bool is_tiered = windows_.is_tiered(entry.id, window.begin_ns);
      const Result<bool> computed = windows_.compute(
          entry.id.namespace_id, key, is_tiered ? &entry : nullptr, nullptr, page.unchecked,
          [&](wire::WindowColumn column, const wire::Value& value) {
            const std::size_t i = index_of(column);
            wire::Reading reading;
            reading.time_ns = window.begin_ns;
            reading.value = value;
            Local local{window.begin_ns, wire::make_reading_key(key), {}, window.is_settled};
            if (describe(columns[i], reading, local.as_it_is)) some[i].push_back(std::move(local));
          });
      EC_TRY(computed.status());
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (some[i].empty()) continue;
      EC_ASSIGN_OR_RETURN(const bool is_shown,
                          compare_some(columns[i], some[i], request, until_ns, page));
      if (!is_shown) return std::optional(whole.front().begin_ns);
      some[i].clear();
    }
    if (!rest || clock_.boot_ns() > until_ns || page.again.size() == kAgainMax) return rest;
    from_ns = *rest;
  }
}

Result<bool> Verifier::compare_some(const Series& series, const std::vector<Local>& some,
                                    const VerifyRequest& request, std::int64_t until_ns,
                                    VerifyPage& page) {
  Found found;
  while (true) {
    found = {};
    EC_TRY(fetch_some(series, some, found));
    const bool may_come = std::any_of(some.begin(), some.end(), [&found](const Local& each) {
      return !each.is_settled && !found.there.contains(each.as_it_is) &&
             !found.too_long.contains(each.time_ns);
    });
    if (!may_come || !request.wait) break;
    if (clock_.boot_ns() >= until_ns) return false;
    if (!request.wait(kLookAgainNs)) return unavailable("the daemon stops");
  }
  std::map<std::int64_t, VerifyPage::Hour> hours;
  for (const Local& each : some) {
    if (found.too_long.contains(each.time_ns)) {
      ++page.unchecked;
      continue;
    }
    ++page.readings;
    VerifyPage::Hour& hour = hours[window_begin_ns(each.time_ns, kHourNs)];
    ++hour.here;
    if (found.there.contains(each.as_it_is)) continue;
    Place place{series.entry.id.namespace_id, each.key};
    EC_ASSIGN_OR_RETURN(const bool is_refused, request.is_refused(place));
    if (is_refused) {
      ++page.refused;
      continue;
    }
    ++hour.missing;
    ++page.missing;
    if (page.again.size() < kAgainMax)
      page.again.push_back({std::move(place), 0, clock_.wall_ns()});
  }
  for (auto& [begin_ns, hour] : hours) {
    if (hour.missing == 0 || page.hours.size() == kHoursMax) continue;
    hour.namespace_name = series.entry.namespace_name;
    hour.device = series.entry.device;
    hour.sensor = series.entry.sensor;
    hour.begin_ns = begin_ns;
    page.hours.push_back(std::move(hour));
  }
  return true;
}

Status Verifier::fetch_some(const Series& series, std::span<const Local> some, Found& found) {
  EC_ASSIGN_OR_RETURN(auto there, fetch(series, some.front().time_ns, some.back().time_ns));
  if (there) {
    found.there.merge(*there);
    return ok();
  }
  if (some.front().time_ns == some.back().time_ns) {
    found.too_long.insert(some.front().time_ns);
    return ok();
  }
  const std::size_t half = some.size() / 2;
  EC_TRY(fetch_some(series, some.first(half), found));
  return fetch_some(series, some.subspan(half), found);
}

}  // namespace edgecase::forward
