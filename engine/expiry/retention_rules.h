// The rules of all namespaces, and what they have let expire. Immutable once shared; plain data.
//
// A scope's *floor* is what its past rules had let expire when they last changed: entries below it
// are gone for ever. It makes a rule that is lengthened, cleared or replaced bring nothing back. A
// scope's *epoch* counts changes: files that were cut by older rules do not tell when what they
// hold of it expires.
//
// Beside the rules stands what was *given up* in a namespace to make room: everything before one
// time, in all its scopes, whatever rules say. It changes no epoch, since buckets stay as they are.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/coding.h"
#include "base/entry.h"
#include "edgecase/engine.h"
#include "expiry/bucket.h"

namespace edgecase::engine {

using RuleEpoch = std::uint64_t;  // 0: before the first rule

struct ScopeState {
  Bytes prefix;  // begins with the namespace, as full keys do
  std::optional<std::int64_t> retention_ns;
  std::uint64_t floor = 0;  // an ordinal
  RuleEpoch epoch = 0;

  friend bool operator==(const ScopeState&, const ScopeState&) = default;
};

// Everything of a namespace before that time is gone for ever.
struct GivenUp {
  NamespaceId namespace_id = 0;
  std::int64_t before_ns = 0;

  friend bool operator==(const GivenUp&, const GivenUp&) = default;
};

// A full key without its time. Shorter ones have none and never expire.
inline bool has_time(ByteView full_key) {
  return full_key.size() >= kNamespacePrefixBytes + sizeof(std::uint64_t);
}
inline ByteView scope_part(ByteView full_key) {
  return full_key.substr(0, full_key.size() - sizeof(std::uint64_t));
}
inline std::uint64_t ordinal_in(ByteView full_key) {
  return load_ordinal(full_key.data() + full_key.size() - sizeof(std::uint64_t));
}

class RetentionRules {
 public:
  RetentionRules() = default;
  explicit RetentionRules(std::vector<ScopeState> scopes);

  // The rules after these changes at `now_ns`, which is at or after that of all changes before.
  // They change at once: no scope follows one in between. The last of several changes of one scope
  // counts. False: more than kRetentionRulesMax scopes.
  bool change(std::span<const RetentionRule> changes, std::int64_t now_ns);
  void forget_namespace(NamespaceId id);
  // Nothing changes where more was given up before.
  void give_up(const GivenUp& more);

  bool empty() const { return scopes_.empty() && given_up_.empty(); }
  bool has_namespace(NamespaceId id) const;
  RuleEpoch epoch() const { return epoch_; }
  // In the order of their prefixes.
  const std::vector<ScopeState>& scopes() const { return scopes_; }
  void each(NamespaceId id, const KeyRange& prefixes, const Engine::RetentionTaker& take) const;
  // Scopes that have a rule.
  std::size_t rule_count() const;
  std::size_t memory_bytes() const;
  std::vector<GivenUp> given_up() const;
  // An ordinal: what lies below was given up; 0: nothing was.
  std::uint64_t given_up_below(NamespaceId id) const;

  // The retention of keys that begin with `part` (scope_part()).
  std::int64_t retention_ns(ByteView part) const;
  // What lies below is gone; 0: nothing.
  std::uint64_t horizon(ByteView part, std::int64_t now_ns) const;
  // Whether a rule for some key of [first, last] has changed since.
  bool changed_since(ByteView first, ByteView last, RuleEpoch epoch) const;

 private:
  using Scopes = std::vector<ScopeState>;

  Scopes::iterator lower_bound(ByteView prefix);
  Scopes::const_iterator lower_bound(ByteView prefix) const;
  // Null: there is none.
  const ScopeState* find(ByteView prefix) const;
  const ScopeState* innermost(ByteView part) const;
  std::optional<std::int64_t> own_or_outer(ByteView prefix) const;
  void add_missing(std::span<const RetentionRule> changes, std::int64_t now_ns);
  void remember_epoch_in(NamespaceId id);
  void settle(ByteView prefix, std::int64_t now_ns);
  void prune(std::int64_t now_ns);
  void index();

  Scopes scopes_;                                  // by prefix
  std::map<NamespaceId, std::uint64_t> given_up_;  // ordinals
  std::vector<std::size_t> sizes_;                 // of prefixes, the longest first
  RuleEpoch epoch_ = 0;
};

}  // namespace edgecase::engine
