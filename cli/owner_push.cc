#include "owner_push.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "daemon_client.h"
#include "import/importer.h"
#include "output.h"
#include "progress.h"
#include "wire/routes.h"

namespace edgecase::cli {
namespace {

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
