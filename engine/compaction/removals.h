// Removes the files that no version names any more, between the slices of the compaction lane:
// removing may mean overwriting, which takes as long as writing. Owned by the lane.
#pragma once

#include <vector>

#include "compaction/work_source.h"

namespace edgecase::engine {

class Removals {
 public:
  explicit Removals(const CompactorContext& context) : context_(context) {}

  // Hands files that nobody can read any more to the remover.
  void collect();
  // Overwrites and unlinks a slice of what waits for it; `beside_merges`: a small one.
  void step(bool beside_merges);
  bool has_waiting() const { return context_.remover.has_waiting(FileRemover::Urgency::Whenever); }

  // Bytes of what has expired go before anything else is done, since a second is soon over.
  void hurry() { is_hurried_ = true; }
  bool is_hurried() const { return is_hurried_; }
  // Files that resisted, of a drive that was away, once a second.
  void retry();

  // The manifest may hold the edit that named these files, though it failed: they stay until a
  // later edit succeeds.
  void keep(TableOutput output) { kept_.push_back(std::move(output)); }
  bool has_kept() const { return !kept_.empty(); }
  // An edit succeeded: they are nobody's.
  void remove_kept();

 private:
  void remove_output(const TableOutput& output);

  const CompactorContext& context_;
  std::vector<TableOutput> kept_;
  bool is_hurried_ = false;
  std::uint32_t slices_since_step_ = 0;
  std::int64_t retry_not_before_ns_ = 0;
};

}  // namespace edgecase::engine
