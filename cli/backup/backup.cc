#include "backup/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "backup/backup_index.h"
#include "backup/gzip_file.h"
#include "daemon_client.h"
#include "directory_beneath.h"
#include "export_directory.h"
#include "json_text.h"
#include "output.h"
#include "progress.h"
#include "target_file.h"
#include "wire/errors.h"
#include "wire/routes.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

struct Series {
  std::string namespace_name, device, sensor;
  std::uint64_t readings = 0;

  std::string path() const {
    return file_name_of(namespace_name) + "/" + file_name_of(device) + "/" + file_name_of(sensor) +
           ".ndjson.gz";
  }
};

// A file that grows by whole, durable lines.
class ProgressFile {
 public:
  ~ProgressFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  // Cuts off what is no whole line, or all of it.
  Status open_at(const std::string& path, bool keep) {
    path_ = path;
    descriptor_ =
        open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (keep ? 0 : O_TRUNC), 0666);
    if (descriptor_ < 0) return failure();
    char last = '\n';
    off_t end = lseek(descriptor_, 0, SEEK_END);
    while (end > 0 && pread(descriptor_, &last, 1, end - 1) == 1 && last != '\n') --end;
    if (end < 0 || ftruncate(descriptor_, end) != 0) return failure();
    return lseek(descriptor_, end, SEEK_SET) == end ? ok() : failure();
  }
  Status append(const std::string& line) {
    const ssize_t written = write(descriptor_, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size()) || fsync(descriptor_) != 0) return failure();
    return ok();
  }

 private:
  Status failure() const {
    const std::string message = path_ + ": " + std::strerror(errno);
    if (errno == ENOSPC || errno == EDQUOT) return out_of_space(message);
    return errno == EACCES || errno == EPERM ? not_allowed(message) : io_error(message);
  }

  std::string path_;
  int descriptor_ = -1;
};

class Backup {
 public:
  explicit Backup(const BackupRequest& request)
      : directory_(request.directory), location_(request.location), client_(request.connection) {
    while (directory_.size() > 1 && directory_.ends_with('/')) directory_.pop_back();
  }

  int run() {
    stop_on_interrupt("\nedgecase: stopped, the same command goes on\n", wire::kExitPartly);
    Status status = begin();
    if (status.ok()) status = save_all();
    if (status.ok()) status = finish();
    if (!status.ok()) {
      const int exit_code = report_failure(status);
      if (index_.files.empty()) return exit_code;
      print_error("edgecase: %zu series are saved, the same command goes on\n",
                  index_.files.size());
      return wire::kExitPartly;
    }
    print_error("%s readings of %s series saved to %s, as of %s\n",
                count_text(index_.readings()).c_str(), count_text(index_.files.size()).c_str(),
                printable(directory_).c_str(), index_.made.c_str());
    return wire::kExitOk;
  }

 private:
  // Where the one before was broken off, if the daemon still holds its moment; else anew.
  Status begin() {
    EC_TRY(make_export_directory(directory_));
    const Result<BackupIndex> whole = read_index(directory_);
    if (whole.ok()) {
      return already_exists(directory_ + " holds a backup of " + whole->made +
                            ", use another directory");
    }
    if (whole.status().code() != StatusCode::NotFound) return whole.status();
    Result<BackupIndex> begun = read_progress(directory_);
    if (begun.ok()) {
      index_ = std::move(begun).value();
      const Status held = list_series();
      if (held.ok()) return progress_.open_at(progress_path(directory_), true);
      if (held.code() != StatusCode::NotFound) return held;
      print_error("edgecase: the daemon holds the moment of that backup no more, beginning anew\n");
    }
    return begin_anew();
  }

  Status begin_anew() {
    Parameters parameters;
    if (!location_.empty()) parameters.emplace_back("location", location_);
    EC_ASSIGN_OR_RETURN(
        const std::string body,
        client_.post(path_with(wire::routes::kBackups, parameters), "", "text/plain"));
    const auto json = nlohmann::ordered_json::parse(body, nullptr, false);
    index_ = {};
    if (json.is_object()) {
      index_.moment = text_field(json, "moment");
      index_.made = text_field(json, "made");
      index_.state = json.value("state", nlohmann::ordered_json::object());
    }
    if (index_.moment.empty()) return io_error("the daemon's answer names no moment");
    EC_TRY(progress_.open_at(progress_path(directory_), false));
    EC_TRY(progress_.append(progress_head(index_)));
    return list_series();
  }

  Status list_series() {
    EC_ASSIGN_OR_RETURN(const std::string body,
                        client_.get_small(path_with(wire::routes::kSeries,
                                                    {{"ns", "*"}, {"moment", index_.moment}})));
    const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
    if (!document.is_object() || !document.contains("series")) {
      return io_error("the daemon's answer is no list");
    }
    series_.clear();
    for (const nlohmann::json& row : document["series"]) {
      series_.push_back({text_field(row, "namespace"), text_field(row, "device"),
                         text_field(row, "sensor"), count_field(row, "count")});
    }
    return ok();
  }

  Status save_all() {
    std::set<std::string> done;
    for (const BackupFile& file : index_.files) done.insert(file.path);
    std::uint64_t total = 0;
    for (const Series& series : series_) {
      if (!done.contains(series.path())) total += series.readings;
    }
    Progress progress("backup", total, "readings");
    for (const Series& series : series_) {
      if (!done.contains(series.path())) EC_TRY(save(series, progress));
    }
    return ok();
  }

  Status save(const Series& series, Progress& progress) {
    const std::string path = series.path();
    const std::size_t first = path.find('/');
    const std::size_t last = path.rfind('/');
    EC_ASSIGN_OR_RETURN(
        const DirectoryBeneath folder,
        DirectoryBeneath::open(directory_,
                               {path.substr(0, first), path.substr(first + 1, last - first - 1)}));
    EC_ASSIGN_OR_RETURN(
        const std::unique_ptr<GzipFile> file,
        GzipFile::create(folder.path() + path.substr(last), directory_ + "/" + path));
    BackupFile saved{path, 0, 0};
    Status written;
    const std::string request = path_with(
        wire::routes::kQuery,
        {{"ns", series.namespace_name},
         {"select", wire::escape_name(series.device) + "/" + wire::escape_name(series.sensor)},
         {"format", "ndjson"},
         {"moment", index_.moment}});
    const Status status = client_.get(request, [&](std::string_view piece) {
      const auto lines = static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
      saved.readings += lines;
      progress.add(lines, piece.size());
      written = file->write(piece);
      return written.ok();
    });
    EC_TRY(written);
    EC_TRY(status);
    EC_TRY(file->commit());
    saved.size_bytes = file->size_bytes();
    EC_TRY(progress_.append(progress_line(saved)));
    index_.files.push_back(std::move(saved));
    return ok();
  }

  Status finish() {
    EC_TRY(write_index(directory_, index_));
    unlink(progress_path(directory_).c_str());
    // Left alone it is let go of after a while.
    static_cast<void>(
        client_.remove(path_with(wire::routes::kBackups, {{"moment", index_.moment}})));
    return ok();
  }

  std::string directory_;
  const std::string location_;
  DaemonClient client_;
  BackupIndex index_;
  std::vector<Series> series_;
  ProgressFile progress_;
};

}  // namespace

int run_backup(const BackupRequest& request) {
  return Backup(request).run();
}

}  // namespace edgecase::cli
