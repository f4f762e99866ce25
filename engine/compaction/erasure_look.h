// Finds bytes of erased ranges in value files to which no table leads any more. Groups do not say
// what is dead in them, and files that merges left behind in part hold whole items that are.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "edgecase/file_system.h"
#include "file/file_remover.h"
#include "table/table_cache.h"
#include "version/version.h"

namespace edgecase::engine {

class KeyRing;

// Offsets of the items that tables point to, ascending, by value file: of `files` alone. Tables
// that are `lost` are not asked: nothing of the ranges that are looked for lies in one.
using LiveItems = std::map<FileNumber, std::vector<std::uint64_t>>;
Result<LiveItems> find_live_items(TableCache& tables, const Version& version,
                                  const std::set<FileNumber>& files,
                                  const std::set<FileNumber>& lost);

struct ErasedItems {
  // By offset: items without a pointer that hold an entry of the ranges, or are unreadable.
  std::vector<ValuePointer> items;
  std::uint64_t bytes = 0;
  // The file's own summary may name a key of the ranges.
  bool summary_names_range = false;
};

struct ValueFilePlace {
  std::string path;
  StoreId store_id;
  FileNumber number = 0;
  KeyRing* keys = nullptr;  // null: not encrypted
};

// Whether zeros that were written over items, and an end of the file without keys, are certain to
// be on the drive. Uncertain ones may be in the page cache alone, after a sync that failed: they
// are read, and nothing writes them. What was there has to be overwritten again.
enum class Blanks : unsigned char { Durable, Uncertain };

// Reads what nothing points to. `ranges` are disjoint, in key order. Corruption: it cannot be told.
Result<ErasedItems> find_erased_items(FileSystem& file_system, const ValueFilePlace& place,
                                      const std::vector<std::uint64_t>& live,
                                      std::span<const RangeDelete> ranges, Blanks blanks);

// The same of a file whose items lie in key order, by reading little else than the items. Nothing
// when it is none, or when something there can only be judged by what tables point to.
Result<std::optional<ErasedItems>> search_erased_items(FileSystem& file_system,
                                                       const ValueFilePlace& place,
                                                       TableCache& tables, const Version& version,
                                                       const std::set<FileNumber>& lost,
                                                       std::span<const RangeDelete> ranges);

// The end of a file that is not sealed, with a summary that names no key: to be written over the
// one it has. Torn, it is no summary any more, and the file is emptied.
Result<FileBytes> end_without_keys(FileSystem& file_system, const ValueFilePlace& place);

// Whether the summary of a value file rules out that it holds anything of the ranges.
Result<bool> lies_beside(FileSystem& file_system, const ValueFilePlace& place,
                         std::span<const RangeDelete> ranges);

}  // namespace edgecase::engine
