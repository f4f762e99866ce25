// Each kind of file of a store (damaged_store.h).
#include "fuzz/damaged_store.h"
#include "fuzz/fuzz_targets.h"

namespace edgecase::test {

void take_manifest(std::string_view bytes) {
  take_store_file(engine::FileType::Manifest, bytes);
}

void take_tables(std::string_view bytes) {
  take_store_file(engine::FileType::MetadataTable, bytes);
}

void take_value_tables(std::string_view bytes) {
  take_store_file(engine::FileType::ValueTable, bytes);
}

void take_wal(std::string_view bytes) {
  take_store_file(engine::FileType::WalSlot, bytes);
}

}  // namespace edgecase::test
