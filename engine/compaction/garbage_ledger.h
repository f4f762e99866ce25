// GarbageLedger keeps, for each table of groups, how much of it newer runs supersede. A sample
// holds for a while; then it is carried on by the rate at which tables were seen to die. Its clock
// is the bytes that flushes wrote: a table that nobody overwrites does not die. Owned by one
// thread.
#pragma once

#include <map>

#include "version/version.h"

namespace edgecase::engine {

class GarbageLedger {
 public:
  // The tables of a version; those of others are forgotten. Its clock stands at `written_bytes`.
  void follow(const Version& version, std::uint64_t written_bytes);
  // `dead_share` of a table, between 0 and 1, was dead just now.
  void note(FileNumber table, double dead_share);

  // `part` is a new table of a part of `table`, and as dead.
  void pass_on(FileNumber table, FileNumber part, std::uint64_t item_bytes);

  // Whether something was written since it was noted, or it never was.
  bool is_stale(FileNumber table) const;
  // Bytes written since; all of them if it was never noted.
  std::uint64_t age_bytes(FileNumber table) const;
  // As of now.
  double dead_share(FileNumber table) const;
  // Dead bytes of all tables.
  std::uint64_t dead_bytes() const;
  // How much more dies with each byte that flushes write.
  double dying_share() const;

 private:
  struct Note {
    std::uint64_t item_bytes = 0;
    bool noted = false;
    double live_share = 1;
    std::uint64_t at_bytes = 0;  // when it was noted, or first seen
  };

  double live_share(const Note& note) const;

  std::map<FileNumber, Note> notes_;
  std::uint64_t written_bytes_ = 0;
  // Learned from two notes of one table: the sum of what the logarithm of the share that lives
  // lost, and of the bytes that were written meanwhile. Old sums fade.
  double lost_ = 0;
  double lost_over_bytes_ = 0;
};

}  // namespace edgecase::engine
