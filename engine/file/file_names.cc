#include "file/file_names.h"

#include <charconv>

namespace edgecase::engine {
namespace {

constexpr std::string_view kIdentity = "IDENTITY";
constexpr std::string_view kIdentityNew = "IDENTITY.new";
constexpr std::string_view kIdentityCopy = "IDENTITY.copy";
constexpr std::string_view kLock = "LOCK";
constexpr std::string_view kReserve = "RESERVE";
constexpr std::string_view kCurrent = "CURRENT";
constexpr std::string_view kCurrentNew = "CURRENT.new";
constexpr std::string_view kCurrentCopy = "CURRENT.copy";
constexpr std::string_view kManifestPrefix = "MANIFEST-";
constexpr std::string_view kKeyRingPrefix = "KEYS-";
constexpr std::string_view kWalDirectory = "wal";
constexpr std::string_view kWalSlotPrefix = "slot-";
constexpr std::string_view kWalSlotSuffix = ".log";
constexpr std::string_view kTablesDirectory = "tables";
constexpr std::string_view kMetadataTableSuffix = ".meta";
constexpr std::string_view kValueTableSuffix = ".val";

constexpr std::size_t kFileNumberDigitsMin = 12;
constexpr std::size_t kWalSlotDigitsMin = 2;

std::string digits(std::uint64_t number, std::size_t digits_min) {
  std::string text = std::to_string(number);
  if (text.size() < digits_min) text.insert(0, digits_min - text.size(), '0');
  return text;
}

// The number between `prefix` and `suffix`, if `name` is exactly how it would be written.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view prefix,
                                       std::string_view suffix, std::size_t digits_min) {
  if (name.size() <= prefix.size() + suffix.size()) return std::nullopt;
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view text =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (digits(number, digits_min) != text) return std::nullopt;
  return number;
}

std::string concatenate(std::string_view prefix, const std::string& number,
                        std::string_view suffix) {
  return std::string(prefix).append(number).append(suffix);
}

}  // namespace

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

std::string identity_path(std::string_view directory) {
  return join_path(directory, kIdentity);
}

std::string identity_copy_path(std::string_view directory) {
  return join_path(directory, kIdentityCopy);
}

std::string current_copy_path(std::string_view metadata_directory) {
  return join_path(metadata_directory, kCurrentCopy);
}

std::string identity_new_path(std::string_view directory) {
  return join_path(directory, kIdentityNew);
}

std::string lock_path(std::string_view directory) {
  return join_path(directory, kLock);
}

std::string reserve_path(std::string_view directory) {
  return join_path(directory, kReserve);
}

std::string damaged_directory(std::string_view directory) {
  return join_path(directory, "damaged");
}

std::string repair_marker_path(std::string_view metadata_directory) {
  return join_path(metadata_directory, "REPAIR");
}

std::string current_path(std::string_view metadata_directory) {
  return join_path(metadata_directory, kCurrent);
}

std::string current_new_path(std::string_view metadata_directory) {
  return join_path(metadata_directory, kCurrentNew);
}

std::string manifest_name(std::uint64_t number) {
  return concatenate(kManifestPrefix, digits(number, kFileNumberDigitsMin), "");
}

std::string manifest_path(std::string_view metadata_directory, std::uint64_t number) {
  return join_path(metadata_directory, manifest_name(number));
}

std::string key_ring_path(std::string_view metadata_directory, std::uint64_t generation) {
  return join_path(metadata_directory,
                   concatenate(kKeyRingPrefix, digits(generation, kFileNumberDigitsMin), ""));
}

std::string wal_directory(std::string_view metadata_directory) {
  return join_path(metadata_directory, kWalDirectory);
}

std::string wal_slot_path(std::string_view metadata_directory, std::uint64_t slot) {
  return join_path(wal_directory(metadata_directory),
                   concatenate(kWalSlotPrefix, digits(slot, kWalSlotDigitsMin), kWalSlotSuffix));
}

std::string tables_directory(std::string_view metadata_directory) {
  return join_path(metadata_directory, kTablesDirectory);
}

std::string metadata_table_path(std::string_view metadata_directory, std::uint64_t number) {
  return join_path(tables_directory(metadata_directory),
                   concatenate("", digits(number, kFileNumberDigitsMin), kMetadataTableSuffix));
}

std::string value_tables_directory(std::string_view metadata_directory,
                                   std::string_view values_directory, Placement placement) {
  if (placement == Placement::Metadata) return tables_directory(metadata_directory);
  return std::string(values_directory);
}

std::string value_table_path(std::string_view metadata_directory, std::string_view values_directory,
                             Placement placement, std::uint64_t number) {
  return join_path(value_tables_directory(metadata_directory, values_directory, placement),
                   concatenate("", digits(number, kFileNumberDigitsMin), kValueTableSuffix));
}

std::optional<ParsedFileName> parse_file_name(std::string_view name) {
  if (name == kIdentity) return ParsedFileName{FileType::Identity, 0};
  if (name == kIdentityNew) return ParsedFileName{FileType::IdentityNew, 0};
  if (name == kIdentityCopy) return ParsedFileName{FileType::IdentityCopy, 0};
  if (name == kLock) return ParsedFileName{FileType::Lock, 0};
  if (name == kReserve) return ParsedFileName{FileType::Reserve, 0};
  if (name == kCurrent) return ParsedFileName{FileType::Current, 0};
  if (name == kCurrentNew) return ParsedFileName{FileType::CurrentNew, 0};
  if (name == kCurrentCopy) return ParsedFileName{FileType::CurrentCopy, 0};

  struct Numbered {
    FileType type;
    std::string_view prefix;
    std::string_view suffix;
    std::size_t digits_min;
  };
  for (const Numbered& n :
       {Numbered{FileType::Manifest, kManifestPrefix, "", kFileNumberDigitsMin},
        Numbered{FileType::KeyRing, kKeyRingPrefix, "", kFileNumberDigitsMin},
        Numbered{FileType::WalSlot, kWalSlotPrefix, kWalSlotSuffix, kWalSlotDigitsMin},
        Numbered{FileType::MetadataTable, "", kMetadataTableSuffix, kFileNumberDigitsMin},
        Numbered{FileType::ValueTable, "", kValueTableSuffix, kFileNumberDigitsMin}}) {
    if (const auto number = number_in(name, n.prefix, n.suffix, n.digits_min))
      return ParsedFileName{n.type, *number};
  }
  return std::nullopt;
}

Result<Bytes> read_whole_file(FileSystem& file_system, const std::string& path,
                              std::size_t size_max, ReadSource source) {
  EC_ASSIGN_OR_RETURN(
      const std::unique_ptr<RandomAccessFile> file,
      source == ReadSource::Drive ? file_system.open_uncached(path) : file_system.open_file(path));
  if (file->size_bytes() > size_max)
    return corruption_in(path, ": longer than " + std::to_string(size_max) + " bytes");
  Bytes content(static_cast<std::size_t>(file->size_bytes()), '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t size, file->read(0, content.size(), content.data()));
  content.resize(size);
  return content;
}

Status replace_whole_file(FileSystem& file_system, const std::string& directory,
                          const std::string& new_path, const std::string& path, ByteView content) {
  if (const Status removed = file_system.remove_file(new_path);
      !removed.ok() && removed.code() != StatusCode::NotFound) {
    return removed;
  }
  {
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        file_system.create_file(new_path));
    EC_TRY(file->append(content));
    EC_TRY(file->sync());
  }
  EC_TRY(file_system.rename_file(new_path, path));
  return file_system.sync_directory(directory);
}

}  // namespace edgecase::engine
