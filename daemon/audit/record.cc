#include "audit/record.h"

#include <algorithm>
#include <array>

namespace edgecase::audit {
namespace {

constexpr char kVersion = 1;
constexpr char kRecordKey = 'R';
constexpr char kStepKey = 'S';
constexpr std::size_t kHashBytes = 32;
constexpr unsigned char kTrustedFlag = 1;
constexpr unsigned char kReachesMoreFlag = 2;
constexpr std::size_t kFlagsAt = 1, kOutcomeAt = 2, kTimeAt = 3, kFixedBytes = 11;
constexpr std::size_t kMarkBytes = 1 + 8 + kHashBytes + 8;

constexpr std::array<std::string_view, 11> kOutcomeNames = {
    "ok",       "denied",      "not_found",  "invalid", "busy", "out_of_space",
    "io_error", "unavailable", "corruption", "failed",  "begun"};

void append_number(Bytes& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

std::uint64_t read_number(ByteView bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes.substr(0, 8)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

void append_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_text(Bytes& out, std::string_view text) {
  text = text.substr(0, kTextMaxBytes);
  append_varint(out, text.size());
  out += text;
}

auth::Digest digest_of(ByteView bytes) {
  auth::Digest digest{};
  std::transform(bytes.begin(), bytes.begin() + kHashBytes, digest.begin(),
                 [](char byte) { return static_cast<unsigned char>(byte); });
  return digest;
}

// Takes a body apart; once it has failed, everything is empty.
class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  std::uint64_t number() { return read_number(take(8)); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const ByteView byte = take(1);
      if (byte.empty()) return 0;
      const auto bits = static_cast<unsigned char>(byte[0]);
      value |= static_cast<std::uint64_t>(bits & 0x7f) << shift;
      if (bits < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string text() { return std::string(take(varint())); }
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  ByteView take(std::uint64_t size) {
    failed_ = failed_ || size > rest_.size();
    if (failed_) return {};
    const ByteView taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  ByteView rest_;
  bool failed_ = false;
};

Status damaged(std::uint64_t sequence, const char* what) {
  return corruption("audit record " + std::to_string(sequence) + " " + what);
}

Bytes numbered_key(char kind, std::uint64_t sequence) {
  Bytes key(1, kind);
  append_number(key, sequence);
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

Bytes encode_body(const Record& record) {
  Bytes body;
  body.reserve(96 + record.targets.size() * 10);
  body.push_back(kVersion);
  const bool trusted = record.trust == ClockTrust::Trusted;
  body.push_back(static_cast<char>((trusted ? kTrustedFlag : 0) |
                                   (record.reaches_more ? kReachesMoreFlag : 0)));
  body.push_back(static_cast<char>(record.outcome));
  append_number(body, static_cast<std::uint64_t>(record.time_ns));
  for (const std::string* text : {&record.operation, &record.actor, &record.token,
                                  &record.namespace_name, &record.selector, &record.detail}) {
    append_text(body, *text);
  }
  append_varint(body, record.count);
  const std::size_t targets = std::min(record.targets.size(), kTargetsMax);
  append_varint(body, targets);
  for (std::size_t i = 0; i < targets; ++i) {
    append_number(body, record.targets[i].pseudonym);
    append_varint(body, record.targets[i].count);
  }
  return body;
}

void set_outcome(Bytes& body, Outcome outcome) {
  body[kOutcomeAt] = static_cast<char>(outcome);
}

auth::Digest chain_hash(const auth::Digest& previous, std::uint64_t sequence, ByteView body) {
  Bytes hashed;
  hashed.reserve(kHashBytes + 8 + body.size());
  hashed += auth::view_of(previous);
  append_number(hashed, sequence);
  hashed += body;
  return auth::sha256(hashed);
}

Bytes record_key(std::uint64_t sequence) {
  return numbered_key(kRecordKey, sequence);
}

Bytes step_key(std::uint64_t sequence) {
  return numbered_key(kStepKey, sequence);
}

std::uint64_t sequence_of(ByteView key) {
  return key.size() == 9 ? read_number(key.substr(1)) : 0;
}

Bytes record_value(const auth::Digest& hash, ByteView body) {
  Bytes value(auth::view_of(hash));
  value += body;
  return value;
}

ByteView body_of(ByteView value) {
  return value.substr(std::min(value.size(), kHashBytes));
}

std::int64_t time_of(ByteView body) {
  if (body.size() < kFixedBytes) return 0;
  return static_cast<std::int64_t>(read_number(body.substr(kTimeAt)));
}

Result<Record> decode_record(std::uint64_t sequence, ByteView value) {
  if (value.size() < kHashBytes + kFixedBytes) return damaged(sequence, "is cut short");
  const ByteView body = body_of(value);
  if (body[0] != kVersion) return damaged(sequence, "is of a version that is not known");
  Record record;
  record.sequence = sequence;
  record.hash = digest_of(value);
  const auto flags = static_cast<unsigned char>(body[kFlagsAt]);
  record.trust = (flags & kTrustedFlag) != 0 ? ClockTrust::Trusted : ClockTrust::Untrusted;
  record.reaches_more = (flags & kReachesMoreFlag) != 0;
  record.outcome = static_cast<Outcome>(body[kOutcomeAt]);
  record.time_ns = time_of(body);
  Reader reader(body.substr(kFixedBytes));
  for (std::string* text : {&record.operation, &record.actor, &record.token, &record.namespace_name,
                            &record.selector, &record.detail}) {
    *text = reader.text();
  }
  record.count = reader.varint();
  const std::uint64_t targets = reader.varint();
  if (targets > kTargetsMax) return damaged(sequence, "names too many devices");
  for (std::uint64_t i = 0; i < targets && !reader.failed(); ++i) {
    const std::uint64_t pseudonym = reader.number();
    record.targets.push_back({pseudonym, reader.varint()});
  }
  if (reader.failed() || !reader.at_end()) return damaged(sequence, "is malformed");
  return record;
}

Bytes encode_mark(const Mark& mark) {
  Bytes value(1, kVersion);
  append_number(value, mark.sequence);
  value += auth::view_of(mark.hash);
  append_number(value, mark.bytes);
  return value;
}

Result<Mark> decode_mark(ByteView value) {
  if (value.size() != kMarkBytes || value[0] != kVersion) {
    return corruption("a checkpoint of the audit log is malformed");
  }
  Mark mark;
  mark.sequence = read_number(value.substr(1));
  mark.hash = digest_of(value.substr(9));
  mark.bytes = read_number(value.substr(9 + kHashBytes));
  return mark;
}

}  // namespace edgecase::audit
