// The plan of what happens to one store, step by step, until its drives have been through it: the
// life that the crash harness runs. A plan follows from a seed, or from its text, one step a line,
// which is what a shrunk failure is kept as (regressions/). Times, random numbers and the order of
// background work follow from the plan too: the same plan gives the same run.
//
//   store 17 8192 4       seed, memtable_bytes, WAL segments
//   write 93 1            batch 93, Sync
//   fail 13 2 5 1 2       the 2nd LogSync... see StepKind
//   cut 7 5 0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/memory_file_system.h"

namespace edgecase::test {

// What may fail on a drive.
inline constexpr Operation kFailingOperations[] = {
    Operation::Any,           Operation::CreateFile,  Operation::OpenFile,      Operation::Append,
    Operation::Sync,          Operation::Read,        Operation::LogWrite,      Operation::LogSync,
    Operation::CreateLogFile, Operation::OpenLogFile, Operation::SyncDirectory, Operation::Rename,
    Operation::Remove,        Operation::FileSize};

// In brackets the arguments. `detail` is a seed from which the rest of the step follows; a root is
// 1 for the metadata drive, 2 for the values drive.
enum class StepKind : unsigned char {
  Write,     // [detail, sync] a batch of puts, deletes and range deletes in the engine's places
  Ingest,    // [detail] readings, through the catalog, synced
  Forget,    // [detail] deletes readings of one series
  Read,      // [detail] all of a place, either way, and a few single keys
  Snapshot,  // takes one, to be read later
  Release,   // reads the oldest one and lets it go
  Flush,
  Compact,   // [detail]
  Work,      // [tasks] background work
  Rest,      // [seconds] nobody writes, all background work is done
  Create,    // [place]
  Drop,      // [place]
  Fail,      // [operation, nth, errno, sticky, root or 0]
  Full,      // [root, bytes left]
  ReadOnly,  // [root]
  Unplug,    // the values drive
  Heal,      // all that ails the drives ends; the store must work again without being opened anew
  Stop,      // [nth] the machine stops at that operation; steps until the next crash do nothing
  Reopen,    // closed and opened as on any day
  Cut,       // [seed, CutPolicy, again] power cut; again: another, so many operations after it
  Kill,      // [seed, 0, again] kill -9
  Erase,   // [detail, how] 0: erases a range of keys; 1: and waits until it is gone; 2: waits only
  Stamp,   // [detail, sync] a batch in the place with times
  Retain,  // [detail] sets or clears a rule of retention there
  Pass,    // [half seconds] time passes, and no background work is done
  Clock,   // [setting, seconds] 0: right; 1: not trusted; 2: two hours ahead; 3: behind
};
inline constexpr std::size_t kStepKinds = static_cast<std::size_t>(StepKind::Clock) + 1;

struct Step {
  StepKind kind = StepKind::Read;
  std::array<std::uint64_t, 5> arguments{};
};

inline constexpr std::uint64_t kWalSegmentsFewMax = 6;

struct Plan {
  std::uint64_t seed = 0;
  std::uint64_t memtable_bytes = 8192;
  std::uint64_t wal_segments = 4;  // of 64 KiB; where there are more than a few, of 8 KiB
  std::vector<Step> steps;
};

// Which faults a seed draws from, which steps are frequent: drawn too, for each seed anew.
Plan make_plan(std::uint64_t seed);

// Whether it has a step of that kind.
bool has_step(const Plan& plan, StepKind kind);

std::string to_text(const Plan& plan);
// Nothing when it is no plan's text. Lines that begin with # say something to people.
std::optional<Plan> parse_plan(std::string_view text);

}  // namespace edgecase::test
