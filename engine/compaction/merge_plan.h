// The input of a merge: its plan (which tables, how, what is dropped), made by hand in tests, else
// by what chooses here (picker.cc); and RecordMerge, the walk over the items of its runs in key
// order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "metadata/umeta_block.h"
#include "table/bucket_files.h"
#include "table/record_cursor.h"
#include "table/table_cache.h"
#include "version/version.h"

namespace edgecase::engine {

// A metadata table is closed when its items take this many bytes in the value layer, or at this
// many records; a value table at this size.
inline constexpr std::uint64_t kTableItemBytesMax = 32u << 20;
inline constexpr std::uint64_t kTableItemsMax = 1u << 16;
inline constexpr std::uint64_t kMergedValueFileBytesMax = 32u << 20;

enum class MergeMode : unsigned char {
  // Step 1 of delayed value compaction: records change their table, no value is read. What overlaps
  // nothing comes into one run, the rest stays side by side in others.
  Sink,
  // Step 2: items that overlap are read, merged entry by entry and written again; the others are
  // carried by reference. One run comes out.
  Relocate,
  // The same, of items that overlap nothing among the inputs too, and what runs that are not merged
  // supersede is left out. An item that stands alone and of which little is dead is carried by
  // reference.
  Clean,
};

// Tables of one run, in key order: all of it or a part.
using MergeInput = std::vector<TablePointer>;

struct MergePlan {
  MergeMode mode = MergeMode::Sink;
  std::uint8_t output_level = 1;
  // The run that the output becomes part of: that of the only input, all of it or a part. 0: a new
  // one.
  FileNumber output_run = 0;
  // Runs of groups and runs of single values. From level 1 on of one namespace.
  std::vector<MergeInput> groups;
  std::vector<MergeInput> singles;
  // Not Sink: items in these value files move, so that the files come free.
  std::set<FileNumber> evacuated;
  // Relocate, of groups alone: the merge ends where about so many bytes were written, and what lies
  // behind stays in runs as it was: what it frees is free before the next slice begins. 0: all.
  std::uint64_t slice_bytes = 0;
  // The same: nothing is merged but what lies from `lower` on and before `upper`, full keys; empty:
  // unbounded. What the tables hold besides stays in its runs.
  Bytes lower;
  Bytes upper;
  // Metadata tables of what was merged are closed when their items take as many bytes.
  std::uint64_t table_item_bytes = kTableItemBytesMax;

  // What set_surroundings() fills in: tables that are not merged and may share keys with these;
  std::vector<TablePointer> others;
  // runs of groups, merged here or not, that may hold something newer than the single values, or,
  // to Clean, than the groups;
  std::vector<MergeInput> newer_groups;
  // and, if nothing of them comes between the sequences of the inputs, the one sequence that
  // entries of rewritten groups may share (saving their sequence column).
  std::optional<SequenceNumber> one_sequence;
  // Where tables begin that stay in the run that the output becomes part of, ascending.
  std::vector<Bytes> barriers;
  // What holds for the output (TableMetadata): the least of the inputs. Whoever starts a Relocate,
  // which asks the rule of every item, may set it to what the rule knows.
  SequenceNumber purged_sequence = 0;
  RuleEpoch rule_epoch = 0;
  // The life class of the groups; 0 where they are of several (TableMetadata).
  LifeClass life = 0;
  // When what lies in evacuated files expires.
  std::map<FileNumber, ItemExpiry> evacuated_expiry;

  void set_surroundings(const Version& version);
  bool has_range() const { return !lower.empty() || !upper.empty(); }
  bool empty() const { return groups.empty() && singles.empty(); }
  std::uint64_t item_bytes() const;
  // Value tables that come out are closed at this size: a few of them make up the inputs.
  std::uint64_t value_file_bytes() const;
  // How large metadata tables of what a slice leaves may be, so that the next slice writes little
  // of it again.
  std::uint64_t rest_table_bytes() const;
};

// Decides what is dead for other reasons than a newer entry: a range delete, a dropped namespace,
// expiry. Asked during merges, on the compaction lane.
class DropRule {
 public:
  enum class Verdict : unsigned char {
    Keep,     // nothing of the item is dead
    Drop,     // all of it is
    Inspect,  // some entries may be: relocation opens it and asks for each
    Rewrite,  // entries lie in the wrong bucket: relocation writes it anew
  };
  virtual ~DropRule() = default;
  // Between the two it may answer by what held when the step began, and keep that.
  virtual void begin_step() {}
  virtual void end_step() {}
  virtual Verdict judge_item(const UMetaRecord& record) = 0;
  virtual bool drops_entry(ByteView full_key, SequenceNumber sequence) = 0;
};

struct MergeCounters {
  std::uint64_t carried_items = 0;    // by reference
  std::uint64_t rewritten_items = 0;  // read, merged, written anew
  std::uint64_t copied_items = 0;     // moved byte for byte
  std::uint64_t dropped_items = 0;    // large values that were superseded; what a rule dropped
  std::uint64_t seen_entries = 0;     // of rewritten items
  std::uint64_t superseded_entries = 0;
  std::uint64_t dropped_deletes = 0;
  std::uint64_t runs = 0;  // that came out
};

// Cursors over the items of many runs, the one with the smallest key at the top. Of equal keys an
// item that is not open comes first, so that all that hold a key are open before the key's turn.
// Owned by one thread.
class RecordMerge {
 public:
  // Takes of each input what has keys at or after `from`: an item that begins before it is opened
  // and stands on the first of these.
  RecordMerge(TableCache& tables, const std::vector<MergeInput>& inputs, ByteView from = {});

  // False at the end, and after an error: look at status().
  bool valid() const { return status_.ok() && !heap_.empty() && top().valid(); }
  const Status& status() const { return status_; }

  // How many items were opened at the beginning.
  std::size_t open_items() const { return open_items_; }

  RecordCursor& top() { return cursors_[heap_.front()]; }
  const RecordCursor& top() const { return cursors_[heap_.front()]; }
  std::size_t top_input() const { return heap_.front(); }
  // The smallest key besides the top's; false when there is no other.
  bool second_key(ByteView& key) const;
  // Call after the top moved, was opened or came to its end.
  void settle();

  // The inputs that stand on the top's key, the top's first. Valid until the next call. After each
  // of them has moved: settle_equals().
  const std::vector<std::size_t>& equals();
  RecordCursor& cursor(std::size_t input) { return cursors_[input]; }
  void settle_equals();

 private:
  // What is asked of a cursor at each comparison, as it stood when it was noted: a namespace and
  // twenty bytes of a key decide nearly always.
  struct Standing {
    std::array<std::uint64_t, 3> words{};  // big-endian, zeros behind the key
    std::size_t key_bytes = 0;
    bool valid = false;
    bool is_open = false;
  };

  void skip_before(RecordCursor& cursor, ByteView from);
  bool comes_before(std::size_t a, std::size_t b) const;
  bool is_equal(std::size_t a, std::size_t b) const;
  void sift_down(std::size_t at);
  void note(std::size_t input);

  std::vector<RecordCursor> cursors_;
  std::vector<Standing> standings_;  // of cursors_
  std::vector<std::size_t> heap_;    // of all cursors; those at their end come last
  std::vector<std::size_t> places_;  // in heap_, of equals_
  std::vector<std::size_t> equals_;
  std::size_t open_items_ = 0;
  Status status_;
};

// NewerRuns tells whether runs that a merge leaves alone supersede an entry of it. Entries are
// asked for in key order. A run with few entries where the merge works is walked along: between two
// of them nothing is to be asked. Any other is asked through the filter of its items, key by key.
// Owned by one thread.
class NewerRuns {
 public:
  // All by their filters.
  NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs);
  // For all entries of `merged`, which are groups.
  NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs,
            const std::vector<MergeInput>& merged);

  // Whether a newer run supersedes a key at or after the one before.
  Result<bool> supersede(ByteView full_key, SequenceNumber sequence);

 private:
  Result<bool> walked_supersede(ByteView full_key, SequenceNumber sequence);

  std::vector<RecordCursor> asked_;
  std::optional<RecordMerge> walked_;
};

// Chooses what to merge next: pure functions of a version. The policy, and why it ends, stands in
// engine/compaction/DESIGN.md.

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
