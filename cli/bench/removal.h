// The workloads of removal: how long until keys that expire (ttl) and devices that are erased
// (erase) are gone, to readers and from the drives.
//
// ttl: every key expires, a fifth of them at one instant, the others five days later. How long the
// fifth can still be read, and how long its bytes are still on the drives. Here is what stores of
// another make are given, too (edgecase-bench-peers: Redis).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"

namespace edgecase::cli::bench {

// A store of a benchmark's own that overwrites what goes: in private directories that are removed
// with it, with one namespace, "bench". And the search for a marker in raw bytes that tells which
// files still hold what should be gone. Errors: the engine's, and those of directories.

// A file in which a marker stands.
struct MarkedFile {
  std::string path;
  std::uint64_t bytes = 0;  // of the file
};

// Files below `directory` in which `marker` stands. A file that goes meanwhile does not count.
std::vector<MarkedFile> files_with(const std::string& directory, std::string_view marker);

// Used by one thread; the engine has its own.
class OverwritingStore {
 public:
  static Result<std::unique_ptr<OverwritingStore>> open(const BenchOptions& options,
                                                        ExpiryMode expiry,
                                                        const NamespaceOptions& space);

  Engine& engine() { return *engine_; }
  NamespaceId space() const { return space_; }
  // On both drives, those that hold these bytes.
  std::vector<MarkedFile> files_with(std::string_view marker) const;

 private:
  OverwritingStore() = default;

  StoreDirectories directories_;
  EventListener listener_;
  std::unique_ptr<Executor> executor_ = make_thread_executor();
  std::unique_ptr<Engine> engine_;
  NamespaceId space_ = 0;
};

inline constexpr std::uint64_t kTtlEarlyOneIn = 5;
inline constexpr std::uint64_t kTtlKeysPerBatch = 1'000;
inline constexpr std::int64_t kTtlSecondNs = 1'000'000'000;
inline constexpr std::int64_t kTtlLateNs = 5 * 86'400 * kTtlSecondNs;  // after the others
inline constexpr std::int64_t kTtlLeadNs = 3 * kTtlSecondNs;  // to put the keys, before the instant
inline constexpr std::uint64_t kTtlSlowKeysPerSecond = 40'000;
inline constexpr std::string_view kTtlMarker = "expires-early.";  // in no other bytes

inline std::int64_t wall_now_ns() {
  return system_clock().wall_ns();
}
inline bool expires_early(std::uint64_t number) {
  return number % kTtlEarlyOneIn == 0;
}
inline std::uint64_t early_keys(std::uint64_t keys) {
  return (keys + kTtlEarlyOneIn - 1) / kTtlEarlyOneIn;
}
// When so many keys are to expire that are put from now on.
inline std::int64_t ttl_instant_ns(std::uint64_t keys,
                                   double keys_per_second = kTtlSlowKeysPerSecond) {
  return wall_now_ns() + kTtlLeadNs +
         static_cast<std::int64_t>(static_cast<double>(keys) / keys_per_second * kTtlSecondNs);
}
// Cancelled on Ctrl-C.
inline Status wait_until_wall(std::int64_t time_ns) {
  while (wall_now_ns() < time_ns) {
    EC_TRY(check_interrupt());
    sleep_ms(1);
  }
  return ok();
}

// First bytes tell early from late, the others cannot be compressed.
class TtlValues {
 public:
  TtlValues(std::uint64_t seed, std::uint32_t bytes) : random_(seed), bytes_(bytes) {}
  std::string next(bool early) {
    std::string value = early ? std::string(kTtlMarker) : "expires-late.";
    while (value.size() < bytes_) {
      std::uint64_t bits = random_.next();
      for (int i = 0; i < 8 && value.size() < bytes_; ++i, bits >>= 8)
        value += static_cast<char>(bits);
    }
    return value;
  }

 private:
  SeededRandom random_;
  const std::uint32_t bytes_;
};

}  // namespace edgecase::cli::bench
