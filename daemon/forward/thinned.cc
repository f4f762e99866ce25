#include "forward/thinned.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "auth/hashing.h"
#include "forward/batch_reader.h"
#include "forward/series_names.h"
#include "forward/windows.h"

namespace edgecase::forward {
namespace {

constexpr char kOwed = 'W', kSent = 'X', kNamed = 'Y';
constexpr std::uint8_t kWindowsVersion = 2, kVersionWithoutDebt = 1;
constexpr std::size_t kSeriesBytes = 12, kHashBytes = 16;

Bytes prefix_of(char kind, const std::string& name) {
  return Bytes(1, kind) + name + '\0';
}

void append_series(const catalog::SeriesId& id, Bytes& bytes) {
  append_number(id.namespace_id, bytes);
  append_number(id.device, bytes);
  append_number(id.sensor, bytes);
}

bool take_series(ByteView bytes, catalog::SeriesId& id) {
  return bytes.size() == kSeriesBytes && take_number(bytes, id.namespace_id) &&
         take_number(bytes, id.device) && take_number(bytes, id.sensor);
}

Bytes key_of(char kind, const std::string& name, const catalog::SeriesId& id) {
  Bytes key = prefix_of(kind, name);
  append_series(id, key);
  return key;
}

Status broken() {
  return corruption("what goes to a target as windows is not what was written");
}

Status check_version(std::uint8_t version) {
  return version >= kVersionWithoutDebt && version <= kWindowsVersion
             ? ok()
             : unsupported("what goes to a target as windows is of a newer version of EdgeCase");
}

Result<OwedWindows> decode_owed(ByteView bytes) {
  OwedWindows owed;
  std::uint8_t version = 0;
  if (!take_number(bytes, version)) return broken();
  EC_TRY(check_version(version));
  if (!take_number(bytes, owed.from_ns) || !take_number(bytes, owed.to_ns) ||
      !take_number(bytes, owed.readings) ||
      (version != kVersionWithoutDebt && !take_number(bytes, owed.debt)) || !bytes.empty() ||
      owed.from_ns > owed.to_ns)
    return broken();
  return owed;
}

Result<SentWindows> decode_sent(ByteView bytes) {
  SentWindows sent;
  std::uint8_t version = 0;
  if (!take_number(bytes, version)) return broken();
  EC_TRY(check_version(version));
  if (!take_number(bytes, sent.done_to_ns) || !take_number(bytes, sent.readings) ||
      (version != kVersionWithoutDebt && !take_number(bytes, sent.debt)))
    return broken();
  while (!bytes.empty()) {
    SentWindows::Span span;
    if (!take_number(bytes, span.begin_ns) || !take_number(bytes, span.end_ns) ||
        !take_number(bytes, span.every_ns) || !take_number(bytes, span.columns) ||
        span.begin_ns >= span.end_ns || span.every_ns <= 0 ||
        sent.spans.size() == SentWindows::kSpansMax)
      return broken();
    sent.spans.push_back(span);
  }
  return sent;
}

template <typename Decoded>
Result<std::optional<Decoded>> get(Engine& engine, NamespaceId id, const Bytes& key,
                                   Result<Decoded> (*decode)(ByteView)) {
  if (id == 0) return std::optional<Decoded>();
  ReadOptions options;
  options.fill_cache = false;
  const auto value = engine.get(id, key, options);
  if (value.status().code() == StatusCode::NotFound) return std::optional<Decoded>();
  EC_TRY(value.status());
  EC_ASSIGN_OR_RETURN(Decoded decoded, decode(*value));
  return std::optional<Decoded>(std::move(decoded));
}

}  // namespace

void SentWindows::join_oldest() {
  Span& first = spans[0];
  const Span& next = spans[1];
  first.begin_ns = std::min(first.begin_ns, next.begin_ns);
  first.end_ns = std::max(first.end_ns, next.end_ns);
  first.every_ns = std::gcd(first.every_ns, next.every_ns);
  first.columns |= next.columns;
  first.columns |= kSeveralLengths;
  spans.erase(spans.begin() + 1);
}

void SentWindows::note(const Span& span) {
  for (Span& each : spans) {
    const bool has_it = each.has_several_lengths() && each.begin_ns <= span.begin_ns &&
                        span.end_ns <= each.end_ns && span.every_ns % each.every_ns == 0 &&
                        (span.columns & ~each.columns) == 0;
    if (has_it) return;
    if (each.every_ns != span.every_ns || each.columns != span.columns) continue;
    // Where nothing of another kind lies between the two, they are one: there is nothing else.
    const std::int64_t begin_ns = std::min(each.begin_ns, span.begin_ns);
    const std::int64_t end_ns = std::max(each.end_ns, span.end_ns);
    const bool is_alone = std::none_of(spans.begin(), spans.end(), [&](const Span& other) {
      return &other != &each && other.begin_ns < end_ns && other.end_ns > begin_ns;
    });
    if (!is_alone) continue;
    each.begin_ns = begin_ns;
    each.end_ns = end_ns;
    return;
  }
  if (spans.size() == kSpansMax) join_oldest();
  spans.insert(
      std::upper_bound(spans.begin(), spans.end(), span,
                       [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; }),
      span);
}

const SentWindows::Span* SentWindows::find(std::int64_t begin_ns) const {
  // Where a rule made windows longer, the longer one came later, in the place of the other.
  const auto found = std::find_if(spans.rbegin(), spans.rend(), [begin_ns](const Span& each) {
    return each.begin_ns <= begin_ns && begin_ns < each.end_ns &&
           window_begin_ns(begin_ns, each.every_ns) == begin_ns;
  });
  return found == spans.rend() ? nullptr : &*found;
}

Status Thinned::owe(const std::string& name, const catalog::SeriesId& id, std::int64_t from_ns,
                    std::int64_t to_ns, std::uint64_t readings, WriteBatch& batch) {
  EC_ASSIGN_OR_RETURN(const NamespaceId records, records_.made_id());
  const Bytes key = key_of(kOwed, name, id);
  auto known = get(engine_, records, key, decode_owed);
  // Damage keeps no readings from becoming windows.
  if (known.status().code() == StatusCode::Corruption) known = std::optional<OwedWindows>();
  EC_ASSIGN_OR_RETURN(const auto before, std::move(known));
  OwedWindows owed{from_ns, to_ns, readings};
  if (before) {
    auto went = this->sent(name, id);
    if (went.status().code() == StatusCode::Corruption) went = SentWindows();
    EC_ASSIGN_OR_RETURN(const SentWindows sent, std::move(went));
    // What begins before the end of what is known may have gone: then all from there on goes again.
    owed.debt = before->debt + (from_ns < before->to_ns ? 1 : 0);
    const std::int64_t done_to_ns = std::max(before->from_ns, sent.done_to_of(*before));
    if (done_to_ns < before->to_ns) owed.from_ns = std::min(from_ns, done_to_ns);
    owed.to_ns = std::max(to_ns, before->to_ns);
    owed.readings += before->readings;
  }
  Bytes value;
  append_number(kWindowsVersion, value);
  append_number(owed.from_ns, value);
  append_number(owed.to_ns, value);
  append_number(owed.readings, value);
  append_number(owed.debt, value);
  batch.put(records, key, value);
  return ok();
}

Result<std::vector<Thinned::Owed>> Thinned::owed(const std::string& name,
                                                 const std::optional<catalog::SeriesId>& behind,
                                                 std::size_t most) const {
  std::vector<Owed> some;
  const NamespaceId records = records_.id();
  if (records == 0) return some;
  const Bytes prefix = prefix_of(kOwed, name);
  catalog::KeySpan keys = catalog::span_of_prefix(records, prefix);
  if (behind) keys.lower = key_of(kOwed, name, *behind) + '\0';
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(records, {keys.lower, keys.upper}, options));
  for (; each->valid() && some.size() < most; each->next()) {
    Owed owed;
    if (!take_series(each->key().substr(prefix.size()), owed.first)) return broken();
    const ByteView value = each->value();
    if (!each->valid()) break;
    EC_ASSIGN_OR_RETURN(owed.second, decode_owed(value));
    some.push_back(owed);
  }
  EC_TRY(each->status());
  return some;
}

Result<std::optional<OwedWindows>> Thinned::owed(const std::string& name,
                                                 const catalog::SeriesId& id) const {
  return get(engine_, records_.id(), key_of(kOwed, name, id), decode_owed);
}

Result<SentWindows> Thinned::sent(const std::string& name, const catalog::SeriesId& id) const {
  EC_ASSIGN_OR_RETURN(auto sent, get(engine_, records_.id(), key_of(kSent, name, id), decode_sent));
  return sent ? *std::move(sent) : SentWindows();
}

Result<std::optional<std::uint64_t>> Thinned::sent_readings(const std::string& name) const {
  const auto decode = [](ByteView bytes) -> Result<std::uint64_t> {
    std::uint8_t version = 0;
    std::uint64_t readings = 0;
    if (!take_number(bytes, version)) return broken();
    EC_TRY(check_version(version));
    if (!take_number(bytes, readings) || !bytes.empty()) return broken();
    return readings;
  };
  return get<std::uint64_t>(engine_, records_.id(), prefix_of(kSent, name), +decode);
}

Bytes Thinned::hash_of(const std::string& namespace_name, const std::string& device,
                       const std::string& sensor) {
  const auth::Digest digest =
      auth::sha256(namespace_name + std::string(1, '\0') + device + std::string(1, '\0') + sensor);
  return Bytes(reinterpret_cast<const char*>(digest.data()), kHashBytes);
}

Result<Thinned::Gone> Thinned::find_gone(const std::string& name, const Bytes& hash) const {
  const auto decode_version = [](ByteView bytes) -> Result<std::uint8_t> {
    std::uint8_t version = 0;
    return take_number(bytes, version) ? Result<std::uint8_t>(version) : broken();
  };
  const auto decode_series = [](ByteView bytes) -> Result<catalog::SeriesId> {
    catalog::SeriesId id;
    return take_series(bytes, id) ? Result<catalog::SeriesId>(id) : broken();
  };
  Gone gone;
  EC_ASSIGN_OR_RETURN(
      const auto version,
      get<std::uint8_t>(engine_, records_.id(), prefix_of(kSent, name), +decode_version));
  gone.knows_all = !version || *version != kVersionWithoutDebt;
  EC_ASSIGN_OR_RETURN(gone.id,
                      get<catalog::SeriesId>(engine_, records_.id(), prefix_of(kNamed, name) + hash,
                                             +decode_series));
  return gone;
}

Status Thinned::write(const std::string& name, const std::vector<Sent>& some,
                      std::uint64_t readings, const std::vector<Named>& named) {
  EC_ASSIGN_OR_RETURN(const NamespaceId records, records_.made_id());
  EC_ASSIGN_OR_RETURN(const Gone known, find_gone(name, {}));
  WriteBatch batch;
  for (const auto& [id, sent] : some) {
    Bytes value;
    append_number(kWindowsVersion, value);
    append_number(sent.done_to_ns, value);
    append_number(sent.readings, value);
    append_number(sent.debt, value);
    for (const SentWindows::Span& each : sent.spans) {
      for (const std::int64_t number : {each.begin_ns, each.end_ns, each.every_ns})
        append_number(number, value);
      append_number(each.columns, value);
    }
    batch.put(records, key_of(kSent, name, id), value);
  }
  for (const auto& [hash, id] : named) {
    Bytes value;
    append_series(id, value);
    batch.put(records, prefix_of(kNamed, name) + hash, value);
  }
  Bytes value;
  append_number(known.knows_all ? kWindowsVersion : kVersionWithoutDebt, value);
  append_number(readings, value);
  batch.put(records, prefix_of(kSent, name), value);
  return engine_.write(batch, Durability::Sync);
}

Status Thinned::remove_owed(const std::string& name, const std::vector<catalog::SeriesId>& some) {
  if (some.empty() || records_.id() == 0) return ok();
  WriteBatch batch;
  for (const catalog::SeriesId& id : some) batch.remove(records_.id(), key_of(kOwed, name, id));
  return engine_.write(batch, Durability::Async);
}

Status Thinned::remove_sent(const std::string& name, const std::vector<Named>& some) {
  if (some.empty() || records_.id() == 0) return ok();
  WriteBatch batch;
  for (const auto& [hash, id] : some) {
    batch.remove(records_.id(), key_of(kSent, name, id));
    if (!hash.empty()) batch.remove(records_.id(), prefix_of(kNamed, name) + hash);
  }
  return engine_.write(batch, Durability::Async);
}

Status Thinned::forget(const std::string& name) {
  if (records_.id() == 0) return ok();
  WriteBatch batch;
  for (const char kind : {kOwed, kSent, kNamed}) {
    const catalog::KeySpan all = catalog::span_of_prefix(records_.id(), prefix_of(kind, name));
    batch.remove_range(records_.id(), all.lower, all.upper);
  }
  return engine_.write(batch, Durability::Sync);
}

WindowColumns free_columns(const catalog::Catalog& catalog, const catalog::SeriesEntry& series) {
  WindowColumns free = 0;
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    const catalog::SeriesEntry called = column_of(series, column);
    if (!catalog.find(called.namespace_name, called.device, called.sensor).ok())
      free |= column_bit(column);
  }
  return free;
}

// Damage of a record: what it told goes again.
Result<SentWindows> ThinnedSender::sent_of(const catalog::SeriesId& id) const {
  if (const auto found = unsettled_.find(id); found != unsettled_.end()) return found->second.now;
  auto sent = parts_.thinned.sent(name_, id);
  if (sent.status().code() == StatusCode::Corruption) return SentWindows();
  return sent;
}

Status ThinnedSender::load() {
  if (is_loaded_) return ok();
  const auto kept = parts_.thinned.sent_readings(name_);
  if (!kept.ok() && kept.status().code() != StatusCode::Corruption) return kept.status();
  readings_ = kept.ok() ? kept->value_or(0) : 0;
  is_loaded_ = true;
  return ok();
}

Result<bool> ThinnedSender::has_any() const {
  const auto kept = parts_.thinned.sent_readings(name_);
  if (kept.status().code() == StatusCode::Corruption) return true;
  EC_TRY(kept.status());
  return kept->has_value();
}

Result<ThinnedSender::Part> ThinnedSender::read(BatchReader& reader, std::size_t lines_max) {
  EC_TRY(load());
  if (!is_sweeping_) {
    is_sweeping_ = true;
    generation_ = parts_.thinned.generation();
    behind_.reset();
  }
  Part part;
  part.batch.revocations = parts_.engine.revocations();
  EC_ASSIGN_OR_RETURN(const std::vector<Thinned::Owed> some,
                      parts_.thinned.owed(name_, behind_, kSeriesAtOnce));
  // Windows of all that is owed: they came with it.
  const std::shared_ptr<const Snapshot> snapshot = parts_.engine.snapshot();
  part.is_whole = some.size() < kSeriesAtOnce;
  for (const auto& [id, owed] : some) {
    if (part.batch.is_full(lines_max)) {
      part.is_whole = false;
      break;
    }
    const SeriesNames::Series* const there = reader.series_of(id);
    const auto here = there == nullptr ? Result<catalog::SeriesEntry>(not_found("erased"))
                                       : parts_.catalog.series_at(there->row);
    if (!here.ok() || !(here->id == id)) {
      part.gone.push_back(id);
    } else if (there->is_wanted) {
      EC_ASSIGN_OR_RETURN(const bool is_done,
                          read_series(*here, *there, owed, snapshot, reader, lines_max, part));
      if (!is_done) {
        part.is_whole = false;
        break;
      }
    }
    part.last = id;
  }
  return part;
}

Result<bool> ThinnedSender::read_series(const catalog::SeriesEntry& here,
                                        const SeriesNames::Series& there, const OwedWindows& owed,
                                        const std::shared_ptr<const Snapshot>& snapshot,
                                        BatchReader& reader, std::size_t lines_max,
                                        Part& part) const {
  Step step{.id = here.id, .before = {}, .after = {}};
  EC_ASSIGN_OR_RETURN(step.before, sent_of(here.id));
  const std::int64_t from_ns = std::max(owed.from_ns, step.before.done_to_of(owed));
  if (from_ns >= owed.to_ns) return true;
  if (parts_.keeps_names)
    step.hash = Thinned::hash_of(here.namespace_name, here.device, here.sensor);
  step.after = step.before;
  step.after.debt = owed.debt;
  step.after.done_to_ns = owed.to_ns;
  // Columns alone have no readings beside them.
  const WindowColumns columns =
      parts_.every_ns > 0 ? kAllWindowColumns : free_columns(parts_.catalog, here);
  std::uint64_t readings = 0;
  bool is_done = true;
  EC_TRY(windows_.each_tiered(here, from_ns, owed.to_ns, snapshot, [&](const WholeWindow& window) {
    if (part.batch.is_full(lines_max)) {
      is_done = false;
      step.after.done_to_ns = std::max(from_ns, window.begin_ns);
      return false;
    }
    std::int64_t end_ns = 0;
    if (__builtin_add_overflow(window.begin_ns, window.every_ns, &end_ns)) end_ns = INT64_MAX;
    if (columns == 0) return true;
    step.after.note({window.begin_ns, end_ns, window.every_ns, columns});
    reader.add_window(here.id, there, window, columns, part.batch);
    readings += window.count;
    return true;
  }));
  // The first window may have readings that went as they came.
  const std::uint64_t left = owed.readings - std::min(owed.readings, step.before.readings);
  step.after.readings += std::min(readings, left);
  if (readings > 0) reader.add_column_rules(here.id, there, step.after, part.batch);
  part.steps.push_back(std::move(step));
  return is_done;
}

Status ThinnedSender::announce(const Part& part) {
  std::vector<Thinned::Sent> some;
  std::vector<Thinned::Named> named;
  for (const Step& each : part.steps) {
    if (each.after.spans == each.before.spans) continue;
    auto kept = parts_.thinned.sent(name_, each.id);
    if (kept.status().code() == StatusCode::Corruption) kept = SentWindows();
    EC_ASSIGN_OR_RETURN(SentWindows announced, std::move(kept));
    announced.spans = each.after.spans;
    some.emplace_back(each.id, std::move(announced));
    if (!each.hash.empty()) named.emplace_back(each.hash, each.id);
  }
  return some.empty() ? ok() : parts_.thinned.write(name_, some, readings_, named);
}

void ThinnedSender::sent(Part part, std::int64_t now_ns, bool may_forget) {
  for (Step& each : part.steps) {
    Unsettled& unsettled =
        unsettled_.try_emplace(each.id, Unsettled{{}, each.before.readings, 0}).first->second;
    unsettled.now = std::move(each.after);
    unsettled.sent_ns = now_ns;
  }
  // Where that fails, the next sweep does it.
  if (may_forget) static_cast<void>(parts_.thinned.remove_owed(name_, part.gone).ok());
  if (may_forget && !parts_.keeps_names) static_cast<void>(forget_sent(part.gone).ok());
  if (part.last) behind_ = part.last;
  if (!part.is_whole) return;
  is_sweeping_ = false;
  done_generation_ = generation_;
}

Status ThinnedSender::forget_sent(const std::vector<catalog::SeriesId>& some) {
  std::vector<Thinned::Named> nameless;
  for (const catalog::SeriesId& each : some) nameless.emplace_back(Bytes(), each);
  return parts_.thinned.remove_sent(name_, nameless);
}

Status ThinnedSender::erased(const std::vector<Thinned::Named>& some) {
  if (!parts_.keeps_names) return ok();
  for (const Thinned::Named& each : some) unsettled_.erase(each.second);
  return parts_.thinned.remove_sent(name_, some);
}

Status ThinnedSender::keep(std::int64_t now_ns) {
  std::vector<Thinned::Sent> some;
  std::uint64_t readings = readings_;
  for (const auto& [id, each] : unsettled_) {
    if (now_ns - each.sent_ns < settle_ns_) continue;
    some.emplace_back(id, each.now);
    readings += each.now.readings - std::min(each.now.readings, each.kept_readings);
  }
  if (some.empty()) return ok();
  EC_TRY(parts_.thinned.write(name_, some, readings));
  readings_ = readings;
  for (const Thinned::Sent& each : some) unsettled_.erase(each.first);
  return ok();
}

void ThinnedSender::go_back() {
  if (unsettled_.empty()) return;
  unsettled_.clear();
  is_sweeping_ = false;
  done_generation_ = 0;
}

}  // namespace edgecase::forward
