// Pacer slows writers down, so that they come to rest at the rate that flushes and merges keep up
// with, and need not stop. It asks a pause a byte, which grows with the square of how far flushes
// and merges are behind. Each namespace pays by what it writes (FairPace).
//
// Threads. look(): any, after each flush and merge and when a memtable is full. price(): the commit
// leader, of the group it has written. keep(): each writer, once others may lead again: it waits
// there, for kPauseMaxNs at most. The mutex is held for arithmetic alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "compaction/compactor.h"
#include "core/commit_queue.h"
#include "core/store.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"

namespace edgecase::engine {

// FairPace reckons what each namespace owes in pauses while writers outrun flushes and merges, so
// that those who write much pay.
//
// A namespace that writes less than half of an equal share of what all of them write owes nothing
// for it; from there to an equal share it comes to owe all. As many as owe something, so many times
// the price each pays: together they come to the rate that one of them alone would have, and each
// to an equal part of it. Each has a moment before which its next write should not be answered,
// which a byte moves on by its price; who lets time pass has some of it to its credit.
//
// Source: the moments are the theoretical arrival times of the generic cell rate algorithm (ITU-T
// I.371).
//
// Threads: none of its own; who leads the commit queue calls it.
class FairPace {
 public:
  // What has passed that nobody wrote in counts for later up to so much.
  static constexpr std::int64_t kCreditMaxNs = 2'000'000;
  // What is owed beyond it is remitted.
  static constexpr std::int64_t kOwedMaxNs = 100'000'000;
  // After so many bytes what was written before counts half.
  static constexpr std::uint64_t kMemoryBytes = 4u << 20;

  // `namespaces` wrote `bytes` together, which count in equal parts, at a price for each. Returns
  // until when (by the same clock as `now_ns`) whoever wrote them waits; before `now_ns`: not at
  // all.
  std::int64_t charge(const std::vector<NamespaceId>& namespaces, std::uint64_t bytes,
                      double ns_per_byte, std::int64_t now_ns) {
    std::int64_t until_ns = 0;
    for (const NamespaceId id : namespaces) {
      Account& account = account_of(id);
      const std::uint64_t part = bytes / namespaces.size();
      account.bytes += part;
      bytes_ += part;
      const double owed_ns =
          ns_per_byte * static_cast<double>(part) * charged_share(account) * payers();
      account.until_ns = std::clamp(account.until_ns, now_ns - kCreditMaxNs, now_ns + kOwedMaxNs) +
                         static_cast<std::int64_t>(owed_ns);
      until_ns = std::max(until_ns, account.until_ns);
    }
    if (bytes_ >= kMemoryBytes) forget_half();
    return until_ns;
  }

  // Nobody owes anything any more. Who wrote how much lately still counts.
  void remit() {
    if (is_owed_nothing_) return;
    for (Account& account : accounts_) account.until_ns = 0;
    is_owed_nothing_ = true;
  }

 private:
  struct Account {
    NamespaceId id = 0;
    std::uint64_t bytes = 0;  // of late
    std::int64_t until_ns = 0;
  };

  Account& account_of(NamespaceId id) {
    is_owed_nothing_ = false;
    const auto found = std::find_if(accounts_.begin(), accounts_.end(),
                                    [&](const Account& account) { return account.id == id; });
    if (found != accounts_.end()) return *found;
    return accounts_.emplace_back(Account{.id = id});
  }

  double charged_share(const Account& account) const {
    if (bytes_ == 0) return 1;
    const double equal_share = static_cast<double>(bytes_) / static_cast<double>(accounts_.size());
    return std::clamp(2 * static_cast<double>(account.bytes) / equal_share - 1, 0.0, 1.0);
  }

  // At least one: somebody writes an equal share or more.
  double payers() const {
    double count = 0;
    for (const Account& account : accounts_) count += charged_share(account);
    return count;
  }

  // An account nothing was written to since goes: there are as many as wrote lately.
  void forget_half() {
    bytes_ = 0;
    for (Account& account : accounts_) bytes_ += account.bytes /= 2;
    std::erase_if(accounts_, [](const Account& account) { return account.bytes == 0; });
  }

  std::vector<Account> accounts_;
  std::uint64_t bytes_ = 0;  // of all accounts
  bool is_owed_nothing_ = true;
};

// GarbageLimit says from which garbage share on writers are slowed down. A store that stops growing
// may hold far more garbage than one that does not grow may. Its writers then go on as fast as
// merges keep the garbage from growing, a little slower, until it is down. Not thread-safe.
class GarbageLimit {
 public:
  // Now: `natural` is the limit of a store as this one is, `garbage` what it holds, both bytes a
  // useful byte; `idle` what it may hold because nothing of it was worth cleaning when merges last
  // looked, 0 if something was; `written_bytes` is what flushes wrote so far.
  double next(double natural, double garbage, double idle, std::uint64_t written_bytes,
              std::uint64_t useful_bytes) {
    const double written = static_cast<double>(written_bytes - written_bytes_) /
                           static_cast<double>(std::max<std::uint64_t>(1, useful_bytes));
    written_bytes_ = written_bytes;
    const double fallen = kFallenAWrittenByte * written;
    limit_ = std::max(natural, std::min(limit_, garbage) - fallen);
    idle_limit_ = std::max(idle, idle_limit_ - fallen);
    return std::max(limit_, idle_limit_);
  }

 private:
  // The limit falls by so much while all that is useful is written once.
  static constexpr double kFallenAWrittenByte = 0.25;

  double limit_ = 0;
  double idle_limit_ = 0;
  std::uint64_t written_bytes_ = 0;
};

class Pacer {
 public:
  // Both outlive it.
  Pacer(const Store& store, const Compactor& compactor) : store_(store), compactor_(compactor) {}

  // Asks anew how far merges are behind. `flushed_bytes`: what flushes wrote so far.
  void look(std::uint64_t flushed_bytes) EC_EXCLUDES(mutex_);
  // Says to each writer of the group when it may be answered.
  void price(std::span<CommitQueue::Writer* const> group, const Memtable& active)
      EC_REQUIRES(leading);
  // Waits until then, or a part of it: many short pauses, none that is long.
  void keep(std::int64_t answer_not_before_ns) EC_EXCLUDES(mutex_);

  // A writer stood still for so long.
  void add_stall(std::int64_t ns) {
    stall_ns_.fetch_add(static_cast<std::uint64_t>(ns), std::memory_order_relaxed);
  }
  std::uint64_t stall_ns() const { return stall_ns_.load(std::memory_order_relaxed); }

 private:
  double debt_of_merges(std::uint64_t flushed_bytes);
  double pause_for_memory(const Memtable& active) const;

  const Store store_;
  const Compactor& compactor_;
  FairPace accounts_ EC_GUARDED_BY(leading);
  std::atomic<double> ns_per_byte_{0};  // for merges
  std::atomic<std::uint64_t> stall_ns_{0};
  Mutex mutex_;
  GarbageLimit garbage_limit_ EC_GUARDED_BY(mutex_);
  CondVar pause_;  // nobody notifies it
};

}  // namespace edgecase::engine
