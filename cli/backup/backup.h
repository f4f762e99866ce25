// `edgecase backup DIR` and `edgecase restore DIR`.
//
// A backup is of one moment: every reading that was durable then, and every window of a tier where
// readings are gone, a file a series,
// DIR/NAMESPACE/DEVICE/SENSOR.ndjson.gz, and what is said beside them (namespaces, devices, rules
// of retention) in DIR/backup.json, which is written last: a directory without one is no backup.
// One that was broken off goes on with the same command, at the same moment while the daemon holds
// that, else anew.
//
// A restore looks through all files before it stores anything. Whose devices are comes before the
// readings, so that no other store's come under their names meanwhile, and so do rules, since
// windows are taken where a rule has their tier; what is in the store already stays, and what has
// been erased or has expired there does not come back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "command_options.h"
#include "edgecase/status.h"

namespace edgecase::cli {

struct BackupRequest {
  ConnectionArguments connection;
  std::string directory;
  std::string location = {};  // where the directory is, as the daemon has to know
};

// Both return the exit code.
int run_backup(const BackupRequest& request);
int run_restore(const BackupRequest& request);

// Format 2 says whose devices are ("origins" and "device_origins" of its state). Where no store
// forwards to this one, the index is written in format 1.
inline constexpr int kBackupFormat = 2;

struct BackupFile {
  std::string path;  // within the directory
  std::uint64_t readings = 0;
  std::uint64_t size_bytes = 0;
};

// The index of a backup's directory: backup.json, which is written last, and until then
// .edgecase-backup, a line of JSON for the moment it is of and one for each file that is done.
struct BackupIndex {
  std::string moment;  // its name at the daemon
  std::string made;
  nlohmann::ordered_json state;  // namespaces, devices, origins, device_origins, retention
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

// A gzip file that appears whole or not at all (target_file.h). One thread.
class GzipFile {
 public:
  static Result<std::unique_ptr<GzipFile>> create(const std::string& path,
                                                  const std::string& shown = {});
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  Status write(std::string_view bytes);
  // Durable once it returns Ok.
  Status commit();
  // The size of the file so far.
  std::uint64_t size_bytes() const;

 private:
  struct State;
  explicit GzipFile(std::unique_ptr<State> state);
  Status deflate(std::string_view bytes, int flush);
  std::unique_ptr<State> state_;
};

}  // namespace edgecase::cli
