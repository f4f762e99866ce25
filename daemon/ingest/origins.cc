#include "ingest/origins.h"

#include <algorithm>
#include <utility>

#include "wire/reading.h"

namespace edgecase::ingest {
namespace {

constexpr std::string_view kOriginsNamespace = "_origins";
constexpr std::uint8_t kVersion = 2, kVersionBeforeRestored = 1;
constexpr unsigned char kSecond = 1, kRestored = 2;  // flags
constexpr std::size_t kStoreDigits = 32, kRunDigits = 16;
constexpr std::size_t kNumberBytes = 4, kTimeBytes = 8;
constexpr std::size_t kByMaxBytes = 256;

bool is_hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Digits as they are sent are bytes twice over.
void append_digits(std::string_view digits, std::size_t most, Bytes& out) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i < most; i += 2) {
    out.push_back(digits.empty() ? '\0'
                                 : static_cast<char>(value(digits[i]) << 4 | value(digits[i + 1])));
  }
}

std::string digits_of(ByteView bytes) {
  std::string digits;
  for (const char c : bytes) {
    digits += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    digits += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return digits;
}

bool is_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
}

// By the store's own, so that a copy of this store gives the same names to what comes.
catalog::OriginNumber first_number(std::string_view store) {
  constexpr std::size_t kDigits = 6;
  catalog::OriginNumber number = 0;
  for (const char c : store.substr(0, kDigits))
    number = number << 4 | static_cast<catalog::OriginNumber>(c <= '9' ? c - '0' : c - 'a' + 10);
  return number + 1;
}

Bytes origin_key(catalog::OriginNumber number) {
  Bytes key;
  wire::append_big_endian(number, key, kNumberBytes);
  return key;
}

}  // namespace

Result<OriginClaim> parse_origin(std::string_view text) {
  OriginClaim claim;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_store = claim.store.empty();
    if (!is_hexadecimal(word, is_store ? kStoreDigits : kRunDigits) ||
        claim.runs.size() == OriginClaim::kRunsMax) {
      return invalid_argument("X-EdgeCase-Origin is not a store and its runs");
    }
    if (is_store) {
      claim.store = word;
    } else {
      claim.runs.emplace_back(word);
    }
  }
  if (claim.runs.empty()) return invalid_argument("X-EdgeCase-Origin has no run");
  return claim;
}

Bytes encode_origin(const Origin& origin) {
  Bytes out(1, static_cast<char>(origin.is_restored ? kVersion : kVersionBeforeRestored));
  append_digits(origin.store, kStoreDigits, out);
  append_digits(origin.run, kRunDigits, out);
  append_digits(origin.store_before, kStoreDigits, out);
  wire::append_big_endian(origin.holder, out, kNumberBytes);
  out.push_back(
      static_cast<char>((origin.is_second ? kSecond : 0) | (origin.is_restored ? kRestored : 0)));
  wire::append_big_endian(static_cast<std::uint64_t>(origin.since_ns), out, kTimeBytes);
  return out + Bytes(origin.by);
}

Result<Origin> decode_origin(catalog::OriginNumber number, ByteView bytes) {
  constexpr std::size_t kFixedBytes =
      1 + kStoreDigits + kRunDigits / 2 + kNumberBytes + 1 + kTimeBytes;
  if (!bytes.empty() && static_cast<std::uint8_t>(bytes[0]) > kVersion)
    return unsupported("an origin was written by a newer version of EdgeCase");
  if (bytes.size() < kFixedBytes) return corruption("an origin is not what was written");
  const auto take = [&bytes](std::size_t count) {
    const ByteView taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  };
  take(1);
  Origin origin;
  origin.number = number;
  origin.store = digits_of(take(kStoreDigits / 2));
  origin.run = digits_of(take(kRunDigits / 2));
  const ByteView before = take(kStoreDigits / 2);
  if (!is_zero(before)) origin.store_before = digits_of(before);
  origin.holder = static_cast<catalog::OriginNumber>(wire::read_big_endian(take(kNumberBytes)));
  const auto flags = static_cast<unsigned char>(take(1)[0]);
  origin.is_second = (flags & kSecond) != 0;
  origin.is_restored = (flags & kRestored) != 0;
  origin.since_ns = static_cast<std::int64_t>(wire::read_big_endian(take(kTimeBytes)));
  origin.by = bytes;
  return origin;
}

Result<std::unique_ptr<Origins>> Origins::open(Engine& engine, Clock& clock) {
  std::unique_ptr<Origins> origins(new Origins(engine, clock));
  const MutexLock lock(origins->mutex_);
  EC_TRY(origins->load());
  return origins;
}

Status Origins::load() {
  const auto found = engine_.find_namespace(kOriginsNamespace);
  if (found.status().code() == StatusCode::NotFound) return ok();
  EC_TRY(found.status());
  id_ = found->id;
  ReadOptions options;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(id_, {}, options));
  for (; each->valid(); each->next()) {
    if (each->key().size() != kNumberBytes) return corruption("the key of an origin is cut");
    const auto number = static_cast<catalog::OriginNumber>(wire::read_big_endian(each->key()));
    EC_ASSIGN_OR_RETURN(all_[number], decode_origin(number, each->value()));
  }
  return each->status();
}

Status Origins::write(const std::vector<Origin>& changed) {
  if (id_ == 0) {
    NamespaceOptions options;
    options.placement = Placement::Metadata;
    EC_ASSIGN_OR_RETURN(id_, engine_.create_namespace(kOriginsNamespace, options));
  }
  WriteBatch batch;
  for (const Origin& each : changed) batch.put(id_, origin_key(each.number), encode_origin(each));
  EC_TRY(engine_.write(batch, Durability::Sync));
  for (const Origin& each : changed) all_[each.number] = each;
  return ok();
}

const Origin* Origins::find_origin(const OriginClaim& claim) const {
  const Origin* restored = nullptr;
  std::size_t restored_count = 0;
  for (const auto& [number, origin] : all_) {
    if (origin.store != claim.store || origin.holder != number) continue;
    if (std::find(claim.runs.begin(), claim.runs.end(), origin.run) != claim.runs.end())
      return &origin;
    if (!origin.is_restored) continue;
    restored = &origin;
    ++restored_count;
  }
  // Which of two copies this is cannot be told.
  return restored_count == 1 ? restored : nullptr;
}

Status Origins::limit_of_origins() const {
  return limit_reached("the limit of " + std::to_string(kOriginsMax) +
                       " stores that forward to this one is reached");
}

Origins::Holder Origins::holder_of(const Origin& origin) const {
  Holder holder{.numbers = {origin.number}, .is_second = origin.is_second};
  for (const auto& [number, each] : all_) {
    if (each.holder == origin.number && number != origin.number) holder.numbers.push_back(number);
  }
  return holder;
}

Result<Origins::Holder> Origins::enter(const OriginClaim& claim, const std::string& by) {
  const MutexLock lock(mutex_);
  if (const Origin* const known = find_origin(claim); known != nullptr) {
    if (known->run == claim.runs.front() && !known->is_restored) return holder_of(*known);
    Origin next = *known;
    next.run = claim.runs.front();
    next.is_restored = false;
    EC_TRY(write({next}));
    return holder_of(next);
  }
  if (all_.size() >= kOriginsMax) return limit_of_origins();
  Origin made;
  made.number = first_number(claim.store);
  while (all_.contains(made.number)) ++made.number;
  made.store = claim.store;
  made.run = claim.runs.front();
  made.holder = made.number;
  made.is_second = std::any_of(all_.begin(), all_.end(), [&claim](const auto& each) {
    return each.second.store == claim.store || each.second.store_before == claim.store;
  });
  made.since_ns = clock_.wall_ns();
  made.by = by.substr(0, kByMaxBytes);
  EC_TRY(write({made}));
  Holder holder = holder_of(made);
  holder.is_new = true;
  return holder;
}

Result<Origins::Holder> Origins::find(const OriginClaim& claim) const {
  const MutexLock lock(mutex_);
  const Origin* const known = find_origin(claim);
  if (known == nullptr) return not_found("nothing came from this store");
  return holder_of(*known);
}

std::vector<Origin> Origins::list() const {
  const MutexLock lock(mutex_);
  std::vector<Origin> list;
  for (const auto& [number, origin] : all_) list.push_back(origin);
  return list;
}

Result<std::vector<catalog::OriginNumber>> Origins::restore(const std::vector<Origin>& saved) {
  std::map<catalog::OriginNumber, Origin> fresh;
  std::vector<catalog::OriginNumber> others;
  const MutexLock lock(mutex_);
  for (const Origin& each : saved) {
    const bool can_be =
        each.number != catalog::kOwnOrigin && each.number != catalog::kNoOrigin &&
        is_hexadecimal(each.store, kStoreDigits) && is_hexadecimal(each.run, kRunDigits) &&
        (each.store_before.empty() || is_hexadecimal(each.store_before, kStoreDigits));
    if (!can_be) return invalid_argument("an origin is not what a backup says of one");
    const auto here = all_.find(each.number);
    if (here == all_.end()) {
      Origin& made = fresh[each.number] = each;
      made.is_restored = true;
      made.by.resize(std::min(made.by.size(), kByMaxBytes));
    } else if (const Origin& there = here->second; there.store != each.store &&
                                                   there.store_before != each.store &&
                                                   there.store != each.store_before) {
      others.push_back(each.number);
    }
  }
  std::vector<Origin> added;
  for (const auto& [number, each] : fresh) {
    if (!fresh.contains(each.holder) && !all_.contains(each.holder))
      return invalid_argument("an origin's heir is none");
    added.push_back(each);
  }
  if (all_.size() + added.size() > kOriginsMax) return limit_of_origins();
  if (!added.empty()) EC_TRY(write(added));
  return others;
}

Status Origins::hand_over(catalog::OriginNumber number, catalog::OriginNumber heir) {
  const MutexLock lock(mutex_);
  for (const catalog::OriginNumber each : {number, heir}) {
    const auto found = all_.find(each);
    if (found == all_.end()) return not_found("no origin has the number " + std::to_string(each));
    if (found->second.holder != each)
      return invalid_argument("origin " + std::to_string(each) + " has been handed over");
  }
  if (number == heir) return invalid_argument("an origin is its own already");
  // The elder number stays, so that its names are found first.
  Origin given = all_[number], taken = all_[heir];
  if (given.store != taken.store) given.store_before = given.store;
  given.store = taken.store;
  given.run = taken.run;
  given.is_second = false;
  std::vector<Origin> changed{given};
  for (const auto& [other, each] : all_) {
    if (each.holder != heir) continue;
    changed.push_back(each);
    changed.back().holder = number;
  }
  return write(changed);
}

}  // namespace edgecase::ingest
