#include "target_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "daemon_client.h"
#include "import/importer.h"
#include "output.h"
#include "wire/contract.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
namespace {

// A file beside the manifest: JSON that `edgecase report --verify` takes, and no import for
// readings.
constexpr char kSignedReportName[] = "report.signed";

Status write_file(const std::string& path, const std::string& text) {
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(path));
  EC_TRY(file.write(text));
  return file.commit();
}

struct Fetched {
  std::uint64_t bytes = 0;
  bool has_windows = false;  // of tiers, or a text that looks like one
};
struct Converted {
  std::uint64_t readings = 0, windows = 0;
};

Result<Fetched> fetch(DaemonClient& client, const OwnerExport& request, const std::string& path,
                      std::uint64_t readings_expected) {
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(path));
  Progress progress("export", readings_expected, "readings");
  constexpr std::string_view kWindow = R"(","window":")";
  Fetched fetched;
  std::string seam;  // the end of the piece before
  Status written;
  const Status status = client.get(
      path_with(wire::routes::kQuery,
                {{"ns", "*"}, {"owner", request.owner}, {"format", "ndjson"}, {"tiers", "true"}}),
      [&](std::string_view piece) {
        fetched.bytes += piece.size();
        seam.append(piece.substr(0, kWindow.size()));
        fetched.has_windows = fetched.has_windows || seam.find(kWindow) != std::string::npos ||
                              piece.find(kWindow) != std::string_view::npos;
        seam = piece.substr(piece.size() - std::min(piece.size(), kWindow.size()));
        written = file.write(piece);
        progress.add(static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n')),
                     piece.size());
        return written.ok();
      });
  progress.finish();
  EC_TRY(written);
  // Somebody of whom devices are known, but no readings.
  if (status.code() != StatusCode::NotFound) EC_TRY(status);
  EC_TRY(file.commit());
  return fetched;
}

// The same as CSV, which has columns for windows where there may be some.
Result<Converted> convert(const std::string& ndjson_path, const std::string& csv_path,
                          bool has_windows) {
  const std::string no_default;
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<ReadingSource> source,
                      ReadingSource::open(ndjson_path, "ndjson", no_default));
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(csv_path));
  wire::ReadingFormatter formatter(
      wire::ReadingFormat::Csv, wire::LineNamespaces::NotTold,
      has_windows ? wire::WindowColumns::Told : wire::WindowColumns::NotTold);
  Converted converted;
  std::string text;
  formatter.begin(text);
  while (true) {
    wire::ReadingBatch batch;
    EC_ASSIGN_OR_RETURN(const bool more, source->next(batch));
    for (const wire::Reading& reading : batch.readings) {
      formatter.reading(reading, text);
      ++(reading.window == nullptr ? converted.readings : converted.windows);
    }
    EC_TRY(file.write(text));
    text.clear();
    if (!more) break;
  }
  if (source->bad_lines() > 0) return io_error("the daemon's answer holds lines that are none");
  EC_TRY(file.commit());
  return converted;
}

Status export_files(DaemonClient& client, const OwnerExport& request, std::uint64_t& readings) {
  EC_ASSIGN_OR_RETURN(
      const std::string body,
      client.get_small(path_with(wire::routes::kReport, {{"owner", request.owner}})));
  nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(body, nullptr, false);
  if (!manifest.is_object() || !manifest.contains("stored")) {
    return io_error("the daemon's answer is no report");
  }
  EC_TRY(make_export_directory(request.directory));
  EC_TRY(write_file(request.directory + "/" + kSignedReportName, body));
  manifest.erase("signature");  // of a document without what is added here
  const std::string ndjson_path = request.directory + "/readings.ndjson";
  EC_ASSIGN_OR_RETURN(
      const Fetched fetched,
      fetch(client, request, ndjson_path, manifest["stored"].value("readings", std::uint64_t{0})));
  EC_ASSIGN_OR_RETURN(
      const Converted converted,
      convert(ndjson_path, request.directory + "/readings.csv", fetched.has_windows));
  readings = converted.readings;
  manifest["files"] = {
      {{"file", "readings.ndjson"}, {"readings", readings}, {"bytes", fetched.bytes}},
      {{"file", "readings.csv"}, {"readings", readings}}};
  if (converted.windows > 0) {
    for (auto& file : manifest["files"]) file["windows"] = converted.windows;
  }
  return write_file(request.directory + "/manifest.json", manifest.dump(2) + "\n");
}

// Gone with the process, however that ends; nobody else can open it.
class UnnamedFile {
 public:
  static Result<UnnamedFile> create() {
    std::error_code error;
    std::string directory = std::filesystem::temp_directory_path(error).string();
    if (error) directory = "/tmp";
    UnnamedFile file;
    file.descriptor_ = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file.descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
      std::string path = directory + "/edgecase-XXXXXX";
      file.descriptor_ = mkostemp(path.data(), O_CLOEXEC);
      if (file.descriptor_ >= 0) unlink(path.c_str());
    }
    if (file.descriptor_ < 0) return io_error(directory + ": " + std::strerror(errno));
    return file;
  }
  UnnamedFile(UnnamedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  UnnamedFile& operator=(UnnamedFile&&) = delete;
  ~UnnamedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  Status write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t taken = ::write(descriptor_, text.data(), text.size());
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0)
        return errno == ENOSPC ? out_of_space("a temporary file does not fit")
                               : io_error(std::string("a temporary file: ") + strerror(errno));
      text.remove_prefix(static_cast<std::size_t>(taken));
    }
    return ok();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  UnnamedFile() = default;
  int descriptor_ = -1;
};

// The daemon says first whether anything of it may go there.
Status fetch_readings(DaemonClient& client, const OwnerPush& request, UnnamedFile& file) {
  Progress progress("export", 0, "readings");
  Status written;
  const Status status = client.get(
      path_with(wire::routes::kQuery, {{"ns", "*"},
                                       {"owner", request.owner},
                                       {"format", "ndjson"},
                                       {"export", "true"},
                                       {"tiers", "true"},
                                       {"transfer", request.location}}),
      [&](std::string_view piece) {
        written = file.write(piece);
        progress.add(static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n')),
                     piece.size());
        return written.ok();
      });
  progress.finish();
  EC_TRY(written);
  // Somebody of whom devices are known, but no readings.
  return status.code() == StatusCode::NotFound ? ok() : status;
}

Status fetch(DaemonClient& client, const OwnerPush& request, UnnamedFile& readings,
             UnnamedFile& manifest) {
  EC_TRY(fetch_readings(client, request, readings));
  EC_ASSIGN_OR_RETURN(
      const std::string report,
      client.get_small(path_with(wire::routes::kReport, {{"owner", request.owner}})));
  return manifest.write(report);
}

}  // namespace

int export_owner(const OwnerExport& request) {
  stop_on_interrupt("\nedgecase: stopped, there is no manifest: the export is not whole\n",
                    wire::kExitPartly);
  DaemonClient client(request.connection);
  std::uint64_t readings = 0;
  const Status status = export_files(client, request, readings);
  if (!status.ok()) return report_failure(status);
  print_error("%s of %s exported to %s\n", count_of(readings, "reading").c_str(),
              printable(request.owner).c_str(), printable(request.directory).c_str());
  return wire::kExitOk;
}

int push_owner(const OwnerPush& request) {
  Result<UnnamedFile> readings = UnnamedFile::create();
  if (!readings.ok()) return report_failure(readings.status());
  Result<UnnamedFile> manifest = UnnamedFile::create();
  if (!manifest.ok()) return report_failure(manifest.status());
  DaemonClient client(request.from);
  if (const Status fetched = fetch(client, request, *readings, *manifest); !fetched.ok())
    return report_failure(fetched);
  // What the environment says is for the daemon here, and nothing that the other one may see.
  const char* const token = std::getenv("EDGECASE_TO_TOKEN");
  ImportRequest import;
  import.connection = request.to;
  if (import.connection.token.empty() && token != nullptr) import.connection.token = token;
  for (const char* own : {"EDGECASE_TOKEN", "EDGECASE_TLS_CA"}) unsetenv(own);
  import.default_namespace = "default";
  import.paths = {readings->path()};
  import.format = "ndjson";
  import.manifests = {manifest->path()};
  return run_import(import);
}

}  // namespace edgecase::cli
