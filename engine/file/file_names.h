// The only place that knows how files and directories of a store are called, and how a small one
// (CURRENT, IDENTITY) is replaced whole under its name.
//
//   <metadata>/  IDENTITY  LOCK  RESERVE  CURRENT  CURRENT.new  MANIFEST-<n>  wal/slot-<nn>.log
//                KEYS-<n> (of an encrypted store)
//                tables/<n>.meta  tables/<n>.val
//   <values>/    IDENTITY  LOCK  RESERVE  <n>.val
//   and of a repair: <metadata>/REPAIR  <either>/damaged/
//
// <n> is decimal with at least 12 digits, <nn> with at least 2: names sort in the order of their
// numbers. There is one way to write a number; parse_file_name() takes nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/engine.h"
#include "edgecase/file_system.h"

namespace edgecase::engine {

// "a/b" from "a" or "a/" and "b".
std::string join_path(std::string_view directory, std::string_view name);

// In either directory.
std::string identity_path(std::string_view directory);
std::string identity_new_path(std::string_view directory);   // renamed to IDENTITY once synced
std::string identity_copy_path(std::string_view directory);  // in case IDENTITY is lost
std::string lock_path(std::string_view directory);
std::string reserve_path(std::string_view directory);

// Where a repair keeps what was damaged, in either directory.
std::string damaged_directory(std::string_view directory);

// In the metadata directory.
std::string repair_marker_path(
    std::string_view metadata_directory);  // there while a repair is not finished
std::string current_path(std::string_view metadata_directory);
std::string current_new_path(
    std::string_view metadata_directory);  // renamed to CURRENT once synced
std::string current_copy_path(std::string_view metadata_directory);  // in case CURRENT is lost
std::string manifest_name(std::uint64_t number);                     // what CURRENT holds
std::string manifest_path(std::string_view metadata_directory, std::uint64_t number);
std::string key_ring_path(std::string_view metadata_directory, std::uint64_t generation);
std::string wal_directory(std::string_view metadata_directory);
std::string wal_slot_path(std::string_view metadata_directory, std::uint64_t slot);
std::string tables_directory(std::string_view metadata_directory);
std::string metadata_table_path(std::string_view metadata_directory, std::uint64_t number);

constexpr ::edgecase::Drive drive_of(Placement placement) {
  using ::edgecase::Drive;  // not something of that name nearer by
  return placement == Placement::Values ? Drive::Values : Drive::Metadata;
}

// Where value tables of a placement lie, and one of them.
std::string value_tables_directory(std::string_view metadata_directory,
                                   std::string_view values_directory, Placement placement);
std::string value_table_path(std::string_view metadata_directory, std::string_view values_directory,
                             Placement placement, std::uint64_t number);

enum class FileType : unsigned char {
  Identity,
  IdentityNew,
  IdentityCopy,
  Lock,
  Current,
  CurrentNew,
  CurrentCopy,
  Manifest,       // number
  WalSlot,        // number: the slot
  MetadataTable,  // number
  ValueTable,     // number
  Reserve,
  KeyRing,  // number: the generation
};

struct ParsedFileName {
  FileType type = FileType::Identity;
  std::uint64_t number = 0;
};

// `name` is without its directory. nullopt for what no store ever writes.
std::optional<ParsedFileName> parse_file_name(std::string_view name);

// Where a small file is read from. Drive: not from what the system has in memory, where it can.
enum class ReadSource : unsigned char { Any, Drive };

// Errors: NotFound; Corruption when it is longer than `size_max`; IoError.
Result<Bytes> read_whole_file(FileSystem& file_system, const std::string& path,
                              std::size_t size_max, ReadSource source = ReadSource::Any);

// `path` holds `content` or what it held before, also after a power cut: writes `new_path`, syncs
// it, renames it to `path`, syncs `directory`, the parent of both.
Status replace_whole_file(FileSystem& file_system, const std::string& directory,
                          const std::string& new_path, const std::string& path, ByteView content);

}  // namespace edgecase::engine
