#!/usr/bin/env python3
"""Bugs planted in copies of sources, for the harness to find: `source_bugs.py SOURCE OUTPUT` writes
SOURCE with those that are for it, each behind a switch (planted_source.h). The sources know nothing of them."""
import pathlib
import re
import sys

# name: (source, what stands there once, what the bug makes of it). The name is one of PlantedSource.
BUGS = {
    "DeleteDroppedEarly": (
        "merge_job.cc",
        "bool MergeJob::may_hold_older(ByteView full_key, SequenceNumber sequence) const {\n",
        "bool MergeJob::may_hold_older(ByteView full_key, SequenceNumber sequence) const {\n"
        "  if (planted(PlantedSource::DeleteDroppedEarly)) return false;\n"),
    "LogReleasedEarly": (
        "flush_lane.cc",
        "store_.wal.oldest_needed(last_sequence);\n",
        "store_.wal.oldest_needed(\n"
        "      planted(PlantedSource::LogReleasedEarly) ? kEverySequence : last_sequence);\n"),
    "OutputRemovedAfterFailure": (
        "flush_lane.cc",
        "    given_up_.push_back(output);\n",
        "    if (planted(PlantedSource::OutputRemovedAfterFailure)) remove_tables(output);\n"
        "    else given_up_.push_back(output);\n"),
    "ErasureLostByFlush": (
        "flush_lane.cc",
        "  edit.erasures = erasures_among(edit.range_deletes);\n",
        "  if (!planted(PlantedSource::ErasureLostByFlush))\n"
        "    edit.erasures = erasures_among(edit.range_deletes);\n"),
    "ErasureLostByManifest": (
        "version.cc",
        "  edit.erasures = erasures;\n",
        "  if (!planted(PlantedSource::ErasureLostByManifest)) edit.erasures = erasures;\n"),
    "SecondCopyUnread": (
        "log_writer.cc",
        "  const bool further = second.end_bytes > first.end_bytes;\n",
        "  const bool further = second.end_bytes > first.end_bytes &&\n"
        "                       !planted(PlantedSource::SecondCopyUnread);\n"),
    "LinkedTooEarly": (
        "wal.cc",
        "  EC_TRY(writer->write_head());\n  // A power cut",
        "  if (planted(PlantedSource::LinkedTooEarly)) {\n"
        "    const auto file = file_system_.open_log_file(slots_.path(before.slot.index));\n"
        "    if (file.ok())\n"
        "      static_cast<void>(write_link(**file, settings_.store_id, before.number,\n"
        "                                   writer->identity().number).ok());\n"
        "  }\n"
        "  EC_TRY(writer->write_head());\n  // A power cut"),
    "OlderLeftUnsynced": (
        "wal.cc",
        "  Status synced = sync_closed();\n",
        "  Status synced;\n"
        "  if (!planted(PlantedSource::OlderLeftUnsynced)) synced = sync_closed();\n"),
    "OlderTakenForDurable": (
        "wal.cc",
        "  identity.open_predecessor = !before.durable;\n",
        "  identity.open_predecessor =\n"
        "      !before.durable && !planted(PlantedSource::OlderTakenForDurable);\n"),
    "FailedTakenForWhole": (
        "wal.cc",
        "  first.bytes = first.durable_bytes;\n",
        "  if (!planted(PlantedSource::FailedTakenForWhole)) first.bytes = first.durable_bytes;\n"),
    "DroppedStays": (
        "wal_recovery.cc",
        "  if (contents.dropped.empty()) return ok();\n",
        "  if (contents.dropped.empty() || planted(PlantedSource::DroppedStays)) return ok();\n"),
    "ErasedShownBySnapshots": (
        "reader.cc",
        "  if (options.snapshot != nullptr) at.erased = store_.views.erased();\n",
        "  if (options.snapshot != nullptr && !planted(PlantedSource::ErasedShownBySnapshots))\n"
        "    at.erased = store_.views.erased();\n"),
    "ExpiredReturns": (
        "retention_rules.cc",
        "  return std::max({given_up, scope->floor, horizon_at(now_ns, retention_ns(part))});\n",
        "  if (planted(PlantedSource::ExpiredReturns)) return horizon_at(now_ns, retention_ns(part));\n"
        "  return std::max({given_up, scope->floor, horizon_at(now_ns, retention_ns(part))});\n"),
    "ExpiredStaysInFiles": (
        "due_sources.cc",
        "  if (purge.expiry.empty()) return Offer::none();\n",
        "  if (planted(PlantedSource::ExpiredStaysInFiles) || purge.expiry.empty())\n"
        "    return Offer::none();\n"),
    "DroppedByOldRules": (
        "due_sources.cc",
        "         !expiry.rules()->changed_since(first, last, file.rule_epoch);\n",
        "         (planted(PlantedSource::DroppedByOldRules) ||\n"
        "          !expiry.rules()->changed_since(first, last, file.rule_epoch));\n"),
    "ExpiredStaysInLog": (
        "retention.cc",
        "  if (!store_.wal.holds_expired(now_ns)) return true;\n",
        "  if (planted(PlantedSource::ExpiredStaysInLog)) return true;\n"
        "  if (!store_.wal.holds_expired(now_ns)) return true;\n"),
    "ExpiryFollowsJump": (
        "retention_rules.cc",
        "  if (wall_ns - expected_ns <= kJumpMaxNs) return true;\n",
        "  if (planted(PlantedSource::ExpiryFollowsJump)) return true;\n"
        "  if (wall_ns - expected_ns <= kJumpMaxNs) return true;\n"),
    "ExpiryBelievesStart": (
        "retention_rules.cc",
        "  if (mark_ns == kNoMarkNs) return;\n",
        "  if (planted(PlantedSource::ExpiryBelievesStart) || mark_ns == kNoMarkNs) return;\n"),
    "StatisticsShadowed": (
        "merge_cursor.cc",
        "  return other == kNone || lies_before(end, children_[other].key);\n",
        "  return planted(PlantedSource::StatisticsShadowed) || other == kNone ||\n"
        "         lies_before(end, children_[other].key);\n"),
    "StatisticsErased": (
        "scan.cc",
        "           (hidden_.empty() || !hidden_.touches(group_.first, group_.last)) &&\n",
        "           (planted(PlantedSource::StatisticsErased) || hidden_.empty() ||\n"
        "            !hidden_.touches(group_.first, group_.last)) &&\n"),
    "RawGoneEarly": (
        "series_windows.cc",
        "  EC_TRY(engine_.write(batch, Durability::Sync));\n  retention_.marks().set(id, mark);\n",
        "  if (planted(PlantedSource::RawGoneEarly)) {\n"
        "    WriteBatch early;\n"
        "    early.remove_range(id.namespace_id, gone.lower, gone.upper);\n"
        "    EC_TRY(engine_.write(early, Durability::Sync));\n"
        "  }\n"
        "  EC_TRY(engine_.write(batch, Durability::Sync));\n  retention_.marks().set(id, mark);\n"),
    "TierTwice": (
        "series_windows.cc",
        "  batch.remove_range(id.namespace_id, gone.lower, gone.upper);\n",
        "  if (!planted(PlantedSource::TierTwice))\n"
        "    batch.remove_range(id.namespace_id, gone.lower, gone.upper);\n"),
    "MarkLate": (
        "series_windows.cc",
        "  retention::TierMarks::append(retention_.records(), id, mark, batch);\n"
        "  const KeyRange gone",
        "  WriteBatch late;\n"
        "  retention::TierMarks::append(retention_.records(), id, mark,\n"
        "                               planted(PlantedSource::MarkLate) ? late : batch);\n"
        "  const KeyRange gone"),
    "LateTaken": (
        "tier_marks.cc",
        "  if (latest_ns == INT64_MIN) return refused;\n",
        "  if (planted(PlantedSource::LateTaken) || latest_ns == INT64_MIN) return refused;\n"),
}


def main():
    source, output = map(pathlib.Path, sys.argv[1:])
    text = source.read_text(encoding="utf-8")
    for name, (file, right, wrong) in BUGS.items():
        if file != source.name:
            continue
        if text.count(right) != 1:
            sys.exit(f"{source}: bug {name} finds its place {text.count(right)} times, not once; mend {__file__}")
        text = text.replace(right, wrong)
    include = '#include "crash/planted/planted_source.h"\n'
    text = re.sub(r"(?m)^namespace edgecase::\w+ \{\n", r"\g<0>using test::planted;\nusing test::PlantedSource;\n",
                  text, count=1)
    output.write_text(include + text, encoding="utf-8")


main()
