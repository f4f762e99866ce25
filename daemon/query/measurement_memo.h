// Remembers a measurement's series that somebody may read, for questions that ask for them again:
// which series have which field, and the values of tags that were compared with a text.
// An entry is of a certain list of readable series: another list, of somebody who may read less or
// after a series came or went, is another entry. Bounded: kMeasurementsMax entries, kBytesMax all
// together, the one that was asked for longest ago goes first. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/mutex.h"

namespace edgecase::query {

// The hash of a tag's value; one that is missing is an empty text.
std::uint32_t tag_hash(std::string_view value);

class Measurement {
 public:
  // What it was found of.
  struct Of {
    std::string namespace_name, name;
    std::uint64_t generation = 0;               // of the catalog
    std::uint64_t series = 0, series_hash = 0;  // that were readable, whatever their order

    friend bool operator==(const Of&, const Of&) = default;
  };
  static Of of(const catalog::Catalog& catalog, const std::string& namespace_name,
               const std::string& name, std::span<const catalog::SeriesRow> readable);

  explicit Measurement(Of of) : of_(std::move(of)) {}

  // Until it is kept.
  std::map<std::string, std::vector<catalog::SeriesRow>> fields;
  std::set<std::string> tags;  // keys

  // tag_hash() of the tag of each series of the field; null: nobody compared it yet.
  using Hashes = std::shared_ptr<const std::vector<std::uint32_t>>;
  Hashes hashes(const std::string& field, const std::string& tag) const EC_EXCLUDES(mutex_);
  // Keeps them, for kHashedMax pairs of a field and a tag at most: one more clears the others.
  void keep_hashes(const std::string& field, const std::string& tag, Hashes hashes) const
      EC_EXCLUDES(mutex_);

 private:
  friend class MeasurementMemo;
  static constexpr std::size_t kHashedMax = 8;

  const Of of_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<std::string, std::string>, Hashes> hashes_ EC_GUARDED_BY(mutex_);
};

class MeasurementMemo {
 public:
  static constexpr std::size_t kMeasurementsMax = 16;
  static constexpr std::size_t kBytesMax = 1u << 20;

  // Null: it is not known.
  std::shared_ptr<const Measurement> find(const Measurement::Of& of) EC_EXCLUDES(mutex_);
  void keep(std::shared_ptr<const Measurement> measurement) EC_EXCLUDES(mutex_);

 private:
  static std::size_t bytes_of(const Measurement& measurement);

  Mutex mutex_;
  // Asked for last in front.
  std::list<std::shared_ptr<const Measurement>> kept_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::query
