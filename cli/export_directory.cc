#include "target_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "daemon_client.h"
#include "edgecase/machine.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/contract.h"
#include "wire/reading_format.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// As <linux/openat2.h> has it, which older systems do not.
struct OpenHow {
  std::uint64_t flags = 0;
  std::uint64_t mode = 0;
  std::uint64_t resolve = 0;
};
constexpr std::uint64_t kResolveNoSymlinks = 0x04;
constexpr std::uint64_t kResolveBeneath = 0x08;
#ifdef SYS_openat2
constexpr long kOpenat2 = SYS_openat2;
#else
constexpr long kOpenat2 = 437;  // on every architecture
#endif

int open_each_name(int parent, const std::string& name) {
  return openat(parent, name.c_str(), kDirectory | O_NOFOLLOW);
}

// EPERM: a sandbox that does not know the call.
int open_by_kernel(int parent, const std::string& name) {
  OpenHow how;
  how.flags = kDirectory;
  how.resolve = kResolveBeneath | kResolveNoSymlinks;
  const long descriptor = syscall(kOpenat2, parent, name.c_str(), &how, sizeof how);
  if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(descriptor);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    print_error(
        "edgecase: this kernel has no openat2() (Linux 5.6): links are looked for name by "
        "name\n");
  }
  return open_each_name(parent, name);
}

bool is_link(int parent, const std::string& name) {
  struct stat found {};
  return fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
}

// Creates it, durably, where there is none.
Status make_below(int parent, const std::string& name, const std::string& shown) {
  if (mkdirat(parent, name.c_str(), 0777) != 0) {
    return errno == EEXIST ? ok() : file_failure(shown, errno);
  }
  // Some file systems cannot sync a directory.
  return fsync(parent) == 0 || errno == EINVAL ? ok() : file_failure(shown, errno);
}

}  // namespace

Result<DirectoryBeneath> DirectoryBeneath::open(const std::string& root,
                                                std::initializer_list<std::string> names,
                                                LinkCheck check) {
  DirectoryBeneath held(::open(root.c_str(), kDirectory));
  if (held.descriptor_ < 0) return file_failure(root, errno);
  std::string shown = root;
  for (const std::string& name : names) {
    shown += "/" + name;
    EC_TRY(make_below(held.descriptor_, name, shown));
    DirectoryBeneath next(check == LinkCheck::Kernel ? open_by_kernel(held.descriptor_, name)
                                                     : open_each_name(held.descriptor_, name));
    if (next.descriptor_ < 0) {
      const int error = errno;
      if (is_link(held.descriptor_, name)) {
        return Status::of_file(StatusCode::NotAllowed, {}, shown,
                               ": is a link, and nothing is written through links; remove it");
      }
      return file_failure(shown, error);
    }
    std::swap(held.descriptor_, next.descriptor_);
  }
  return held;
}

DirectoryBeneath::~DirectoryBeneath() {
  if (descriptor_ >= 0) close(descriptor_);
}

DirectoryBeneath::DirectoryBeneath(DirectoryBeneath&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string DirectoryBeneath::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

bool DirectoryBeneath::holds_file(const std::string& name) const {
  struct stat found {};
  return fstatat(descriptor_, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(found.st_mode);
}
namespace {

struct SeriesRow {
  std::string namespace_name, device, sensor;
  std::uint64_t count = 0;
};

// Creates it, durably, where there is none.
Status make_directory(const std::string& path, const std::string& parent) {
  if (mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return ok();
    const std::string message = path + ": " + std::strerror(errno);
    return errno == EACCES || errno == EPERM ? not_allowed(message) : io_error(message);
  }
  const int fd = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return io_error(parent + ": " + std::strerror(errno));
  const bool synced = fsync(fd) == 0 || errno == EINVAL;
  close(fd);
  return synced ? ok() : io_error(parent + ": cannot be synced");
}

bool exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

// A file system takes 255 bytes; behind the name come endings, a temporary one too.
constexpr std::size_t kFileNameMaxBytes = 200;
constexpr std::size_t kHashDigits = 32;

// Two hashes FNV-1a of 64 bits, in hexadecimal digits.
std::string hash_text(std::string_view name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint64_t hash : {0xcbf29ce484222325u, 0x84222325cbf29ce4u}) {
    for (const char c : name) {
      hash ^= static_cast<unsigned char>(c);
      hash *= 0x100000001b3u;
    }
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[hash >> shift & 15];
  }
  return text;
}

class Exporter {
 public:
  explicit Exporter(const DirectoryExport& request)
      : request_(request), directory_(request.directory), client_(request.connection) {
    while (directory_.size() > 1 && directory_.ends_with('/')) directory_.pop_back();
  }

  int run() {
    stop_on_interrupt("\nedgecase: stopped, nothing was exported\n", wire::kExitFailed);
    if (const Status status = prepare(); !status.ok()) return report_failure(status);
    Result<std::vector<SeriesRow>> series = list_series();
    if (!series.ok()) return report_failure(series.status());
    std::uint64_t total = 0;
    for (const SeriesRow& row : *series) total += row.count;
    Progress progress("export", range_known() ? 0 : total, "readings");
    std::size_t done = 0;
    Status first_left_out;
    for (const SeriesRow& row : *series) {
      const Status status = export_series(row, progress);
      if (!status.ok() && ends_all(status)) {
        progress.finish();
        return report_partly(status, done, series->size());
      }
      if (!status.ok()) {
        print_error("edgecase: left out: %s %s/%s: %s\n", printable(row.namespace_name).c_str(),
                    printable(row.device).c_str(), printable(row.sensor).c_str(),
                    printable(status.message()).c_str());
        if (first_left_out.ok() || status.code() == StatusCode::Corruption) first_left_out = status;
        continue;
      }
      if (++done == 1) {
        stop_on_interrupt("\nedgecase: stopped, --resume continues\n", wire::kExitPartly);
      }
    }
    progress.finish();
    print_error("%s series exported to %s\n", count_text(done).c_str(), directory_.c_str());
    if (first_left_out.ok()) return wire::kExitOk;
    return first_left_out.code() == StatusCode::Corruption ? wire::kExitCorruption
                                                           : wire::kExitPartly;
  }

 private:
  bool range_known() const { return !from_.empty() || !to_.empty(); }

  static int report_partly(const Status& status, std::size_t done, std::size_t all) {
    const int exit_code = report_failure(status);
    if (done == 0) return exit_code;
    print_error("edgecase: %zu of %zu series exported, --resume continues\n", done, all);
    return wire::kExitPartly;
  }

  // The directory, and the note of what is exported into it.
  Status prepare() {
    const RangeArguments& range = request_.range;
    EC_ASSIGN_OR_RETURN(
        from_, absolute_time(range.since.empty() ? range.from : "-" + range.since, range.zone));
    EC_ASSIGN_OR_RETURN(to_, absolute_time(range.to, range.zone));
    EC_TRY(make_export_directory(directory_));
    const std::string note = directory_ + "/.edgecase-export.json";
    nlohmann::json asked = {{"namespace", request_.namespaces.parameter()},
                            {"selector", selection_json()},
                            {"format", request_.format},
                            {"from_given", range.since.empty() ? range.from : range.since},
                            {"to_given", range.to}};
    if (request_.tiers) asked["tiers"] = true;
    if (request_.mode == ExportMode::Resume && exists(note)) {
      std::ifstream file(note);
      std::stringstream text;
      text << file.rdbuf();
      const nlohmann::json kept = nlohmann::json::parse(text.str(), nullptr, false);
      if (!kept.is_object() || kept.value("asked", nlohmann::json()) != asked) {
        return invalid_argument(directory_ +
                                " holds an export of something else, use another directory");
      }
      from_ = text_field(kept, "from");
      to_ = text_field(kept, "to");
      return ok();
    }
    EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(note));
    EC_TRY(
        file.write(nlohmann::json{{"asked", asked}, {"from", from_}, {"to", to_}}.dump() + "\n"));
    return file.commit();
  }

  // One selector is its text, as in notes of earlier exports.
  nlohmann::json selection_json() const {
    const wire::SelectionTexts& asked = request_.selection;
    if (asked.selectors.size() == 1 && !has_identity(asked)) return asked.selectors.front();
    return {{"selectors", asked.selectors},
            {"measurements", asked.measurements},
            {"tags", asked.tags},
            {"fields", asked.fields}};
  }

  Result<std::vector<SeriesRow>> list_series() {
    Parameters parameters{
        {"ns", request_.namespaces.parameter()}, {"purpose", request_.purpose}, {"export", "true"}};
    append_selection(request_.selection, parameters);
    EC_ASSIGN_OR_RETURN(const std::string body,
                        client_.get_small(path_with(wire::routes::kSeries, parameters)));
    const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
    if (!document.is_object() || !document.contains("series")) {
      return io_error("the daemon's answer is no list");
    }
    std::vector<SeriesRow> rows;
    for (const nlohmann::json& row : document["series"]) {
      rows.push_back({text_field(row, "namespace"), text_field(row, "device"),
                      text_field(row, "sensor"), count_field(row, "count")});
    }
    return rows;
  }

  Status export_series(const SeriesRow& row, Progress& progress) {
    const std::string space = file_name_of(row.namespace_name);
    const std::string device = file_name_of(row.device);
    const std::string name = file_name_of(row.sensor) + "." + request_.format;
    EC_ASSIGN_OR_RETURN(const DirectoryBeneath folder,
                        DirectoryBeneath::open(directory_, {space, device}));
    if (request_.mode == ExportMode::Resume && folder.holds_file(name)) {
      progress.add(row.count, 0);
      return ok();
    }
    const std::string shown = directory_ + "/" + space + "/" + device + "/" + name;
    Parameters parameters = {
        {"ns", row.namespace_name},
        {"select", wire::escape_name(row.device) + "/" + wire::escape_name(row.sensor)},
        {"format", request_.format},
        {"export", "true"}};
    if (!request_.purpose.empty()) parameters.emplace_back("purpose", request_.purpose);
    if (!from_.empty()) parameters.emplace_back("from", from_);
    if (!to_.empty()) parameters.emplace_back("to", to_);
    if (request_.tiers) parameters.emplace_back("tiers", "true");

    EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(folder.path() + "/" + name, shown));
    Status written;
    if (request_.namespaces.all && request_.format == "line") {
      std::string context;
      wire::append_line_context(row.namespace_name, context);
      EC_TRY(file.write(context));
    }
    const Status status =
        client_.get(path_with(wire::routes::kQuery, parameters), [&](std::string_view piece) {
          written = file.write(piece);
          progress.add(is_columnar(request_.format) ? 0 : lines_in(piece), piece.size());
          return written.ok();
        });
    EC_TRY(written);
    EC_TRY(status);
    return file.commit();
  }

  const DirectoryExport& request_;
  std::string directory_;
  DaemonClient client_;
  std::string from_;  // absolute, or empty
  std::string to_;
};

}  // namespace

Status make_export_directory(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  const std::size_t slash = directory.rfind('/');
  return make_directory(directory, slash == std::string::npos ? "."
                                   : slash == 0               ? "/"
                                                              : directory.substr(0, slash));
}

int export_to_directory(const DirectoryExport& request) {
  return Exporter(request).run();
}

bool ends_all(const Status& status) {
  switch (status.code()) {
    case StatusCode::Unavailable:  // the daemon has gone
    case StatusCode::OutOfSpace:
    case StatusCode::Cancelled: return true;
    default: return false;
  }
}

std::string file_name_of(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '%') {
      out += "%25";
    } else if (c == '.' && out.empty()) {
      out += "%2E";
    } else {
      out += c;
    }
  }
  if (out.size() <= kFileNameMaxBytes) return out;
  // Cut, with a hash of all of it. Not within a character: manifests are UTF-8.
  std::size_t end = kFileNameMaxBytes - 1 - kHashDigits;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
  const std::string hash = hash_text(name);
  return out.substr(0, end) + "~" + hash;
}

}  // namespace edgecase::cli
