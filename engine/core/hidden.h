// HiddenRanges: the range deletes of a view, as reads ask whether one hides an entry. It costs
// nothing where there are none.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/read_view.h"

namespace edgecase::engine {

// For one entry that was found.
inline bool is_hidden(const VisibleView& at, ByteView full_key, SequenceNumber sequence) {
  const auto hides = [&](const auto& deletes) {
    return deletes.covering(full_key, at.visible) > sequence;
  };
  if (at.erased && at.erased->covering(full_key, UINT64_MAX) > sequence) return true;
  const ReadView& view = *at.view;
  if (const auto deletes = view.active->range_deletes(); deletes && hides(*deletes)) return true;
  for (const auto& memtable : view.immutables) {
    if (const auto deletes = memtable->range_deletes(); deletes && hides(*deletes)) return true;
  }
  return view.version->range_deletes && hides(*view.version->range_deletes);
}

// For many: holds what the view has of them.
class HiddenRanges {
 public:
  explicit HiddenRanges(const VisibleView& at) : visible_(at.visible), erased_(at.erased) {
    take(at.view->active->range_deletes());
    for (const auto& memtable : at.view->immutables) take(memtable->range_deletes());
    flushed_ = at.view->version->range_deletes;
  }

  bool empty() const { return recent_.empty() && flushed_ == nullptr && erased_ == nullptr; }
  bool hides(ByteView full_key, SequenceNumber sequence) const {
    if (erased_ != nullptr && erased_->covering(full_key, UINT64_MAX) > sequence) return true;
    if (flushed_ != nullptr && flushed_->covering(full_key, visible_) > sequence) return true;
    return std::any_of(recent_.begin(), recent_.end(), [&](const auto& deletes) {
      return deletes->covering(full_key, visible_) > sequence;
    });
  }
  // Whether some key of [first, last] may be hidden.
  bool touches(ByteView first, ByteView last) const {
    if (erased_ != nullptr && erased_->touches(first, last, 0)) return true;
    if (flushed_ != nullptr && flushed_->touches(first, last, 0)) return true;
    return std::any_of(recent_.begin(), recent_.end(),
                       [&](const auto& deletes) { return deletes->touches(first, last, 0); });
  }

 private:
  void take(std::shared_ptr<const RangeDeleteLayers> deletes) {
    if (deletes != nullptr) recent_.push_back(std::move(deletes));
  }

  SequenceNumber visible_;
  std::shared_ptr<const RangeDeleteLayers> erased_;
  std::vector<std::shared_ptr<const RangeDeleteLayers>> recent_;  // of memtables
  std::shared_ptr<const RangeDeletes> flushed_;
};

}  // namespace edgecase::engine
