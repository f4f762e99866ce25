#include "compaction/garbage_ledger.h"

#include <algorithm>
#include <cmath>

namespace edgecase::engine {
namespace {

// The part of what was learned before that stays with each pair of notes: some twenty pairs count.
constexpr double kFade = 0.95;
// A share is no surer than that: its logarithm must stay finite.
constexpr double kLiveShareMin = 0.02;

}  // namespace

void GarbageLedger::follow(const Version& version, std::uint64_t written_bytes) {
  written_bytes_ = written_bytes;
  std::map<FileNumber, Note> kept;
  for (const TablePointer& table : version.tables) {
    if (table->kind != TableKind::Groups || table->level == 0) continue;
    const auto known = notes_.find(table->number);
    kept.emplace(table->number, known != notes_.end()
                                    ? known->second
                                    : Note{table->item_bytes(), false, 1, written_bytes});
  }
  notes_ = std::move(kept);
}

void GarbageLedger::note(FileNumber table, double dead_share) {
  const auto found = notes_.find(table);
  if (found == notes_.end()) return;
  Note& note = found->second;
  const double live = std::max(kLiveShareMin, 1 - dead_share);
  if (note.noted && written_bytes_ > note.at_bytes) {
    // Samples err to both sides: what seems to have come to life counts, too.
    lost_ = kFade * lost_ + std::log(note.live_share / live);
    lost_over_bytes_ =
        kFade * lost_over_bytes_ + static_cast<double>(written_bytes_ - note.at_bytes);
  }
  note.noted = true;
  note.live_share = live;
  note.at_bytes = written_bytes_;
}

void GarbageLedger::pass_on(FileNumber table, FileNumber part, std::uint64_t item_bytes) {
  const auto found = notes_.find(table);
  if (found == notes_.end()) return;
  notes_[part] = found->second;
  notes_[part].item_bytes = item_bytes;
}

double GarbageLedger::live_share(const Note& note) const {
  if (lost_ <= 0) return note.live_share;
  const double passed = static_cast<double>(written_bytes_ - note.at_bytes);
  return note.live_share * std::exp(-lost_ / lost_over_bytes_ * passed);
}

bool GarbageLedger::is_stale(FileNumber table) const {
  const auto found = notes_.find(table);
  return found != notes_.end() && (!found->second.noted || found->second.at_bytes < written_bytes_);
}

std::uint64_t GarbageLedger::age_bytes(FileNumber table) const {
  const auto found = notes_.find(table);
  if (found == notes_.end()) return 0;
  return found->second.noted ? written_bytes_ - found->second.at_bytes : written_bytes_;
}

double GarbageLedger::dead_share(FileNumber table) const {
  const auto found = notes_.find(table);
  return found == notes_.end() ? 0 : 1 - live_share(found->second);
}

double GarbageLedger::dying_share() const {
  if (lost_ <= 0) return 0;
  double live_bytes = 0;
  for (const auto& [number, note] : notes_)
    live_bytes += live_share(note) * static_cast<double>(note.item_bytes);
  return std::min(1.0, live_bytes * lost_ / lost_over_bytes_);
}

std::uint64_t GarbageLedger::dead_bytes() const {
  double bytes = 0;
  for (const auto& [number, note] : notes_)
    bytes += (1 - live_share(note)) * static_cast<double>(note.item_bytes);
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace edgecase::engine
