#include "catalog/device_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "catalog/catalog.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::catalog {
namespace {

using Json = nlohmann::json;

constexpr int kJsonVersion = 1;
constexpr char kPlainRecordVersion = 2;  // without consents
constexpr char kDeviceRecordVersion = 3;
// What a byte can tell.
static_assert(wire::kNameMaxBytes < 256 && kTermsMax < 256 && kLabelsMax < 256);
static_assert(kConsentsMax < 256 && kConsentByMaxBytes < 256);

Status is_newer() {
  return unsupported("metadata of a device was written by a newer version of EdgeCase");
}
Status is_malformed() {
  return corruption("the record of a device's metadata is malformed");
}

// Takes a record apart; `good` ends where it is too short.
struct Reader {
  ByteView rest;
  bool good = true;

  std::size_t number() {
    good = good && !rest.empty();
    if (!good) return 0;
    const auto value = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return value;
  }
  std::string text() {
    const std::size_t size = number();
    good = good && size <= rest.size();
    if (!good) return {};
    std::string taken(rest.substr(0, size));
    rest.remove_prefix(size);
    return taken;
  }
  std::vector<std::string> list() {
    std::vector<std::string> texts;
    for (std::size_t left = number(); left > 0 && good; --left) texts.push_back(text());
    return texts;
  }
  std::int64_t time() {
    good = good && rest.size() >= 8;
    if (!good) return 0;
    const auto time_ns = static_cast<std::int64_t>(wire::read_big_endian(rest));
    rest.remove_prefix(8);
    return time_ns;
  }
};

// Decodes a record of a store that was written to before version 2.
Result<DeviceMetadata> decode_json(ByteView record) {
  // A field of another kind than it should be is what the library throws at.
  try {
    const Json json = Json::parse(record);
    if (json.at("version") != kJsonVersion) return is_newer();
    DeviceMetadata metadata;
    metadata.owner = json.value("owner", "");
    metadata.purposes = json.value("purposes", metadata.purposes);
    metadata.objections = json.value("objections", metadata.objections);
    metadata.location = json.value("location", "");
    metadata.labels = json.value("labels", metadata.labels);
    return metadata;
  } catch (const Json::exception&) {
    return is_malformed();
  }
}

Status check_terms(const char* what, const std::vector<std::string>& terms) {
  if (terms.size() > kTermsMax) {
    return invalid_argument("a device has at most " + std::to_string(kTermsMax) + " " + what + "s");
  }
  for (const std::string& term : terms) EC_TRY(wire::check_name(what, term));
  return ok();
}

}  // namespace

Bytes name_bytes(const DeviceName& name) {
  return name.namespace_name + '\0' + name.device;
}

Bytes term_prefix(char kind, std::string_view term) {
  return Bytes(1, kind) + Bytes(term) + '\0';
}

// The device in a key, behind its prefix: "namespace 0 device".
DeviceName parse_name(ByteView bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  return {std::string(bytes.substr(0, end)),
          std::string(bytes.substr(std::min(end + 1, bytes.size())))};
}

// The first key behind all that begin so.
Bytes end_of(Bytes prefix) {
  prefix.back() = static_cast<char>(prefix.back() + 1);  // a zero byte, always
  return prefix;
}

std::vector<Bytes> index_prefixes(const DeviceMetadata& metadata) {
  std::vector<Bytes> prefixes;
  if (!metadata.owner.empty()) prefixes.push_back(term_prefix('O', metadata.owner));
  for (const std::string& each : metadata.purposes) prefixes.push_back(term_prefix('P', each));
  for (const std::string& each : metadata.objections) prefixes.push_back(term_prefix('X', each));
  for (const auto& [label, value] : metadata.labels) {
    prefixes.push_back(term_prefix('L', label + "=" + value));
  }
  return prefixes;
}

std::vector<Bytes> prefixes_of(const DeviceFilter& filter) {
  DeviceMetadata terms;
  terms.owner = filter.owner;
  if (!filter.purpose.empty()) terms.purposes = {filter.purpose};
  if (!filter.objection.empty()) terms.objections = {filter.objection};
  std::vector<Bytes> prefixes = index_prefixes(terms);
  for (const auto& [label, value] : filter.labels) {
    prefixes.push_back(term_prefix('L', label + "=" + value));
  }
  return prefixes;
}

Bytes taken_back_key(const DeviceName& name, const Bytes& prefix) {
  return 'S' + name_bytes(name) + '\0' + prefix;
}

std::pair<DeviceName, Bytes> parse_taken_back(ByteView key) {
  key.remove_prefix(std::min<std::size_t>(key.size(), 1));
  const std::size_t first = std::min(key.find('\0'), key.size());
  const std::size_t end = std::min(key.find('\0', first + 1), key.size());
  return {parse_name(key.substr(0, end)), Bytes(key.substr(std::min(end + 1, key.size())))};
}

Bytes encode_metadata(const DeviceMetadata& metadata) {
  const std::vector<Consent>& consents = metadata.consents;
  Bytes record(1, consents.empty() ? kPlainRecordVersion : kDeviceRecordVersion);
  const auto append_text = [&record](const std::string& text) {
    record += static_cast<char>(text.size());
    record += text;
  };
  const auto append_list = [&](const std::vector<std::string>& terms) {
    record += static_cast<char>(terms.size());
    for (const std::string& each : terms) append_text(each);
  };
  append_text(metadata.owner);
  append_text(metadata.location);
  append_list(metadata.purposes);
  append_list(metadata.objections);
  record += static_cast<char>(metadata.labels.size());
  for (const auto& [label, value] : metadata.labels) {
    append_text(label);
    append_text(value);
  }
  if (consents.empty()) return record;
  record += static_cast<char>(consents.size());
  for (std::size_t i = 0; i < consents.size(); ++i) {
    wire::append_big_endian(static_cast<std::uint64_t>(consents[i].time_ns), record);
    append_text(consents[i].by);
    if (i + 1 == consents.size()) break;
    append_list(consents[i].purposes);
    append_list(consents[i].objections);
  }
  return record;
}

Result<DeviceMetadata> decode_metadata(ByteView record) {
  if (record.starts_with('{')) return decode_json(record);
  if (!record.empty() && record.front() > kDeviceRecordVersion) return is_newer();
  Reader reader{record};
  const std::size_t version = reader.number();
  if (version != kPlainRecordVersion && version != kDeviceRecordVersion) return is_malformed();
  DeviceMetadata metadata;
  metadata.owner = reader.text();
  metadata.location = reader.text();
  metadata.purposes = reader.list();
  metadata.objections = reader.list();
  for (std::size_t left = reader.number(); left > 0 && reader.good; --left) {
    std::string label = reader.text();
    metadata.labels[std::move(label)] = reader.text();
  }
  std::size_t consents = version == kDeviceRecordVersion ? reader.number() : 0;
  for (; consents > 0 && reader.good; --consents) {
    Consent& consent = metadata.consents.emplace_back();
    consent.time_ns = reader.time();
    consent.by = reader.text();
    consent.purposes = consents == 1 ? metadata.purposes : reader.list();
    consent.objections = consents == 1 ? metadata.objections : reader.list();
  }
  if (!reader.good || !reader.rest.empty()) return is_malformed();
  return metadata;
}

Status check_metadata(const DeviceName& name, const DeviceMetadata& metadata) {
  EC_TRY(wire::check_name("namespace", name.namespace_name));
  EC_TRY(wire::check_name("device", name.device));
  if (!metadata.owner.empty()) EC_TRY(wire::check_name("owner", metadata.owner));
  if (!metadata.location.empty()) EC_TRY(wire::check_name("location", metadata.location));
  if (metadata.consents.size() > kConsentsMax) {
    return invalid_argument("of a device at most " + std::to_string(kConsentsMax) +
                            " consents are kept");
  }
  for (const Consent& consent : metadata.consents) {
    EC_TRY(check_terms("purpose", consent.purposes));
    EC_TRY(check_terms("objection", consent.objections));
    if (consent.by.size() > kConsentByMaxBytes)
      return invalid_argument("who consented is told in at most " +
                              std::to_string(kConsentByMaxBytes) + " bytes");
  }
  EC_TRY(check_terms("purpose", metadata.purposes));
  EC_TRY(check_terms("objection", metadata.objections));
  if (metadata.labels.size() > kLabelsMax) {
    return invalid_argument("a device has at most " + std::to_string(kLabelsMax) + " labels");
  }
  for (const auto& [label, value] : metadata.labels) {
    EC_TRY(wire::check_name("label", label));
    EC_TRY(wire::check_name("label's value", value));
    if (label.find('=') != std::string::npos) return invalid_argument("a label's name holds a =");
  }
  return ok();
}

void note_consent(const DeviceMetadata& before, const Saying& saying, DeviceMetadata& after) {
  // What an earlier owner said is nothing that the next one, or who asks of them, has to know.
  const bool is_others = !before.owner.empty() && before.owner != after.owner;
  if (!before.empty()) after.consents = is_others ? std::vector<Consent>() : before.consents;
  const bool is_said_anew = before.owner != after.owner || before.purposes != after.purposes ||
                            before.objections != after.objections;
  // The last one is as purposes and objections are: of what nobody says, none can be, and what a
  // backup brings must end with it.
  const bool is_told = !after.consents.empty() &&
                       after.consents.back().purposes == after.purposes &&
                       after.consents.back().objections == after.objections;
  if (is_told && (before.empty() || !is_said_anew)) return;
  if (saying.by.empty() || !is_said_anew) {
    after.consents.clear();
    return;
  }
  if (after.consents.size() >= kConsentsMax) after.consents.erase(after.consents.begin());
  after.consents.push_back(
      {saying.time_ns, saying.by.substr(0, kConsentByMaxBytes), after.purposes, after.objections});
}

void tidy(std::vector<std::string>& terms) {
  std::sort(terms.begin(), terms.end());
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
}

// DeviceIndex's end of an erasure, and terms that were taken back: their bytes, too.

namespace {

constexpr std::size_t kSpansJoined = 4096;  // that are looked at together

}  // namespace

// Everything that there is and was of a device.
Status DeviceIndex::tell_spans(const DeviceName& name, const DeviceMetadata& said,
                               const SpanTaker& take) const {
  const Bytes suffix = name_bytes(name);
  for (const Bytes& prefix : index_prefixes(said))
    EC_TRY(take(span_of_key(records_, prefix + suffix)));
  EC_TRY(take(span_of_key(records_, 'D' + suffix)));
  const KeySpan notes = span_of_prefix(records_, taken_back_key(name, {}));
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {notes.lower, notes.upper}, {}));
  bool is_any = false;
  for (; iterator->valid(); iterator->next(), is_any = true)
    EC_TRY(take(span_of_key(records_, parse_taken_back(iterator->key()).second + suffix)));
  if (is_any) EC_TRY(take(notes));
  return iterator->status();
}

// Joins ranges with no key between them: those of a whole group are few. Keys of others that were
// removed may lie there.
Status DeviceIndex::tell_joined(std::vector<KeySpan> spans, const SpanTaker& take) const {
  std::sort(spans.begin(), spans.end(),
            [](const KeySpan& a, const KeySpan& b) { return a.lower < b.lower; });
  ReadOptions options;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {}, options));
  KeySpan joined;
  for (KeySpan& span : spans) {
    if (!joined.upper.empty()) {
      iterator->seek(joined.upper);
      EC_TRY(iterator->status());
      if (!iterator->valid() || iterator->key() >= span.lower) {
        joined.upper = std::max(std::move(joined.upper), std::move(span.upper));
        continue;
      }
      EC_TRY(take(std::move(joined)));
    }
    joined = std::move(span);
  }
  return joined.upper.empty() ? ok() : take(std::move(joined));
}

Status DeviceIndex::plan_erasure(const Erased& erased, const SpanTaker& take) {
  std::vector<std::uint32_t> by_name(erased.devices.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  std::sort(by_name.begin(), by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    const DeviceEntry &one = erased.devices[a], &other = erased.devices[b];
    return std::tie(one.namespace_name, one.device) < std::tie(other.namespace_name, other.device);
  });
  std::vector<KeySpan> spans;
  const auto gather = [&spans](KeySpan span) {
    spans.push_back(std::move(span));
    return ok();
  };
  for (const std::uint32_t at : by_name) {
    const DeviceName name{erased.devices[at].namespace_name, erased.devices[at].device};
    EC_ASSIGN_OR_RETURN(const DeviceMetadata said, metadata(name));
    EC_TRY(tell_spans(name, said, gather));
    if (spans.size() >= kSpansJoined) EC_TRY(tell_joined(std::exchange(spans, {}), take));
  }
  return tell_joined(std::move(spans), take);
}

void DeviceIndex::forget(const Erased& erased) {
  for (const DeviceEntry& device : erased.devices)
    remember({device.namespace_name, device.device}, {});
}

Status DeviceIndex::forget_taken_back() {
  const MutexLock lock(change_mutex_);
  return notes_ == 0 ? ok() : remove_taken_back();
}

// A term that is said again by now stays, written anew.
Status DeviceIndex::remove_taken_back() {
  ReadOptions options;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {"S", "T"}, options));
  WriteBatch batch;
  Bytes first, last;
  std::vector<Bytes> again;
  std::uint64_t removed = 0;
  for (; iterator->valid() && removed < kNotesPerBatch; iterator->next(), ++removed) {
    last = Bytes(iterator->key());
    if (first.empty()) first = last;
    const auto [name, prefix] = parse_taken_back(last);
    const Bytes key = prefix + name_bytes(name);
    const KeySpan span = span_of_key(records_, key);
    batch.erase_range(records_, span.lower, span.upper);
    EC_ASSIGN_OR_RETURN(const DeviceMetadata said, metadata(name));
    const std::vector<Bytes> live = index_prefixes(said);
    if (std::find(live.begin(), live.end(), prefix) != live.end()) again.push_back(key);
  }
  EC_TRY(iterator->status());
  if (removed == 0) {
    notes_ = 0;
    return ok();
  }
  batch.erase_range(records_, first, last + '\0');
  for (const Bytes& key : again) batch.put(records_, key, {});
  EC_TRY(engine_.write(batch, Durability::Sync));
  notes_ -= std::min(notes_, removed);
  return ok();
}

}  // namespace edgecase::catalog
