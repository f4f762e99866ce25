// Tells what of the place with times has expired, by a model of the rules: the oracle of expiry. A
// rule counts from its acknowledgement on; what has once expired stays so; and the bytes of it are
// gone once the store has had as long for it as it asks for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "crash/crash_state.h"
#include "edgecase/machine.h"
#include "edgecase/options.h"

namespace edgecase::test {

inline constexpr std::size_t kTimedSeries = 3;
inline constexpr std::size_t kTimedScopes = kTimedSeries + 1;  // the last: the namespace

struct ScopedRule {
  std::size_t scope = 0;
  std::optional<std::int64_t> retention_ns;
};

ScopedRule draw_rule(SeededRandom& detail);
RetentionRule to_retention_rule(const ScopedRule& rule, NamespaceId id);

class ExpiryOracle {
 public:
  ExpiryOracle(ExpiryMode mode, std::int64_t now_ns) : mode_(mode), now_ns_(now_ns) {}

  void acknowledge(const ScopedRule& rule);
  // It failed: whether it holds the next open tells, and so of each that failed before.
  void refuse(const ScopedRule& rule);
  // A rule was refused, and may yet hold: what expires meanwhile by the others would return.
  bool is_unsure() const { return !others_.empty(); }
  // Keys that some of the rules that may have led to these hide, and others do not.
  std::vector<std::size_t> disputed(const std::vector<RetentionRule>& found) const;
  // Empty, or why these may not be the rules that hold now. Of rules that were replaced by then,
  // what the place still shows tells which did hold.
  std::string settle(const std::vector<RetentionRule>& found, const State& shown);
  // The namespace is gone, or a new one.
  void forget();

  // Expiry time is `now_ns`, or was later before. Unsure, only settle() may follow.
  void reach(std::int64_t now_ns);
  std::int64_t now_ns() const { return now_ns_; }
  bool is_hidden(std::size_t key) const { return rules_.hides(key); }

  // --- bytes ---

  void note_handed_in(const Changes& changes);
  // A fault, a reader or the end of a process: the store has all its time anew.
  void disturb();
  // It has done all background work there was for so long; expiry time is `now_ns`. Before reach().
  void note_rest(std::int64_t ns, std::int64_t now_ns);
  // Values that must be nowhere from now on; each is told once.
  std::vector<ValueNumber> take_gone();

 private:
  struct Rules {
    std::array<std::optional<std::int64_t>, kTimedScopes> retention_ns;
    std::array<std::int64_t, kTimedSeries> floor_ns;  // what is older has expired

    Rules() { floor_ns.fill(INT64_MIN); }
    void set(const ScopedRule& rule, std::int64_t now_ns);
    void settle(std::int64_t now_ns);
    bool hides(std::size_t key) const;
    bool operator==(const Rules&) const = default;
  };
  struct Leaving {
    ValueNumber value = 0;
    std::int64_t since_ns = 0;    // in time rested
    std::int64_t expired_ns = 0;  // in expiry time, or later
  };

  std::vector<Rules> possible(const std::vector<RetentionRule>& found) const;
  std::int64_t bound_ns() const;
  void note_hidden();

  const ExpiryMode mode_;
  std::int64_t now_ns_;
  Rules rules_;
  std::vector<Rules> others_;  // that a failure may have left
  std::array<std::vector<ValueNumber>, kKeysPerPlace> handed_in_;
  std::vector<Leaving> leaving_;
  std::int64_t rested_ns_ = 0;
};

}  // namespace edgecase::test
