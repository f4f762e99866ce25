// Range deletes that come one after another and are asked for in between: what is asked is made of
// layers, of which each is more than kLayerFactor times as long as the next, newer one, so that
// one more range does not have all be made anew (as the logarithmic method of Bentley and Saxe,
// 1980, for searching in what grows).
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/range_deletes.h"

namespace edgecase::engine {

// All ranges at one moment. Immutable.
class RangeDeleteLayers {
 public:
  // As of RangeDeletes.
  SequenceNumber covering(ByteView full_key, SequenceNumber visible) const;
  bool touches(ByteView first, ByteView last, SequenceNumber sequence) const;

 private:
  friend class RangeDeleteLog;
  std::vector<std::shared_ptr<const RangeDeletes>> layers_;
};

// Not thread-safe; what layers() answered is.
class RangeDeleteLog {
 public:
  static constexpr std::size_t kLayerFactor = 8;

  void add(RangeDelete range_delete) { list_.push_back(std::move(range_delete)); }
  // Instead of all there were.
  void set(std::vector<RangeDelete> list);
  // As they came.
  const std::vector<RangeDelete>& list() const { return list_; }
  // Null: there are none.
  std::shared_ptr<const RangeDeleteLayers> layers();

 private:
  struct Layer {
    std::size_t begin = 0;  // in the list; it ends where the next one begins
    std::shared_ptr<const RangeDeletes> deletes;
  };

  std::vector<RangeDelete> list_;
  std::vector<Layer> made_;
  std::size_t made_end_ = 0;  // of the list; what is behind it is in no layer
  std::shared_ptr<const RangeDeleteLayers> all_;
};

}  // namespace edgecase::engine
