// A model of what the store must answer: the records as they should be by now, and who must be
// found by whom. Thread-safe; whoever asks for a group and acts on the answer keeps others from
// changing it meanwhile (gdpr_client.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "bench/experiments/gdpr_records.h"

namespace edgecase::cli::bench {

// Whether the data of a record is there between two times.
enum class Presence : unsigned char { There, Gone, Either };

class GdprModel {
 public:
  // Records that are expected at most: that many can be added.
  GdprModel(std::uint64_t loaded, std::uint64_t records_max);

  const GdprLayout& layout() const { return layout_; }
  std::uint64_t size() const;
  // The next record's number; add() follows once it is stored.
  std::uint64_t take_number();
  void add(std::uint64_t number, const GdprRecord& record);

  GdprRecord record(std::uint64_t number) const;
  void set_value(std::uint64_t number, GdprField field, std::uint32_t value);
  void set_version(std::uint64_t number, std::uint16_t version);
  void set_erased(std::uint64_t number);
  std::uint64_t erased_count() const;

  // The records of a user, by namespace and key; those of a purpose and TTL behind `after`, by key.
  std::vector<std::uint64_t> of_user(std::uint32_t user) const;
  std::vector<std::uint64_t> of_purpose(std::uint32_t ttl_class, std::uint32_t purpose,
                                        std::uint64_t after, std::size_t limit) const;

  // Wall-clock times.
  static Presence presence(std::uint64_t number, const GdprRecord& record, std::int64_t from_ns,
                           std::int64_t to_ns);

 private:
  // As the store orders names.
  struct ByKey {
    bool operator()(std::uint32_t a, std::uint32_t b) const;
  };
  using Group = std::set<std::uint32_t, ByKey>;
  Group& group_of(std::uint64_t number) {
    return groups_[gdpr_ttl_class(number) * kGdprPurposes + gdpr_purpose_of(number)];
  }

  const GdprLayout layout_;
  mutable std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::uint64_t erased_ = 0;
  std::vector<GdprRecord> records_;
  std::vector<std::set<std::uint32_t>> users_;
  std::vector<Group> groups_;  // by TTL and purpose
};

}  // namespace edgecase::cli::bench
