#include "base/range_deletes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <span>

namespace edgecase::engine {

RangeDelete make_range_delete(NamespaceId id, ByteView lower, ByteView upper,
                              SequenceNumber sequence) {
  RangeDelete made{make_full_key(id, lower), {}, sequence, false};
  if (!upper.empty()) {
    made.upper = make_full_key(id, upper);
  } else if (id != UINT32_MAX) {
    made.upper = make_full_key(id + 1, {});
  } else {
    made.upper = Bytes(kRangeBoundMaxBytes, '\xff');
  }
  return made;
}

std::vector<RangeDelete> erasures_among(std::span<const RangeDelete> deletes) {
  std::vector<RangeDelete> erasures;
  std::copy_if(deletes.begin(), deletes.end(), std::back_inserter(erasures),
               [](const RangeDelete& each) { return each.erases; });
  return erasures;
}

std::span<const RangeDelete> meeting(std::span<const RangeDelete> deletes, ByteView first,
                                     ByteView last) {
  const auto begin =
      std::partition_point(deletes.begin(), deletes.end(),
                           [&](const RangeDelete& each) { return ByteView(each.upper) <= first; });
  const auto end = std::partition_point(
      begin, deletes.end(), [&](const RangeDelete& each) { return ByteView(each.lower) <= last; });
  return {begin, end};
}

// A sweep over all bounds: between two of them the same deletes cover.
RangeDeletes::RangeDeletes(std::span<const RangeDelete> deletes) {
  struct Bound {
    ByteView key;
    SequenceNumber sequence;
    bool begins;
  };
  std::vector<Bound> bounds;
  bounds.reserve(2 * deletes.size());
  for (const RangeDelete& each : deletes) {
    if (each.lower >= each.upper) continue;
    bounds.push_back({each.lower, each.sequence, true});
    bounds.push_back({each.upper, each.sequence, false});
  }
  std::sort(bounds.begin(), bounds.end(),
            [](const Bound& a, const Bound& b) { return a.key < b.key; });
  std::multiset<SequenceNumber, std::greater<>> covering;
  for (std::size_t i = 0; i < bounds.size();) {
    const ByteView key = bounds[i].key;
    for (; i < bounds.size() && bounds[i].key == key; ++i) {
      if (bounds[i].begins) {
        covering.insert(bounds[i].sequence);
      } else {
        covering.erase(covering.find(bounds[i].sequence));
      }
    }
    if (covering.empty()) continue;
    Fragment fragment{Bytes(key), Bytes(bounds[i].key), {covering.begin(), covering.end()}};
    // A bound of a delete that another hides cuts nothing.
    if (!fragments_.empty() && fragments_.back().upper == fragment.lower &&
        fragments_.back().sequences == fragment.sequences) {
      fragments_.back().upper = std::move(fragment.upper);
    } else {
      fragments_.push_back(std::move(fragment));
    }
  }
}

// The first fragment that ends behind the key.
std::vector<RangeDeletes::Fragment>::const_iterator RangeDeletes::first_behind(
    ByteView full_key) const {
  return std::partition_point(fragments_.begin(), fragments_.end(), [&](const Fragment& fragment) {
    return ByteView(fragment.upper) <= full_key;
  });
}

SequenceNumber RangeDeletes::covering(ByteView full_key, SequenceNumber visible) const {
  const auto found = first_behind(full_key);
  return covering_of(static_cast<std::size_t>(found - fragments_.begin()), full_key, visible);
}

SequenceNumber RangeDeletes::covering(ByteView full_key, SequenceNumber visible,
                                      std::size_t& hint) const {
  const std::size_t size = fragments_.size();
  const auto ends_before = [&](std::size_t at) {
    return ByteView(fragments_[at].upper) <= full_key;
  };
  const auto is_first_behind = [&](std::size_t at) {
    return (at == 0 || ends_before(at - 1)) && (at == size || !ends_before(at));
  };
  if (hint < size && ends_before(hint)) ++hint;
  if (hint > size || !is_first_behind(hint))
    hint = static_cast<std::size_t>(first_behind(full_key) - fragments_.begin());
  return covering_of(hint, full_key, visible);
}

// `fragment` is the first that ends behind the key.
SequenceNumber RangeDeletes::covering_of(std::size_t fragment, ByteView full_key,
                                         SequenceNumber visible) const {
  if (fragment == fragments_.size() || full_key < ByteView(fragments_[fragment].lower)) return 0;
  for (const SequenceNumber sequence : fragments_[fragment].sequences) {
    if (sequence <= visible) return sequence;
  }
  return 0;
}

bool RangeDeletes::touches(ByteView first, ByteView last, SequenceNumber sequence) const {
  for (auto each = first_behind(first); each != fragments_.end(); ++each) {
    if (last < ByteView(each->lower)) return false;
    if (each->sequences.front() > sequence) return true;
  }
  return false;
}

bool RangeDeletes::covers(ByteView first, ByteView last, SequenceNumber sequence) const {
  auto each = first_behind(first);
  if (each == fragments_.end() || first < ByteView(each->lower)) return false;
  while (each->sequences.front() > sequence) {
    if (last < ByteView(each->upper)) return true;
    const auto next = each + 1;
    if (next == fragments_.end() || next->lower != each->upper) return false;
    each = next;
  }
  return false;
}

std::vector<RangeDelete> RangeDeletes::newest() const {
  std::vector<RangeDelete> all;
  for (const Fragment& each : fragments_) {
    const SequenceNumber sequence = each.sequences.front();
    if (!all.empty() && all.back().upper == each.lower && all.back().sequence == sequence) {
      all.back().upper = each.upper;
    } else {
      all.push_back({each.lower, each.upper, sequence, false});
    }
  }
  return all;
}

SequenceNumber RangeDeleteLayers::covering(ByteView full_key, SequenceNumber visible) const {
  SequenceNumber newest = 0;
  for (const auto& layer : layers_) newest = std::max(newest, layer->covering(full_key, visible));
  return newest;
}

bool RangeDeleteLayers::touches(ByteView first, ByteView last, SequenceNumber sequence) const {
  return std::any_of(layers_.begin(), layers_.end(),
                     [&](const auto& layer) { return layer->touches(first, last, sequence); });
}

void RangeDeleteLog::set(std::vector<RangeDelete> list) {
  list_ = std::move(list);
  made_.clear();
  made_end_ = 0;
  all_ = nullptr;
}

std::shared_ptr<const RangeDeleteLayers> RangeDeleteLog::layers() {
  if (made_end_ == list_.size()) return all_;
  std::size_t begin = made_end_;
  const auto is_short = [&](const Layer& layer) {
    return begin - layer.begin <= kLayerFactor * (list_.size() - begin);
  };
  while (!made_.empty() && is_short(made_.back())) {
    begin = made_.back().begin;
    made_.pop_back();
  }
  made_.push_back({begin, std::make_shared<const RangeDeletes>(std::span(list_).subspan(begin))});
  made_end_ = list_.size();
  auto all = std::make_shared<RangeDeleteLayers>();
  for (const Layer& layer : made_) all->layers_.push_back(layer.deletes);
  all_ = std::move(all);
  return all_;
}

}  // namespace edgecase::engine
