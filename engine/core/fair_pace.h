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
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "edgecase/write_batch.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
