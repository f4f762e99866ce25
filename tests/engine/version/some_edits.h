// A store's id and edits, for the tests of manifests.
#pragma once

#include "version/version.h"
#include "version/version_set.h"

namespace edgecase::engine::test_edits {

inline constexpr StoreId kStoreId{1, 2, 3};

inline VersionEdit added_file(FileNumber number) {
  VersionEdit edit;
  ValueFileMetadata file;
  file.number = number;
  file.namespace_id = 1;
  file.size_bytes = 100;
  file.item_count = 1;
  file.checksum = 7;
  edit.added_value_files.push_back(file);
  return edit;
}

}  // namespace edgecase::engine::test_edits
