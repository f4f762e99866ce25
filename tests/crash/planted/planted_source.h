// The switch of the bugs that source_bugs.py plants in copies of sources.
#pragma once

namespace edgecase::test {

enum class PlantedSource : unsigned char {
  None,
  DeleteDroppedEarly,         // a merge drops a delete while older entries lie elsewhere
  LogReleasedEarly,           // segments go that hold more than what was flushed
  ErasureLostByFlush,         // erased ranges become ordinary range deletes in tables
  ErasureLostByManifest,      // a new manifest does not name what is pending
  SecondCopyUnread,           // a manifest's second copy does not count when it reaches further
  LinkedTooEarly,             // a segment of the log names the next one before that is durable
  OlderLeftUnsynced,          // a Sync makes the current segment of the log durable alone
  OlderTakenForDurable,       // a segment says that all before it is durable when it is not
  FailedTakenForWhole,        // a segment whose sync failed counts with what that was to bring
  DroppedStays,               // segments that were dropped are still some when their slots are used
  ErasedShownBySnapshots,     // a snapshot shows what was erased after it
  ExpiredReturns,             // a longer rule brings back what a shorter one had let expire
  ExpiredStaysInFiles,        // nobody looks for files that have expired
  DroppedByOldRules,          // a file goes when it would have, had no rule changed since
  ExpiredStaysInLog,          // nobody overwrites records of the log that have expired
  ExpiryFollowsJump,          // a clock that was set far ahead is believed at once
  ExpiryBelievesStart,        // one that is far ahead at a start is
  OutputRemovedAfterFailure,  // tables go that a failed edit of the manifest may have named
  StatisticsShadowed,         // statistics of a group answer, of which an overwrite hides some
  StatisticsErased,           // the same of one of which something was erased
  RawGoneEarly,               // readings go before their windows are durable
  TierTwice,                  // readings stay beside their windows
  MarkLate,                   // a mark follows its windows, and is not of one batch with them
  LateTaken,                  // a reading is taken of a time that is windows by then
};

// One at a time, for the whole process.
void plant(PlantedSource bug);
bool planted(PlantedSource bug);

}  // namespace edgecase::test
