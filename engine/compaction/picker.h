// Chooses what to merge next: pure functions of a version. The policy, and why it ends, stands in
// engine/compaction/DESIGN.md.
#pragma once

#include <optional>
#include <set>

#include "compaction/merge_plan.h"

namespace edgecase::engine {

struct Overlap {
  std::uint64_t items = 0;
  std::uint64_t item_bytes = 0;
  std::uint64_t overlapping_bytes = 0;  // of items that share their range with another
  std::size_t depth = 0;                // most items over one key
};

// Survey finds out how much of some runs overlaps. It reads their records alone, in steps, as
// merges do.
class Survey {
 public:
  // `inputs` are runs of groups.
  Survey(TableCache& tables, const std::vector<MergeInput>& inputs) : merge_(tables, inputs) {}

  // Looks at `turns` records; true when all have been seen.
  Result<bool> step(std::uint64_t turns);
  const Overlap& overlap() const { return overlap_; }

 private:
  struct Open {
    Bytes last;
    std::uint64_t bytes = 0;
    bool counted = false;  // as overlapping
  };

  RecordMerge merge_;
  std::vector<Open> open_;  // items that reach to the current key or beyond
  Overlap overlap_;
};

// Level 0 is merged into the trees when it has this many tables of one kind; this many at once.
inline constexpr std::size_t kLevel0TablesMax = 4;
inline constexpr std::size_t kLevel0MergeMax = 32;
// Where they hold so little of each of several namespaces, they are merged entry by entry at once,
// when there are as many: to sink them would make a small file of each table and namespace. Of
// readings a piece of few bytes holds many entries: writing those again costs more than a file.
inline constexpr std::uint64_t kLevel0PieceBytesMin = 512u << 10;
inline constexpr std::uint64_t kLevel0PieceEntriesMin = 16u << 10;
inline constexpr std::size_t kLevel0PiecesMin = 16;
// Runs are looked at together when each is at most this many times as large as all smaller ones
// among them: a large run is not written again for a small one.
inline constexpr std::uint64_t kSimilarSize = 2;
// How many records make a merge worth it, by need.
inline constexpr std::size_t kWindowMinIdle = 2;
inline constexpr std::size_t kWindowMinRecords = 4;  // nothing but records is written
inline constexpr std::size_t kWindowMinScans = 8;    // for scans: what they overlap is written
inline constexpr std::size_t kWindowMinLoad = 16;
inline constexpr std::size_t kWindowMax = 128;
// A tree with as many runs is merged whatever it costs.
inline constexpr std::size_t kRunsMax = 128;
// Single values: the records of all runs are merged when the smaller ones have this share of the
// largest, so that what is superseded is known. Of a store that grows, which may hold it a while,
// those of runs that are alike.
inline constexpr std::size_t kSingleRunsMax = 2;
inline constexpr std::uint64_t kSinglesShare = 16;
inline constexpr std::uint64_t kSinglesShareQuiet = 64;

std::optional<MergePlan> pick_level0(const Version& version, std::size_t tables_max);
// Whether tables of level 0 hold many small pieces.
bool is_in_pieces(const Version& version, const MergePlan& level0);
std::optional<MergePlan> pick_singles(const Version& version, std::size_t runs_min,
                                      std::uint64_t share = kSinglesShare);

// Runs of groups of one namespace and one life class that are alike in size.
struct Window {
  NamespaceId namespace_id = 0;
  std::vector<FileNumber> runs;  // ascending
  std::uint64_t item_bytes = 0;
  std::size_t runs_in_tree = 0;
};
// The largest windows of each namespace.
std::vector<Window> find_windows(const Version& version, std::size_t runs_min);
MergePlan plan_window(const Version& version, const Window& window, MergeMode mode);

// What relocations may take while writes come.
struct WindowLimits {
  bool idle = false;               // or they do not
  std::uint64_t budget_bytes = 0;  // that may be relocated by need
  std::uint64_t scan_runs = 0;     // that scans had to open since the last relocation for them
};
enum class WindowUse : unsigned char {
  Nothing,
  Wait,  // until there is quiet, budget, or scans that are worth it
  Sink,
  Relocate,
  RelocateForScans,
};
WindowUse use_of(const Window& window, const Overlap& overlap, const WindowLimits& limits);
// How many runs scans have to have opened for it.
std::uint64_t scan_runs_for(const Overlap& overlap);
// Whether a survey may find what is done at once, when this is the least that it can find.
bool may_be_used(const Window& window, const Overlap& least, const WindowLimits& limits);

// Moves what lives in the emptiest value files, so that they come free: when value files hold more
// than `garbage_share` of garbage in all, and a file itself `file_share`.
struct EvacuationLimits {
  double garbage_share = 0.15;
  double file_share = 0.3;
  const std::set<FileNumber>* among = nullptr;  // null: all
};
// In quiet, and at the end of compact().
inline constexpr EvacuationLimits kQuietEvacuation{0.08, 0.1, nullptr};
// At once: this part of what value files hold, within bounds. What moves is there twice meanwhile.
inline constexpr std::uint64_t kMovedPart = 32;
inline constexpr std::uint64_t kMovedBytesMin = 4u << 20;
inline constexpr std::uint64_t kMovedBytesMax = 64u << 20;
std::optional<MergePlan> pick_evacuation(const Version& version, const EvacuationLimits& limits);

// Moves what lives in some of these files. Nothing when nothing points into any of them.
std::optional<MergePlan> pick_emptying(const Version& version, const std::set<FileNumber>& files);

// Takes out of these tables of groups, of one namespace, what newer runs supersede. Those of one
// run stay in it, those of several become one.
MergePlan plan_cleaning(const Version& version, NamespaceId id, const std::set<FileNumber>& chosen);

// Whether what is dead in a run is freed range by range, while writes come.
bool is_merged_by_range(const Tree& tree, const Run& run);

// Merges all runs of groups of the namespace and the life class of `into`, one of them, between two
// keys into it: from the first of its tables behind `from`, in a circle, on, whole tables of it,
// until these have about `slice_bytes`.
MergePlan plan_range(const Version& version, const Run& into, ByteView from,
                     std::uint64_t slice_bytes);

// Everything of a namespace and a life class between two full keys into one run; single values go
// with class 0. Nothing when that would change nothing.
std::optional<MergePlan> plan_everything(const Version& version, NamespaceId id, LifeClass life,
                                         ByteView lower, ByteView upper);

}  // namespace edgecase::engine
