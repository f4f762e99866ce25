// The figures that a workload measured, printed as text or JSON (CONTRACT section 8).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace edgecase::cli::bench {

// Sums up measurements: latencies as percentiles, and the median of some rounds.

// Latencies in buckets 1/64 of their size wide: percentiles to 2 %, whatever their range. One
// thread each; merge at the end.
class Histogram {
 public:
  void add(std::uint64_t ns) {
    ++counts_[bucket_of(ns)];
    ++count_;
    if (ns > max_) max_ = ns;
  }
  // Something took this long, but is not counted.
  void note_max(std::uint64_t ns) {
    if (ns > max_) max_ = ns;
  }
  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t max_ns() const { return max_; }
  // The smallest bucket's upper end that at least this share (0 to 1) lies within.
  std::uint64_t percentile_ns(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (counts_[i] != 0 && seen >= wanted) return end_of(i) < max_ ? end_of(i) : max_;
    }
    return max_;
  }

 private:
  static constexpr unsigned kFineBits = 6;
  static constexpr std::size_t kFine = std::size_t{1} << kFineBits;
  static constexpr std::size_t kBuckets = (64 - kFineBits + 1) * kFine;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < kFine) return ns;
    const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kFineBits;
    return (shift + 1) * kFine + ((ns >> shift) - kFine);
  }
  static std::uint64_t end_of(std::size_t bucket) {
    if (bucket < kFine) return bucket;
    const std::size_t shift = bucket / kFine - 1;
    return ((kFine + bucket % kFine + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

// The middle of some measurements; of an even number the lower of the two. 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

struct Report {
  std::string workload;
  std::string engine = "edgecase";
  std::uint64_t num = 0;  // operations done
  std::uint64_t value_size = 0;
  std::uint32_t threads = 1;
  bool sync = false;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::uint64_t user_bytes = 0;  // keys and values, or bodies, in or out
  Histogram latency;
  double write_amplification = 0;  // 0: nothing was written
  double space_amplification = 0;
  std::uint64_t peak_memory_bytes = 0;
  // More figures of single workloads, in order: name and value.
  std::vector<std::pair<std::string, double>> more;
  // A table in words: its first row names the columns.
  std::vector<std::vector<std::string>> rows;
  // What is said in words: name and text.
  std::vector<std::pair<std::string, std::string>> words;
  // Lines that people see instead of `more`; empty: they see that.
  std::string table;

  double ops_per_second() const { return seconds > 0 ? static_cast<double>(num) / seconds : 0; }
  // 0 where there is none.
  double figure(const std::string& name) const {
    for (const auto& [known, value] : more) {
      if (known == name) return value;
    }
    return 0;
  }
  double mb_per_second() const {
    return seconds > 0 ? static_cast<double>(user_bytes) / seconds / 1e6 : 0;
  }
};

// One JSON object; or lines for people, with the unit `operation` ("puts", "lines").
std::string report_json(const Report& report);
std::string report_text(const Report& report, const std::string& operation);

}  // namespace edgecase::cli::bench
