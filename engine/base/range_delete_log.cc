#include "base/range_delete_log.h"

#include <algorithm>
#include <span>

namespace edgecase::engine {

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
