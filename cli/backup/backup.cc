#include "backup/backup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon_client.h"
#include "output.h"
#include "target_file.h"
#include "wire/contract.h"
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

// A file that grows by whole, durable lines. While it is open nobody else backs up into its
// directory.
class ProgressFile {
 public:
  ~ProgressFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  // Busy: another process has it.
  Status open_at(const std::string& path) {
    path_ = path;
    // Another process that held it may have removed it when it was done.
    for (int attempt = 0; attempt < 10; ++attempt) {
      if (descriptor_ >= 0) close(descriptor_);
      descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
      if (descriptor_ < 0) return failure();
      // Not every file system knows locks.
      if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return busy(path + ": another edgecase backup writes into this directory now");
      struct stat mine {};
      struct stat named {};
      if (fstat(descriptor_, &mine) == 0 && stat(path.c_str(), &named) == 0 &&
          mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
        return ok();
    }
    return busy(path + ": others back up into this directory");
  }
  // Cuts off what is no whole line, or all of it.
  Status begin(bool keep) {
    if (!keep && ftruncate(descriptor_, 0) != 0) return failure();
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

// Longer than a moment that nobody reads is held against others.
constexpr int kWaitForMomentS = 30;

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
    print_error("%s of %s series saved to %s, as of %s\n",
                count_of(index_.readings(), "reading").c_str(),
                count_text(index_.files.size()).c_str(), printable(directory_).c_str(),
                index_.made.c_str());
    if (left_out_ > 0) print_error("edgecase: %zu series were left out\n", left_out_);
    return exit_code_;
  }

 private:
  // Where the one before was broken off, if the daemon still holds its moment; else anew.
  Status begin() {
    EC_TRY(make_export_directory(directory_));
    EC_TRY(check_is_new());
    EC_TRY(progress_.open_at(progress_path(directory_)));
    if (const Status is_new = check_is_new(); !is_new.ok()) {
      // Made just now, or by one that ended before it removed this.
      unlink(progress_path(directory_).c_str());
      return is_new;
    }
    Result<BackupIndex> begun = read_progress(directory_);
    if (begun.ok()) {
      index_ = std::move(begun).value();
      print_error("edgecase: %s holds a backup of %s that was broken off after %zu series\n",
                  printable(directory_).c_str(), printable(index_.made).c_str(),
                  index_.files.size());
      const Status held = list_series();
      if (held.ok()) {
        print_error("edgecase: going on with it\n");
        return progress_.begin(true);
      }
      if (held.code() != StatusCode::NotFound) return held;
      print_error("edgecase: the daemon holds its moment no more, beginning anew\n");
      // Files of series that are no more are not to be left in the new one.
      outdated_ = std::move(index_.files);
    }
    return begin_anew();
  }

  Status check_is_new() const {
    const Result<BackupIndex> whole = read_index(directory_);
    if (whole.ok())
      return already_exists(directory_ + " holds a backup of " + whole->made +
                            ", use another directory");
    return whole.status().code() == StatusCode::NotFound ? ok() : whole.status();
  }

  // A moment that nobody reads any more makes way after a few seconds, that of a backup that was
  // killed too.
  Result<std::string> pin_moment(const std::string& path) {
    for (int waited_s = 0;; ++waited_s) {
      auto answer = client_.post(path, "", "text/plain");
      if (answer.status().code() != StatusCode::Busy || waited_s == kWaitForMomentS) return answer;
      if (waited_s == 0)
        print_error("edgecase: other backups are on their way, waiting for one of them\n");
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

  Status begin_anew() {
    Parameters parameters;
    if (!location_.empty()) parameters.emplace_back("location", location_);
    EC_ASSIGN_OR_RETURN(const std::string body,
                        pin_moment(path_with(wire::routes::kBackups, parameters)));
    const auto json = nlohmann::ordered_json::parse(body, nullptr, false);
    index_ = {};
    if (json.is_object()) {
      index_.moment = text_field(json, "moment");
      index_.made = text_field(json, "made");
      index_.state = json.value("state", nlohmann::ordered_json::object());
    }
    if (index_.moment.empty()) return io_error("the daemon's answer names no moment");
    EC_TRY(progress_.begin(false));
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
      if (done.contains(series.path())) continue;
      const Status saved = save(series, progress);
      if (saved.ok()) continue;
      // Released for an erasure, or to make room for another backup.
      if (ends_all(saved) || saved.code() == StatusCode::NotFound) return saved;
      print_error("edgecase: left out: %s %s/%s: %s\n", printable(series.namespace_name).c_str(),
                  printable(series.device).c_str(), printable(series.sensor).c_str(),
                  printable(saved.message()).c_str());
      ++left_out_;
      if (exit_code_ != wire::kExitCorruption)
        exit_code_ =
            saved.code() == StatusCode::Corruption ? wire::kExitCorruption : wire::kExitPartly;
    }
    return ok();
  }

  // Files without a whole name that a process left which was killed: this one alone writes here.
  void clean(const DirectoryBeneath& folder, const std::string& name) {
    if (std::exchange(cleaned_, name) == name) return;
    std::vector<std::string> left;
    if (DIR* const listing = opendir(folder.path().c_str())) {
      while (const dirent* const entry = readdir(listing)) {
        const std::string_view each = entry->d_name;
        if (each.starts_with(".edgecase-") && each.ends_with(".partial")) left.emplace_back(each);
      }
      closedir(listing);
    }
    for (const std::string& each : left) unlink((folder.path() + "/" + each).c_str());
  }

  void remove_outdated() {
    std::set<std::string> saved;
    for (const BackupFile& file : index_.files) saved.insert(file.path);
    for (const BackupFile& file : outdated_) {
      const std::size_t first = file.path.find('/');
      const std::size_t last = file.path.rfind('/');
      if (saved.contains(file.path) || first == std::string::npos || first == last) continue;
      const std::string space = file.path.substr(0, first);
      const std::string device = file.path.substr(first + 1, last - first - 1);
      if (device.find('/') != std::string::npos) continue;
      const auto folder = DirectoryBeneath::open(directory_, {space, device});
      if (folder.ok()) unlink((folder->path() + file.path.substr(last)).c_str());
    }
  }

  Status save(const Series& series, Progress& progress) {
    const std::string path = series.path();
    const std::size_t first = path.find('/');
    const std::size_t last = path.rfind('/');
    EC_ASSIGN_OR_RETURN(
        const DirectoryBeneath folder,
        DirectoryBeneath::open(directory_,
                               {path.substr(0, first), path.substr(first + 1, last - first - 1)}));
    clean(folder, path.substr(0, last));
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
         {"tiers", "true"},
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
    remove_outdated();
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
  std::vector<BackupFile> outdated_;  // of an earlier moment
  std::string cleaned_;               // the folder that was looked through last
  std::size_t left_out_ = 0;
  int exit_code_ = wire::kExitOk;
};

}  // namespace

int run_backup(const BackupRequest& request) {
  return Backup(request).run();
}

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson file_json(const BackupFile& file) {
  return {{"file", file.path}, {"readings", file.readings}, {"bytes", file.size_bytes}};
}

// False: no entry of a file, or one outside the directory.
bool parse_file(const OrderedJson& json, BackupFile& file) {
  if (!json.is_object()) return false;
  file.path = text_field(json, "file");
  file.readings = count_field(json, "readings");
  file.size_bytes = count_field(json, "bytes");
  const std::string within = "/" + file.path + "/";
  return !file.path.empty() && file.path.front() != '/' && within.find("/../") == std::string::npos;
}

}  // namespace

std::uint64_t BackupIndex::readings() const {
  std::uint64_t count = 0;
  for (const BackupFile& file : files) count += file.readings;
  return count;
}

std::string index_path(const std::string& directory) {
  return directory + "/backup.json";
}

std::string progress_path(const std::string& directory) {
  return directory + "/.edgecase-backup";
}

Result<BackupIndex> read_index(const std::string& directory) {
  const std::string path = index_path(directory);
  EC_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("format") || !json["format"].is_number_integer()) {
    return corruption(path + ": is no index of a backup");
  }
  if (json["format"].get<int>() > kBackupFormat) {
    return unsupported(path + ": was made by a newer version of EdgeCase");
  }
  BackupIndex index;
  index.moment = text_field(json, "moment");
  index.made = text_field(json, "made");
  index.state = json.value("state", OrderedJson::object());
  for (const OrderedJson& each : json.value("files", OrderedJson::array())) {
    BackupFile file;
    if (!parse_file(each, file)) return corruption(path + ": names a file that cannot be");
    index.files.push_back(std::move(file));
  }
  return index;
}

Status write_index(const std::string& directory, const BackupIndex& index) {
  const bool has_origins = !index.state.value("origins", OrderedJson::array()).empty();
  OrderedJson json = {{"format", has_origins ? kBackupFormat : 1},
                      {"edgecase", wire::version()},
                      {"made", index.made},
                      {"moment", index.moment},
                      {"readings", index.readings()},
                      {"state", index.state},
                      {"files", OrderedJson::array()}};
  for (const BackupFile& file : index.files) json["files"].push_back(file_json(file));
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(index_path(directory)));
  EC_TRY(file.write(json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n"));
  return file.commit();
}

Result<BackupIndex> read_progress(const std::string& directory) {
  EC_ASSIGN_OR_RETURN(const std::string text, read_small_file(progress_path(directory)));
  BackupIndex index;
  std::size_t begin = 0;
  for (bool first = true; begin < text.size(); first = false) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const OrderedJson json = OrderedJson::parse(text.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    BackupFile file;
    if (first && json.is_object()) {
      index.moment = text_field(json, "moment");
      index.made = text_field(json, "made");
      index.state = json.value("state", OrderedJson::object());
    } else if (!first && parse_file(json, file)) {
      index.files.push_back(std::move(file));
    }
  }
  if (index.moment.empty()) return corruption(progress_path(directory) + ": says nothing");
  return index;
}

std::string progress_head(const BackupIndex& index) {
  return OrderedJson{{"moment", index.moment}, {"made", index.made}, {"state", index.state}}.dump(
             -1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

std::string progress_line(const BackupFile& file) {
  return file_json(file).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

namespace {

constexpr std::size_t kOutputBytes = 64u << 10;
constexpr std::size_t kInputMaxBytes = 1u << 30;
constexpr int kGzipOnly = 15 + 16;
// Readings are repetitive: higher levels cost much and gain little.
constexpr int kLevel = 3;
constexpr int kMemoryLevel = 8;

}  // namespace

struct GzipFile::State {
  explicit State(TargetFile target) : file(std::move(target)) {}
  ~State() {
    if (begun) deflateEnd(&stream);
  }

  TargetFile file;
  std::vector<char> output = std::vector<char>(kOutputBytes);
  z_stream stream{};
  bool begun = false;
  std::uint64_t size_bytes = 0;
};

GzipFile::GzipFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipFile::~GzipFile() = default;

Result<std::unique_ptr<GzipFile>> GzipFile::create(const std::string& path,
                                                   const std::string& shown) {
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(path, shown));
  auto state = std::make_unique<State>(std::move(file));
  state->begun = deflateInit2(&state->stream, kLevel, Z_DEFLATED, kGzipOnly, kMemoryLevel,
                              Z_DEFAULT_STRATEGY) == Z_OK;
  if (!state->begun) return busy("no memory to write " + path);
  return std::unique_ptr<GzipFile>(new GzipFile(std::move(state)));
}

Status GzipFile::deflate(std::string_view bytes, int flush) {
  State& s = *state_;
  s.stream.next_in =
      const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(bytes.data())));
  s.stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    s.stream.next_out = static_cast<Bytef*>(static_cast<void*>(s.output.data()));
    s.stream.avail_out = static_cast<uInt>(s.output.size());
    ::deflate(&s.stream, flush);
    const std::size_t made = s.output.size() - s.stream.avail_out;
    EC_TRY(s.file.write({s.output.data(), made}));
    s.size_bytes += made;
  } while (s.stream.avail_out == 0);
  return ok();
}

Status GzipFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kInputMaxBytes);
    EC_TRY(deflate(piece, Z_NO_FLUSH));
    bytes.remove_prefix(piece.size());
  }
  return ok();
}

Status GzipFile::commit() {
  EC_TRY(deflate({}, Z_FINISH));
  return state_->file.commit();
}

std::uint64_t GzipFile::size_bytes() const {
  return state_->size_bytes;
}

}  // namespace edgecase::cli
