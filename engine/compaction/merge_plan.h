// The plan of one merge. Plain data; made by the picker or by hand in tests.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "metadata/umeta_block.h"
#include "table/bucket_files.h"
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

}  // namespace edgecase::engine
