// `edgecase import`: files of readings into the daemon, or only looked through (importer.cc), and
// the manifest that an export of a person left beside them (manifest.cc).
//
// A reading that is there already is replaced by itself, so an import that was broken off is simply
// run again. While the daemon cannot take more (full, busy) the import waits for kPatienceMs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "command_options.h"
#include "daemon_client.h"
#include "edgecase/status.h"
#include "import/csv_decoder.h"
#include "wire/line_protocol.h"
#include "wire/reading.h"

namespace edgecase::cli {

struct ImportRequest {
  ConnectionArguments connection;
  std::string default_namespace;
  std::vector<std::string> paths;  // files; of a directory, all below it that have a known ending
  std::string format;              // empty: by each name
  CsvForm csv = {};
  std::vector<std::string> manifests = {};  // beside those in directories
  // What a manifest of `export --owner` in one of the directories says of devices comes too.
  bool takes_manifests = true;
  bool dry_run = false;  // print what would come, a row a file, and send nothing
  // When the files were made, as the daemon said it; "@0": long ago, for all that is known.
  std::string as_of = "@0";
};

inline constexpr int kPatienceMs = 60'000;

// Returns the exit code: kExitPartly when some readings are stored and others were refused.
int run_import(const ImportRequest& request);

// The manifest of `export --owner`, brought back by `edgecase import`. It holds what is said of a
// person's devices beside their readings: owner, purposes, objections, locations and labels before
// the readings come, how long each is kept after. What the store says itself stays: a conflict is
// told and counted.

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr std::size_t kManifestMaxBytes = 64u << 20;

class Manifest {
 public:
  // Nothing where the file is none that `export --owner` wrote. Errors: of reading it.
  static Result<std::optional<Manifest>> read(const std::string& path);

  const std::string& path() const { return path_; }
  std::string summary() const;  // "2 devices of alice"

  // Makes namespaces, and says of the devices what nobody says of them yet.
  Status describe(DaemonClient& client);
  // Sets the rules that the imported series need to be kept as long as they were.
  Status keep(DaemonClient& client);
  std::size_t conflicts() const { return conflicts_; }

 private:
  using Json = nlohmann::json;
  using Name = std::pair<std::string, std::string>;  // namespace, device

  Status describe(DaemonClient& client, const Json& device);
  Status keep(DaemonClient& client, const Json& device, const Json& found);
  Status set_rule(DaemonClient& client, const std::string& namespace_name,
                  const std::string& selector, const std::string& keep);
  Json merged(const Json& device, const Json& known);
  void conflict(const std::string& message);

  std::string path_;
  Json document_;
  std::set<Name> of_others_;  // devices that the store says are somebody else's
  std::size_t conflicts_ = 0;
};

// A file of readings, in any format that `export` writes, as batches.
//
// The file is mapped, not read: memory stays bounded by a batch, however large the file. It must
// not shrink meanwhile. Use: open(), then next() until it answers false. One thread.

// A gzip file (RFC 1952) from its beginning to its end, a piece at a time. One thread.

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

class GzipReader {
 public:
  // NotFound, NotAllowed, IoError: the file.
  static Result<std::unique_ptr<GzipReader>> open(const std::string& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Appends some more to `out`; false at the end. Corruption: no gzip, a wrong checksum, or an end
  // that is missing.
  Result<bool> read(std::string& out);
  // How much of the file was read, 0 to 1.
  double share() const;

 private:
  struct State;
  explicit GzipReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A bad line costs itself alone. How many of them are told word by word, a file.
inline constexpr std::size_t kBadLinesToldMax = 20;
// A JSON array has to be decoded as a whole.
inline constexpr std::size_t kArrayMaxBytes = 64u << 20;

class ReadingSource {
 public:
  virtual ~ReadingSource() = default;

  // `format`: csv, ndjson or line; empty: by the name's ending. "-" is stdin, which needs a format.
  // What names no namespace belongs to `default_namespace`, which outlives the source. NotFound,
  // NotAllowed, IoError: the file; InvalidArgument: no format, or a file that is not of its format
  // as a whole. Counts since 1970 are nanoseconds, or what csv.time_format says of them, in any
  // format. `rules`: which devices lines of line protocol belong to; outlives the source.
  static Result<std::unique_ptr<ReadingSource>> open(const std::string& path,
                                                     const std::string& format,
                                                     const std::string& default_namespace,
                                                     const CsvForm& csv = {},
                                                     const wire::LineRules* rules = nullptr);

  // The next readings into `batch`, which must be empty; they live until the next call. False: the
  // file is used up.
  virtual Result<bool> next(wire::ReadingBatch& batch) = 0;

  // How much of the file was decoded, 0 to 1.
  virtual double share() const = 0;
  // Whether times are counts since 1970, as far as the readings say that have come.
  virtual bool counts_times() const = 0;
  // Lines that say that there is no value; only CSV can.
  virtual std::uint64_t no_values() const { return 0; }
  virtual std::uint64_t bad_lines() const = 0;
  // The first kBadLinesToldMax of them.
  virtual const std::vector<wire::LineError>& errors() const = 0;
};

// "csv", "ndjson", "line", or empty when the ending tells nothing.
std::string_view format_of_file(std::string_view path);

// The options of `import` that a CSV of others seems to want, by its first two lines: which columns
// are the time and the device, what separates them, how times are written (csv_guess.cc). Empty
// where nothing is known that would help: no column of times, or export's own file.
std::vector<std::string> options_meant(const std::string& path);

}  // namespace edgecase::cli
