#include "auth/token_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "wire/authority.h"
#include "wire/names.h"
#include "wire/reading_format.h"

namespace edgecase::auth {
namespace {

using Json = nlohmann::json;

constexpr int kRecordVersion = 1;
constexpr int kArraysVersion = 2;
constexpr char kTokenRecord = 'T';
constexpr char kUseRecord = 'U';

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string random_digits(Random& random, std::size_t digits) {
  std::string text;
  while (text.size() < digits) {
    std::uint64_t bits = random.next();
    for (int i = 0; i < 16; ++i, bits >>= 4) text += "0123456789abcdef"[bits & 15];
  }
  text.resize(digits);
  return text;
}

struct ScopeName {
  const char* name;
  std::vector<wire::Selector> Scopes::*member;
};
constexpr ScopeName kScopeNames[] = {{"read", &Scopes::read},
                                     {"write", &Scopes::write},
                                     {"export", &Scopes::export_all},
                                     {"erase", &Scopes::erase}};

Bytes number_bytes(std::int64_t number) {
  Bytes bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> shift));
  }
  return bytes;
}

std::int64_t number_of(ByteView bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(number);
}

Json record_json(const Grant& grant, const Digest& hash, std::int64_t created_ns, bool is_revoked) {
  Json json = {{"version", kRecordVersion},
               {"hash", hex_text(view_of(hash))},
               {"namespace", grant.scopes.namespace_name},
               {"created", created_ns}};
  for (const ScopeName& scope : kScopeNames) {
    const auto& selectors = grant.scopes.*scope.member;
    if (selectors.empty()) continue;
    json[scope.name] = scope_json(selectors);
    if (selectors.size() > 1) json["version"] = kArraysVersion;
  }
  if (grant.scopes.admin) json["admin"] = true;
  if (!grant.scopes.purpose.empty()) json["purpose"] = grant.scopes.purpose;
  if (!grant.certificate.empty()) json["certificate"] = grant.certificate;
  if (grant.ends_ns != Grant::kNever) json["ends"] = grant.ends_ns.load();
  if (is_revoked) json["revoked"] = true;
  return json;
}

// False: it is no scope.
bool parse_scope(const Json& json, std::vector<wire::Selector>& scope) {
  const bool is_array = json.is_array();
  const std::size_t count = is_array ? json.size() : 1;
  if (count == 0 || count > wire::kSelectorsMax) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto selector =
        wire::parse_selector((is_array ? json[i] : json).get_ref<const std::string&>());
    if (!selector.ok()) return false;
    scope.push_back(*selector);
  }
  return true;
}

Status check_certificate_name(std::string_view name) {
  const bool is_plain =
      wire::is_valid_utf8(name) && std::none_of(name.begin(), name.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f;
      });
  if (is_plain && name.size() <= TokenStore::kCertificateNameMaxBytes) return ok();
  return invalid_argument("a certificate's name is text of at most " +
                          std::to_string(TokenStore::kCertificateNameMaxBytes) + " bytes");
}

// The library turns any number into an integer, those too that are none.
bool has_whole_numbers(const Json& record) {
  return std::all_of(record.begin(), record.end(), [](const Json& field) {
    return !field.is_number_float() &&
           (!field.is_number_unsigned() || field.get<std::uint64_t>() <= INT64_MAX);
  });
}

}  // namespace

nlohmann::json scope_json(const std::vector<wire::Selector>& scope) {
  Json texts = Json::array();
  for (const wire::Selector& each : scope) texts.push_back(each.device + "/" + each.sensor);
  if (texts.empty()) return nullptr;
  return texts.size() == 1 ? texts.front() : texts;
}

bool looks_like_token(std::string_view text) {
  constexpr std::size_t kIdEnd = kTokenPrefix.size() + TokenStore::kIdDigits;
  return text.size() == kIdEnd + 1 + TokenStore::kSecretDigits && text.starts_with(kTokenPrefix) &&
         text[kIdEnd] == '_' && is_hex(text.substr(kTokenPrefix.size(), TokenStore::kIdDigits)) &&
         is_hex(text.substr(kIdEnd + 1));
}

TokenStore::TokenStore(Engine& engine, Clock& clock, Random& random)
    : engine_(engine), clock_(clock), random_(random) {}

Result<std::unique_ptr<TokenStore>> TokenStore::open(Engine& engine, Clock& clock, Random& random) {
  std::unique_ptr<TokenStore> store(new TokenStore(engine, clock, random));
  EC_TRY(store->load());
  return store;
}

// The wall's clock may be behind after a start without a network; the engine remembers how far it
// had come, so that what has expired stays so.
std::int64_t TokenStore::now_ns() const {
  return std::max(clock_.wall_ns(), engine_.expiry_now_ns());
}

Status TokenStore::load() {
  if (const auto found = engine_.find_namespace(kTokensNamespace); found.ok()) {
    records_ = found->id;
  } else {
    EC_ASSIGN_OR_RETURN(
        records_, engine_.create_namespace(kTokensNamespace, {.placement = Placement::Metadata}));
  }
  const MutexLock lock(mutex_);
  ReadOptions options;
  bool is_damaged = false;
  options.on_damage = [&is_damaged](const DamagedKeys&) { is_damaged = true; };
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {}, options));
  for (; iterator->valid(); iterator->next()) {
    const ByteView key = iterator->key();
    if (key.size() != 1 + kIdDigits) return corruption("the key of a token's record is malformed");
    const std::string_view id = key.substr(1);
    if (key.front() == kTokenRecord) {
      EC_TRY(load_token(id, iterator->value()));
    } else if (const auto token = tokens_.find(id);  // 'T' sorts before 'U'
               key.front() == kUseRecord && token != tokens_.end()) {
      token->second.last_used_ns = token->second.used_written_ns = number_of(iterator->value());
    }
  }
  damaged_ = is_damaged;
  return iterator->status();
}

Status TokenStore::load_token(std::string_view id, ByteView value) {
  // A field of another kind than it should be is what the library throws at.
  try {
    return load_fields(id, Json::parse(value));
  } catch (const Json::exception&) {
    return corruption("the record of token " + std::string(id) + " is malformed");
  }
}

Status TokenStore::load_fields(std::string_view id, const nlohmann::json& json) {
  const Status damaged = corruption("the record of token " + std::string(id) + " is malformed");
  if (!json.is_object() || !has_whole_numbers(json)) return damaged;
  const int version = json.value("version", 0);
  if (version != kRecordVersion && version != kArraysVersion) {
    return unsupported("a token was written by a newer version of EdgeCase");
  }
  Token token;
  token.grant = std::make_shared<Grant>();
  token.grant->token_id = id;
  Scopes& scopes = token.grant->scopes;
  for (const ScopeName& scope : kScopeNames) {
    if (!json.contains(scope.name)) continue;
    if (!parse_scope(json[scope.name], scopes.*scope.member)) return damaged;
  }
  scopes.namespace_name = json.value("namespace", "");
  scopes.admin = json.value("admin", false);
  scopes.purpose = json.value("purpose", "");
  token.grant->certificate = json.value("certificate", "");
  token.grant->ends_ns = json.value("ends", Grant::kNever);
  token.created_ns = json.value("created", std::int64_t{0});
  token.is_revoked = json.value("revoked", false);
  if (!parse_digest(json.value("hash", ""), token.hash)) return damaged;
  tokens_.emplace(id, std::move(token));
  return ok();
}

// The id of the token to be forgotten; empty: none needs to be.
Result<std::string> TokenStore::make_room() {
  if (tokens_.size() < kTokensMax) return std::string();
  const auto first =
      std::min_element(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) {
        return a.second.grant->ends_ns.load() < b.second.grant->ends_ns.load();
      });
  if (!has_ended(*first->second.grant)) {
    return limit_reached("there are " + std::to_string(kTokensMax) + " tokens, revoke one first");
  }
  return first->first;
}

TokenStore::Token* TokenStore::find_certificate(std::string_view name) {
  for (auto& [id, token] : tokens_)
    if (token.grant->certificate == name && !has_ended(*token.grant)) return &token;
  return nullptr;
}

Result<TokenStore::Created> TokenStore::create(const Scopes& scopes,
                                               std::optional<std::int64_t> ends_ns,
                                               const std::string& certificate) {
  const bool has_any = scopes.admin || std::any_of(std::begin(kScopeNames), std::end(kScopeNames),
                                                   [&](const ScopeName& each) {
                                                     return !(scopes.*each.member).empty();
                                                   });
  if (!has_any) {
    return invalid_argument(
        "the token would allow nothing: say what it may read, write, export or "
        "erase, or that it is an admin's");
  }
  const std::int64_t now = now_ns();
  if (ends_ns && *ends_ns <= now) return invalid_argument("the token would have expired already");
  const MutexLock lock(mutex_);
  if (!certificate.empty()) EC_TRY(check_certificate_name(certificate));
  if (const Token* const other = certificate.empty() ? nullptr : find_certificate(certificate);
      other != nullptr) {
    return invalid_argument("token " + other->grant->token_id + " stands for the certificate of " +
                            certificate + ": revoke it first");
  }
  EC_ASSIGN_OR_RETURN(const std::string forgotten, make_room());
  Created created;
  do {
    created.id = random_digits(random_, kIdDigits);
  } while (tokens_.contains(created.id));
  const std::string text =
      std::string(kTokenPrefix) + created.id + "_" + random_digits(random_, kSecretDigits);
  if (certificate.empty()) created.text = text;
  Token token;
  token.grant = std::make_shared<Grant>();
  token.grant->token_id = created.id;
  token.grant->scopes = scopes;
  token.grant->certificate = certificate;
  token.grant->ends_ns = ends_ns.value_or(Grant::kNever);
  token.hash = sha256(text);
  token.created_ns = now;
  WriteBatch batch;
  batch.put(records_, kTokenRecord + created.id,
            record_json(*token.grant, token.hash, now, false).dump());
  if (!forgotten.empty()) {
    batch.remove(records_, kTokenRecord + forgotten);
    batch.remove(records_, kUseRecord + forgotten);
  }
  EC_TRY(engine_.write(batch, Durability::Sync));
  if (!forgotten.empty()) tokens_.erase(forgotten);
  tokens_.emplace(created.id, std::move(token));
  return created;
}

Status TokenStore::revoke(std::string_view id, std::optional<std::int64_t> ends_ns) {
  const MutexLock lock(mutex_);
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) return not_found("there is no token " + std::string(id));
  Token& token = found->second;
  const std::int64_t end = ends_ns.value_or(now_ns());
  if (token.grant->ends_ns <= end) {
    return invalid_argument("token " + std::string(id) + " has ended, or ends before that");
  }
  Grant ended;
  ended.scopes = token.grant->scopes;
  ended.certificate = token.grant->certificate;
  ended.ends_ns = end;
  WriteBatch batch;
  batch.put(records_, kTokenRecord + found->first,
            record_json(ended, token.hash, token.created_ns, true).dump());
  EC_TRY(engine_.write(batch, Durability::Sync));
  token.is_revoked = true;
  token.grant->ends_ns = end;
  return ok();
}

std::vector<TokenInfo> TokenStore::list() const {
  std::vector<TokenInfo> infos;
  const MutexLock lock(mutex_);
  for (const auto& [id, token] : tokens_) {
    TokenInfo& info = infos.emplace_back();
    info.id = id;
    info.scopes = token.grant->scopes;
    info.certificate = token.grant->certificate;
    info.created_ns = token.created_ns;
    if (token.grant->ends_ns != Grant::kNever) info.ends_ns = token.grant->ends_ns.load();
    info.last_used_ns = token.last_used_ns;
    info.is_revoked = token.is_revoked;
    info.has_ended = has_ended(*token.grant);
  }
  std::stable_sort(infos.begin(), infos.end(), [](const TokenInfo& a, const TokenInfo& b) {
    return a.created_ns < b.created_ns;
  });
  return infos;
}

bool TokenStore::any() const {
  const MutexLock lock(mutex_);
  return damaged_ || !tokens_.empty();
}

Result<std::shared_ptr<const Grant>> TokenStore::check(std::string_view text) {
  const Status unknown = not_allowed(
      "this is no token that is known here; it may be another store's. edgecase token create makes "
      "one, edgecase token list names those there are");
  if (!looks_like_token(text)) return unknown;
  const Digest hash = sha256(text);
  const std::int64_t now = now_ns();
  const MutexLock lock(mutex_);
  const auto found = tokens_.find(text.substr(kTokenPrefix.size(), kIdDigits));
  if (found == tokens_.end()) return unknown;
  Token& token = found->second;
  if (!equal_in_constant_time(hash, token.hash)) return unknown;
  // Only who holds the secret is told more.
  if (token.grant->ends_ns <= now) {
    std::string when;
    wire::append_time(token.grant->ends_ns, when);
    return not_allowed("token " + found->first + (token.is_revoked ? " was revoked" : " expired") +
                       " at " + when);
  }
  note_use(found->first, token, now);
  return std::shared_ptr<const Grant>(token.grant);
}

std::shared_ptr<const Grant> TokenStore::of_certificate(std::string_view name) {
  if (name.empty()) return nullptr;
  const std::int64_t now = now_ns();
  const MutexLock lock(mutex_);
  Token* const token = find_certificate(name);
  if (token == nullptr) return nullptr;
  note_use(token->grant->token_id, *token, now);
  return token->grant;
}

void TokenStore::note_use(const std::string& id, Token& token, std::int64_t now_ns) {
  token.last_used_ns = now_ns;
  if (token.used_written_ns != 0 && now_ns - token.used_written_ns < kUsedSpacingNs) return;
  WriteBatch batch;
  batch.put(records_, kUseRecord + id, number_bytes(now_ns));
  // A drive that refuses keeps nobody out: the time is told from memory, and written again later.
  if (engine_.write(batch, Durability::Async).ok()) token.used_written_ns = now_ns;
}

Result<Principal> Authenticator::authenticate(const Principal& connection, std::string_view token) {
  if (token.empty()) {
    for (const std::string& name : connection.certificate) {
      std::shared_ptr<const Grant> stands = tokens_.of_certificate(name);
      if (stands == nullptr) continue;
      return Principal{connection.kind, "certificate " + name + " of " + connection.name,
                       std::move(stands)};
    }
    if (is_current(connection)) return connection;
    if (connection.certificate.empty())
      return fail(connection,
                  not_allowed("a token is needed here: sudo edgecase token create --read '*/*' "
                              "makes one, --token or EDGECASE_TOKEN shows it"));
    return fail(connection, not_allowed("nothing says what the certificate of " +
                                        connection.certificate.front() +
                                        " may do (edgecase token create --certificate NAME)"));
  }
  auto grant = tokens_.check(token);
  if (!grant.ok()) return fail(connection, grant.status());
  Principal principal{connection.kind, "token " + (*grant)->token_id + " of " + connection.name};
  principal.grant = std::move(grant).value();
  return principal;
}

bool Authenticator::is_current(const Principal& principal) const {
  if (principal.grant) return !tokens_.has_ended(*principal.grant);
  switch (principal.kind) {
    case PrincipalKind::Loopback: return !tokens_.any();
    case PrincipalKind::Remote: return insecure_ == InsecureAccess::Allowed && !tokens_.any();
    default: return true;
  }
}

Status Authenticator::fail(const Principal& connection, Status why) {
  failures_.fetch_add(1, std::memory_order_relaxed);
  if (take_attempt(wire::network_of(connection.name))) return why;
  throttled_.fetch_add(1, std::memory_order_relaxed);
  return busy("too many failed logins from " + connection.name + ", try again later");
}

bool Authenticator::take_attempt(const std::string& address) {
  const std::int64_t now_ns = clock_.boot_ns();
  const MutexLock lock(mutex_);
  if (const auto known = by_address_.find(address); known != by_address_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, known->second);
  } else {
    if (buckets_.size() >= kAddressesMax) {
      by_address_.erase(buckets_.back().address);
      buckets_.pop_back();
    }
    buckets_.push_front({address, kBurst, now_ns});
    by_address_.emplace(buckets_.front().address, buckets_.begin());
  }
  Bucket& bucket = buckets_.front();
  bucket.left = std::min<double>(kBurst, bucket.left + static_cast<double>(now_ns - bucket.at_ns) /
                                                           static_cast<double>(kRefillNs));
  bucket.at_ns = now_ns;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace edgecase::auth
