// ReadView: the memtables and tables that a read looks at. Immutable and shared; it keeps its
// memtables in memory, and the tables of its version on the drives.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "buffer/memtable.h"
#include "edgecase/engine.h"
#include "version/version.h"

namespace edgecase::engine {

// Invariant: every entry in an immutable memtable or a table was visible to all before the view
// came to be; only the active memtable holds entries that a read must not see yet.
struct ReadView {
  std::shared_ptr<Memtable> active;
  std::vector<std::shared_ptr<Memtable>> immutables;  // newest first
  std::shared_ptr<const Version> version;
};

struct VisibleView {
  std::shared_ptr<const ReadView> view;
  SequenceNumber visible = 0;
  // What was erased since, whatever is visible: null for none.
  std::shared_ptr<const RangeDeleteLayers> erased = nullptr;
  // Scans and counts show nothing but what is newer.
  SequenceNumber newer_than = 0;
};

class EngineSnapshot final : public Snapshot {
 public:
  // `revocations`: as counted before `at` was looked at.
  EngineSnapshot(std::shared_ptr<const void> generation, VisibleView at, std::uint64_t revocations)
      : generation_(std::move(generation)), at_(std::move(at)), revocations_(revocations) {}
  const VisibleView& at() const { return at_; }
  std::uint64_t revocations() const override { return revocations_; }
  CommitPosition committed() const override { return at_.visible; }
  bool keeps_memory() const override {
    const ReadView& view = *at_.view;
    return view.active->is_written_out() ||
           std::any_of(view.immutables.begin(), view.immutables.end(),
                       [](const auto& memtable) { return memtable->is_written_out(); });
  }

 private:
  std::shared_ptr<const void> generation_;
  VisibleView at_;
  const std::uint64_t revocations_;
};

}  // namespace edgecase::engine
