// LiveCursor yields those entries of a memtable that are worth being flushed. Forward only.
#pragma once

#include <memory>
#include <utility>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "version/version_set.h"

namespace edgecase::engine {

class LiveCursor final : public EntryCursor {
 public:
  // `deletes` are those of the memtable, null for none. `dropped` outlives it.
  LiveCursor(std::unique_ptr<EntryCursor> all, const DroppedIds& dropped,
             std::shared_ptr<const RangeDeleteLayers> deletes)
      : all_(std::move(all)), dropped_(dropped), deletes_(std::move(deletes)) {
    settle();
  }

  bool valid() const override { return all_->valid(); }
  const Status& status() const override { return all_->status(); }
  ByteView full_key() const override { return all_->full_key(); }
  Status load() override { return all_->load(); }
  SequenceNumber sequence() const override { return all_->sequence(); }
  EntryKind kind() const override { return all_->kind(); }
  ByteView value() const override { return all_->value(); }
  // A run is of one series, and so of one namespace: that of the current entry, which is live.
  SeriesRun take_run() override {
    if (deletes_ != nullptr) return {};
    const SeriesRun run = all_->take_run();
    settle();
    return run;
  }
  void next() override {
    all_->next();
    settle();
  }
  void seek(ByteView full_key) override {
    all_->seek(full_key);
    settle();
  }

 private:
  void settle() {
    while (all_->valid()) {
      const NamespaceId id = namespace_of(all_->full_key());
      if (dropped_.contains(id)) {
        // All of it lies together.
        all_->seek(make_full_key(id + 1, {}));
      } else if (is_deleted()) {
        all_->next();
      } else {
        return;
      }
    }
  }
  bool is_deleted() {
    return deletes_ != nullptr && all_->load().ok() &&
           deletes_->covering(all_->full_key(), UINT64_MAX) > all_->sequence();
  }

  const std::unique_ptr<EntryCursor> all_;
  const DroppedIds& dropped_;
  const std::shared_ptr<const RangeDeleteLayers> deletes_;
};

}  // namespace edgecase::engine
