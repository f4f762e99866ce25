#include "table/series_gathering.h"

#include <utility>

namespace edgecase::engine {

SeriesGathering::SeriesGathering(std::size_t group_bytes, std::size_t entries_max,
                                 std::int64_t span_ns, bool keeps_sequences)
    : group_bytes_(group_bytes),
      entries_max_(entries_max),
      span_ns_(span_ns),
      keeps_sequences_(keeps_sequences) {
  main_.columns = new_columns();
}

std::unique_ptr<SeriesColumns> SeriesGathering::new_columns() const {
  auto columns = std::make_unique<SeriesColumns>(group_bytes_, entries_max_, span_ns_);
  columns->set_scope_bytes(scope_bytes_);
  if (keeps_sequences_) columns->keep_sequences();
  return columns;
}

void SeriesGathering::begin(std::size_t scope_bytes) {
  scope_bytes_ = scope_bytes;
  scope_.clear();
  main_.columns->set_scope_bytes(scope_bytes);
  apart_.clear();
}

bool SeriesGathering::leaves_scope(ByteView full_key_begin) const {
  return full_key_begin.substr(0, kNamespacePrefixBytes + scope_bytes_) != scope_;
}

void SeriesGathering::enter_scope(ByteView full_key_begin) {
  scope_.assign(full_key_begin.substr(0, kNamespacePrefixBytes + scope_bytes_));
  for (auto& [life, group] : apart_) group.is_kept = false;
}

SeriesGathering::Group& SeriesGathering::group_for(const ItemExpiry& item) {
  const LifeClass life = life_class_of(item.bucket);
  const auto apart = apart_.find(life);
  if (apart != apart_.end() && apart->second.is_kept) return apart->second;
  // A group that is half full is worth its record.
  if (main_.columns->empty() || main_.expiry.bucket == item.bucket ||
      main_.columns->raw_bytes() >= group_bytes_ / 2)
    return main_;
  const LifeClass open = life_class_of(main_.expiry.bucket);
  if (open == life) return main_;
  if (life < open) return keep(life);
  Group& sooner = keep(open);
  std::swap(sooner.columns, main_.columns);
  std::swap(sooner.expiry, main_.expiry);
  return main_;
}

SeriesGathering::Group& SeriesGathering::keep(LifeClass life) {
  Group& group = apart_[life];
  if (group.columns == nullptr) {
    group.columns = new_columns();
    group.life = life;
  }
  group.is_kept = true;
  return group;
}

}  // namespace edgecase::engine
