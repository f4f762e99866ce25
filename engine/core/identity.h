// IDENTITY, and IDENTITY.copy beside it, which is the same: which store a directory belongs to, and
// which of its two it is. Written once, when the store is made; checked at every open, and before
// each flush writes to the values directory, so that a swapped, empty or unmounted drive is
// recognised and left alone.
//
// Bytes, version 1, little-endian:
//
//   offset  size  field
//        0     8  magic "ECIDENT1"
//        8     4  format version, 1
//       12     1  role: 1 metadata, 2 values
//       13     3  zero
//       16    16  store id
//       32     4  crc32c of bytes 0..31
#pragma once

#include <optional>
#include <string>

#include "base/entry.h"
#include "edgecase/file_system.h"
#include "edgecase/random.h"

namespace edgecase::engine {

enum class DirectoryRole : unsigned char { Metadata = 1, Values = 2 };

struct Identity {
  StoreId store_id{};
  DirectoryRole role = DirectoryRole::Metadata;
};

inline constexpr std::size_t kIdentityBytes = 36;

StoreId make_store_id(Random& random);
std::string to_text(const StoreId& id);  // 32 hexadecimal digits

Bytes encode_identity(const Identity& identity);
// Errors: Corruption, Unsupported (newer format). `path` is for the message.
Result<Identity> decode_identity(ByteView bytes, const std::string& path);

// nullopt when the directory has none, or is not there. Where IDENTITY is missing or damaged its
// copy counts.
Result<std::optional<Identity>> read_identity(FileSystem& file_system,
                                              const std::string& directory);
// What is wrong with one of the two, where the other is `identity`; a copy that an older version
// did not write is nothing.
Status identity_damage(FileSystem& file_system, const std::string& directory,
                       const Identity& identity);
// Writes anew whichever of the two is missing or not `identity`. Answers as identity_damage().
Status heal_identity(FileSystem& file_system, const std::string& directory,
                     const Identity& identity);
Status write_identity(FileSystem& file_system, const std::string& directory,
                      const Identity& identity);

// Whether the metadata drive still answers, and is that of the store: read from the drive itself,
// since a drive that was pulled still answers from memory. Errors: Unavailable, Corruption,
// IoError.
Status check_metadata_identity(FileSystem& file_system, const std::string& metadata_directory,
                               const StoreId& store_id);
// The same of `values_directory`, whether it is that of the store. Errors: Unavailable with the
// reason, Corruption, Unsupported, IoError.
Status check_values_identity(FileSystem& file_system, const std::string& values_directory,
                             const StoreId& store_id);

}  // namespace edgecase::engine
