// The index of a backup's directory: backup.json, which is written last, and until then
// .edgecase-backup, a line of JSON for the moment it is of and one for each file that is done.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "edgecase/result.h"

namespace edgecase::cli {

inline constexpr int kBackupFormat = 1;

struct BackupFile {
  std::string path;  // within the directory
  std::uint64_t readings = 0;
  std::uint64_t size_bytes = 0;
};

struct BackupIndex {
  std::string moment;  // its name at the daemon
  std::string made;
  nlohmann::ordered_json state;  // namespaces, devices, retention
  std::vector<BackupFile> files;

  std::uint64_t readings() const;
};

std::string index_path(const std::string& directory);
std::string progress_path(const std::string& directory);

// The index of a backup that is whole. NotFound: there is none; Corruption; Unsupported: a newer
// format.
Result<BackupIndex> read_index(const std::string& directory);
Status write_index(const std::string& directory, const BackupIndex& index);

// The progress of a backup that was broken off. A last line that is cut does not count. NotFound,
// Corruption.
Result<BackupIndex> read_progress(const std::string& directory);
std::string progress_head(const BackupIndex& index);
std::string progress_line(const BackupFile& file);

}  // namespace edgecase::cli
