#include "audit/record.h"

#include <algorithm>
#include <array>

#include "audit/record_bytes.h"
#include "wire/big_endian.h"

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

}  // namespace edgecase::audit
