#include "audit/page.h"

#include <algorithm>
#include <array>
#include <utility>

#include "wire/reading.h"

namespace edgecase::audit {
namespace {

constexpr char kMarkVersion = 1;
constexpr char kPageKey = 'R';
constexpr char kStepKey = 'S';
constexpr std::size_t kMarkBytes = 1 + 8 + kHashBytes + 8;

constexpr std::array<std::string_view, 11> kOutcomeNames = {
    "ok",       "denied",      "not_found",  "invalid", "busy", "out_of_space",
    "io_error", "unavailable", "corruption", "failed",  "begun"};

Bytes numbered_key(char kind, std::uint64_t sequence) {
  Bytes key(1, kind);
  wire::append_big_endian(sequence, key);
  return key;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  return kOutcomeNames[std::min<std::size_t>(static_cast<std::size_t>(outcome),
                                             static_cast<std::size_t>(Outcome::Failed) + 1)];
}

Outcome outcome_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::Ok: return Outcome::Ok;
    case StatusCode::NotAllowed: return Outcome::Denied;
    case StatusCode::NotFound: return Outcome::NotFound;
    case StatusCode::InvalidArgument: return Outcome::Invalid;
    case StatusCode::LimitReached:
    case StatusCode::Busy: return Outcome::Busy;
    case StatusCode::OutOfSpace: return Outcome::OutOfSpace;
    case StatusCode::IoError: return Outcome::IoError;
    case StatusCode::Unavailable: return Outcome::Unavailable;
    case StatusCode::Corruption: return Outcome::Corruption;
    default: return Outcome::Failed;
  }
}

Outcome outcome_of_http(int http_status) {
  if (http_status < 400) return Outcome::Ok;
  switch (http_status) {
    case 401:
    case 403:
    case 429: return Outcome::Denied;
    case 404: return Outcome::NotFound;
    case 503: return Outcome::Unavailable;
    default: return http_status < 500 ? Outcome::Invalid : Outcome::Failed;
  }
}

Bytes page_key(std::uint64_t sequence) {
  return numbered_key(kPageKey, sequence);
}

Bytes step_key(std::uint64_t sequence) {
  return numbered_key(kStepKey, sequence);
}

std::uint64_t sequence_of(ByteView key) {
  return key.size() == 9 ? wire::read_big_endian(key.substr(1)) : 0;
}

Bytes encode_mark(const Mark& mark) {
  Bytes value(1, kMarkVersion);
  wire::append_big_endian(mark.sequence, value);
  value += auth::view_of(mark.hash);
  wire::append_big_endian(mark.bytes, value);
  return value;
}

Result<Mark> decode_mark(ByteView value) {
  if (value.size() != kMarkBytes || value[0] != kMarkVersion) {
    return corruption("a checkpoint of the audit log is malformed");
  }
  Mark mark;
  mark.sequence = wire::read_big_endian(value.substr(1));
  mark.hash = digest_of(value.substr(9));
  mark.bytes = wire::read_big_endian(value.substr(9 + kHashBytes));
  return mark;
}

void append_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

auth::Digest digest_of(ByteView bytes) {
  auth::Digest digest{};
  std::transform(bytes.begin(), bytes.begin() + kHashBytes, digest.begin(),
                 [](char byte) { return static_cast<unsigned char>(byte); });
  return digest;
}

unsigned char Reader::byte() {
  const ByteView taken = take(1);
  return taken.empty() ? 0 : static_cast<unsigned char>(taken[0]);
}

std::uint64_t Reader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const unsigned char bits = byte();
    value |= static_cast<std::uint64_t>(bits & 0x7f) << shift;
    if (bits < 0x80) return value;
  }
  failed_ = true;
  return 0;
}

ByteView Reader::take(std::uint64_t size) {
  failed_ = failed_ || size > rest_.size();
  if (failed_) return {};
  const ByteView taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

namespace {

constexpr char kMark = '~';
constexpr std::string_view kBetweenSelectors = ", ";

std::uint64_t first_64_bits(const auth::Pseudonym& pseudonym) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8 | pseudonym[i];
  return number;
}

bool holds_no_name(std::string_view glob) {
  return glob.find_first_not_of("*?") == std::string_view::npos;
}

}  // namespace

std::uint64_t RecordNames::of(std::string_view kind, std::string_view namespace_name,
                              std::string_view name) const {
  std::string text(kind);
  text.append(1, '\0').append(namespace_name).append(1, '\0').append(name);
  {
    const MutexLock lock(mutex_);
    if (const auto known = known_.find(text); known != known_.end()) return known->second;
  }
  const std::uint64_t made = first_64_bits(pseudonyms_.of_text(kind, namespace_name, name));
  const MutexLock lock(mutex_);
  if (known_.size() >= kRememberedMax) known_.clear();
  known_.emplace(std::move(text), made);
  return made;
}

std::uint64_t RecordNames::of_device(std::string_view namespace_name,
                                     std::string_view device) const {
  return of("device", namespace_name, device);
}

std::string RecordNames::of_text(std::string_view kind, std::string_view text) const {
  return kMark + pseudonym_text(of(kind, "", text));
}

std::string RecordNames::part(std::string_view kind, std::string_view namespace_name,
                              std::string_view glob) const {
  if (holds_no_name(glob)) return std::string(glob);
  return kMark + pseudonym_text(of(kind, namespace_name, glob));
}

void RecordNames::describe(std::string_view namespace_name, const wire::Selector& selector,
                           Record& record) const {
  const bool is_one = wire::is_literal(selector.device) && !namespace_name.empty();
  if (is_one) {
    const std::string name = wire::unescape_name(selector.device);
    record.targets.push_back({of_device(namespace_name, name), 0});
    record.selector = kMark + pseudonym_text(record.targets.back().pseudonym);
  } else {
    record.selector = part("pattern", namespace_name, selector.device);
    record.reaches_more = true;
  }
  record.selector += "/" + part("sensor", namespace_name, selector.sensor);
}

void RecordNames::describe(std::string_view namespace_name,
                           std::span<const wire::Selector> selectors, Record& record) const {
  if (selectors.size() == 1) return describe(namespace_name, selectors.front(), record);
  std::string all;
  for (const wire::Selector& each : selectors) {
    Record one;
    describe(namespace_name, each, one);
    if (!all.empty()) all += kBetweenSelectors;
    all += one.selector;
    record.reaches_more = record.reaches_more || one.reaches_more;
    record.targets.insert(record.targets.end(), one.targets.begin(), one.targets.end());
  }
  // Devices that are named and those that were reached have one list.
  if (record.targets.size() > kTargetsMax) record.reaches_more = true;
  if (record.reaches_more) record.targets.clear();
  record.selector = selectors.size() > kSelectorsTold ? "*/*" : all;
}

std::string pseudonym_text(std::uint64_t pseudonym) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[pseudonym >> shift & 15];
  }
  return text;
}

bool concerns(const Record& record, std::uint64_t pseudonym, std::string_view namespace_name,
              std::string_view device) {
  if (std::any_of(record.targets.begin(), record.targets.end(),
                  [pseudonym](const Target& each) { return each.pseudonym == pseudonym; })) {
    return true;
  }
  return may_reach(record, namespace_name, device);
}

bool may_reach(const Record& record, std::string_view namespace_name, std::string_view device) {
  if (!record.reaches_more) return false;
  if (record.namespace_name != namespace_name && record.namespace_name != "*") return false;
  std::string_view rest = record.selector;
  do {
    const std::string_view one = rest.substr(0, rest.find(kBetweenSelectors));
    rest.remove_prefix(std::min(rest.size(), one.size() + kBetweenSelectors.size()));
    const std::string_view glob = one.substr(0, one.find('/'));
    // Without a selector it was asked by owner or label.
    if (glob.empty() || glob.starts_with(kMark) || wire::glob_matches(glob, device)) return true;
  } while (!rest.empty());
  return false;
}

}  // namespace edgecase::audit
