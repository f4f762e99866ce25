// Copies that readings leave under their undated time when they are moved to their own
// (redating.h). Each is deleted by the move, but in the files until a merge comes by, and no expiry
// looks for it there. So they are erased: once nobody holds a snapshot from before the move, in
// which the copy still is the reading.
//
// Records, in the namespace `_undated`, version 1:
//   'C' namespace id (4) device id (4) sensor id (4)  ->  version (1), first key (16), end key (16)
// In the batch of the move, and removed in that of the erasure: what a crash leaves is erased after
// the next start.
//
// One thread at a time. Memory: about 150 bytes of each series that waits.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "catalog/catalog.h"
#include "edgecase/engine.h"

namespace edgecase::ingest {

inline constexpr char kCopiesRecord = 'C';
inline constexpr std::size_t kEraseCopiesMax = 500;  // series in one batch

class LeftCopies {
 public:
  explicit LeftCopies(Engine& engine) : engine_(engine) {}

  // What is left of earlier processes, once. Errors: the engine's; the next call reads again.
  Status load();

  // Into the batch of a move: what of the series lies in these undated times is a copy from then
  // on. The namespace of the records is there.
  void append(const catalog::SeriesId& series, const KeyRange& copies, WriteBatch& batch);

  // Erases what nobody can see any more; call it when all moves of one go are written. Errors: the
  // engine's; the next call goes on.
  Status erase();

  std::size_t series() const { return waiting_.size(); }

 private:
  struct Copies {
    NamespaceId namespace_id = 0;
    KeyRange keys;
    // The readers that may see them; none: not asked since the last move.
    std::optional<std::weak_ptr<const void>> readers;
  };

  Engine& engine_;
  bool is_loaded_ = false;
  std::map<Bytes, Copies> waiting_;  // by the key of the record
};

}  // namespace edgecase::ingest
