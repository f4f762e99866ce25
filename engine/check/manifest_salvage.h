// What the manifests of a store without a whole one still tell: which namespaces there are, and
// what is gone for good. Nothing is taken of its files: those that are there tell of themselves.
// Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "check/store_files.h"
#include "version/version.h"

namespace edgecase::engine {

struct ManifestSalvage {
  std::string path;  // of the newest one of which a state could be read; empty: there is none
  std::vector<NamespaceInfo> namespaces;  // by id
  NamespaceId namespace_id_limit = 1;     // those below that are not among them were dropped
  FileNumber file_number_limit = 1;
  SequenceNumber flushed_sequence = 0;  // at least that was
  std::vector<RangeDelete> range_deletes, erasures;
  // Without rules: which of them still hold cannot be told, and what one had let expire by
  // `expiry_mark_ns` is gone whatever became of it.
  RetentionRules retention;
  std::int64_t expiry_mark_ns = 0;
};

// Every field is at most what held last: of what was changed after the damage nothing is known.
ManifestSalvage salvage_manifests(FileSystem& file_system, const StoreFiles& files);

}  // namespace edgecase::engine
