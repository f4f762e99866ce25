// Two drives in memory, a table cache over them, and write_tables() into them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "file/file_names.h"
#include "support/memory_file_system.h"
#include "support/vector_cursor.h"
#include "table/table_cache.h"
#include "table/table_writer.h"

namespace edgecase::test {

class TableTestStore {
 public:
  TableTestStore() : disk({"/m", "/v"}) {
    for (std::size_t i = 0; i < store_id.size(); ++i)
      store_id[i] = static_cast<std::uint8_t>(i * 17 + 1);
    options.metadata_directory = "/m";
    options.values_directory = "/v";
    (void)disk.create_directory("/m/tables");
    (void)disk.sync_directory("/m");
    open_cache({});
  }

  void open_cache(engine::TableCache::Limits limits) {
    cache =
        std::make_unique<engine::TableCache>(disk, "/m", "/v", store_id, limits, key_ring.get());
    for (const auto& file : output.value_files) cache->add_value_file(file);
  }

  // Before anything is written.
  void encrypt() {
    engine::SecretKey master;
    master.fill(7);
    key_ring = engine::KeyRing::create(disk, "/m", store_id, {master}, random).value();
    open_cache({});
  }

  engine::TableWriterContext context() {
    engine::TableWriterContext context{disk, options, store_id, [this] { return next_number++; },
                                       [this](NamespaceId id) { return namespaces[id]; }};
    context.keys = key_ring.get();
    return context;
  }

  // Writes `entries`, in order, and makes what came out readable.
  Status write(std::vector<OwnedEntry> entries) {
    VectorCursor input(std::move(entries));
    EC_ASSIGN_OR_RETURN(output, engine::write_tables(input, context()));
    tables.clear();
    for (const auto& table : output.tables)
      tables.push_back(std::make_shared<const engine::TableMetadata>(table));
    for (const auto& file : output.value_files) cache->add_value_file(file);
    return ok();
  }

  // What a reader sees of these tables: the newest put of each key.
  std::map<Bytes, Bytes> newest_puts(
      const std::vector<std::shared_ptr<const engine::TableMetadata>>& of) {
    std::map<Bytes, std::pair<engine::SequenceNumber, std::optional<Bytes>>> newest;
    for (const auto& table : of) {
      const auto cursor = cache->cursor(table, "", "", Direction::Forward, false);
      for (; cursor->valid(); cursor->next()) {
        REQUIRE(cursor->load().ok());
        auto& [sequence, value] = newest[Bytes(cursor->full_key())];
        if (cursor->sequence() < sequence) continue;
        sequence = cursor->sequence();
        value.reset();
        if (cursor->kind() == engine::EntryKind::Put) value = Bytes(cursor->value());
      }
      REQUIRE(cursor->status().ok());
    }
    std::map<Bytes, Bytes> seen;
    for (const auto& [key, found] : newest)
      if (found.second) seen.emplace(key, *found.second);
    return seen;
  }

  std::string path_of(const engine::ValueFileMetadata& file) const {
    return engine::value_table_path("/m", "/v", file.placement, file.number);
  }
  std::string path_of(const engine::TableMetadata& table) const {
    return engine::metadata_table_path("/m", table.number);
  }

  MemoryFileSystem disk;
  Options options;
  engine::StoreId store_id{};
  std::map<NamespaceId, NamespaceOptions> namespaces;
  std::uint64_t next_number = 1;
  SeededRandom random{5};
  std::unique_ptr<engine::KeyRing> key_ring;  // null: not encrypted
  engine::TableOutput output;
  std::vector<std::shared_ptr<const engine::TableMetadata>> tables;
  std::unique_ptr<engine::TableCache> cache;
};

}  // namespace edgecase::test
