#include "app/store_faults.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "audit/audit_log.h"
#include "audit/page.h"
#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "edgecase/machine.h"
#include "query/left_out.h"
#include "wire/json_text.h"
#include "wire/reading.h"

namespace edgecase::app {
namespace {

using audit::Mark;

constexpr std::size_t kFaultsMax = 20;  // told

class Look {
 public:
  explicit Look(const OfflineContents& records) : records_(records) {}

  // `of`: who says that the log has reached `mark`.
  void claim(const std::string& of, const Mark& mark) { claims_.push_back({of, mark, false}); }
  void fault(std::string what) {
    if (faults_.size() < kFaultsMax) faults_.push_back(std::move(what));
  }

  std::vector<std::string> run() {
    begin();
    const Bytes first = audit::page_key(0);
    const Bytes end = audit::page_key(UINT64_MAX);
    for (auto at = records_.lower_bound(first); at != records_.end() && at->first < end; ++at)
      look_at(audit::sequence_of(at->first), at->second);
    for (const Claim& each : claims_) {
      if (each.is_seen || each.mark.sequence < first_) continue;
      const std::string record = "record " + std::to_string(each.mark.sequence);
      fault(each.mark.sequence > last_ ? "the end of the log is missing: " + each.of + " names " +
                                             record + ", the last one is " + std::to_string(last_)
                                       : record + " is not the one that " + each.of + " names");
    }
    return std::move(faults_);
  }

 private:
  struct Claim {
    std::string of;
    Mark mark;
    bool is_seen = false;
  };

  // Where the log begins, and what it says of its end.
  void begin() {
    for (const char* key : {audit::kAnchorKey, audit::kHeadKey}) {
      const auto found = records_.find(ByteView(key));
      if (found == records_.end()) continue;
      const auto mark = audit::decode_mark(found->second);
      if (!mark.ok()) {
        fault(mark.status().message());
      } else if (std::string_view(key) == audit::kHeadKey) {
        claim("the checkpoint beside it", *mark);
      } else {
        first_ = mark->sequence;
        previous_ = mark->hash;
      }
    }
    last_ = first_ - 1;
  }

  void look_at(std::uint64_t last, ByteView value) {
    const auto page = audit::decode_page(last, value);
    if (!page.ok()) {
      fault(page.status().message());
      last_ = last;
      return;
    }
    const audit::PageHead& head = page->head;
    const std::string records =
        "records " + std::to_string(head.first) + " to " + std::to_string(head.last);
    if (head.first > last_ + 1) {
      fault("records " + std::to_string(last_ + 1) + " to " + std::to_string(head.first - 1) +
            " are missing");
    } else if (audit::chain_hash(previous_, last, audit::body_of(value)) != head.hash) {
      fault(records + " were changed, or moved");
    }
    for (Claim& each : claims_)
      if (each.mark.sequence == last && each.mark.hash == head.hash) each.is_seen = true;
    previous_ = head.hash;
    last_ = last;
  }

  const OfflineContents& records_;
  std::vector<Claim> claims_;
  std::vector<std::string> faults_;
  std::uint64_t first_ = 1, last_ = 0;
  auth::Digest previous_{};
};

}  // namespace

Result<std::vector<std::string>> audit_faults(FileSystem& file_system, const Options& options) {
  const auto file = audit::read_head_file(file_system, options.values_directory);
  auto records = read_offline(file_system, options, audit::kAuditNamespace);
  const bool has_log = records.status().code() != StatusCode::NotFound;
  if (has_log) EC_TRY(records.status());
  if (!has_log && file.ok() && !*file) return std::vector<std::string>();
  const OfflineContents none;
  Look look(has_log ? *records : none);
  const std::string of = std::string(audit::kHeadFileName) + " beside the values";
  if (!file.ok()) {
    look.fault(file.status().message());
  } else if (*file) {
    look.claim(of, **file);
  } else if (has_log && records->contains(ByteView(audit::kHeadKey))) {
    look.fault(of + " is missing");
  }
  return look.run();
}

namespace {

using catalog::RecordKind;

struct Lost {
  std::string namespace_name;
  std::uint64_t readings = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
};
// Namespace, device, sensor; 0: several of the device.
using Series = std::tuple<NamespaceId, std::uint32_t, std::uint32_t>;

std::string name_of(const OfflineContents& records, RecordKind kind, const Series& series) {
  const auto& [id, device, sensor] = series;
  const std::uint32_t number = kind == RecordKind::Device ? device : sensor;
  const auto record = records.find(catalog::encode_record_key({kind, id, device, sensor}));
  if (record != records.end()) {
    const auto name = catalog::decode_record_field(record->second, catalog::FieldTag::Name);
    if (name.ok()) return std::string(*name);
  }
  return "number " + std::to_string(number) + " (its name is lost)";
}

void add(const LostEntries& each, std::map<Series, Lost>& all) {
  wire::ReadingKey first;
  wire::ReadingKey last;
  if (!wire::is_readable_namespace(each.namespace_name) || each.entries == 0 ||
      !wire::decode_reading_key(each.first, first) || !wire::decode_reading_key(each.last, last) ||
      first.device != last.device)
    return;
  const bool one = first.sensor == last.sensor;
  Lost& lost = all[{each.namespace_id, first.device, one ? first.sensor : 0}];
  lost.namespace_name = each.namespace_name;
  lost.readings += each.entries;
  if (!one) return;  // each of its sensors has times of its own
  lost.first_ns = std::min(lost.first_ns, first.time_ns);
  lost.last_ns = std::max(lost.last_ns, last.time_ns);
}

}  // namespace

std::vector<std::string> lost_readings(FileSystem& file_system, const Options& options,
                                       std::span<const LostEntries> lost) {
  std::map<Series, Lost> all;
  for (const LostEntries& each : lost) add(each, all);
  std::vector<std::string> lines;
  if (all.empty()) return lines;
  const auto read = read_offline(file_system, options, catalog::kCatalogNamespace);
  const OfflineContents records = read.ok() ? *read : OfflineContents();
  for (const auto& [series, each] : all) {
    const auto& [id, device, sensor] = series;
    std::string line = "namespace " + each.namespace_name + ", device " +
                       name_of(records, RecordKind::Device, {id, device, 0}) + ", ";
    line +=
        sensor == 0 ? "several sensors" : "sensor " + name_of(records, RecordKind::Sensor, series);
    line += ": " + std::to_string(each.readings) + " readings";
    if (sensor != 0)
      line += " from " + wire::time_text(each.first_ns) + " to " + wire::time_text(each.last_ns);
    lines.push_back(std::move(line));
  }
  return lines;
}

void tell_recovered(const catalog::Catalog& catalog, observe::Logger& logger) {
  const catalog::RecoveredNames names = catalog.recovered();
  if (catalog.is_damaged())
    logger.warning("catalog",
                   "records of it are damaged: devices whose names are lost go by names that begin "
                   "with recovered-, and retention rules stay as they are, until edgecase check "
                   "--repair, with the service stopped, brings back what can be had");
  if (names.devices == 0 && names.series == 0) return;
  logger.warning("catalog", "the names of " + std::to_string(names.devices) + " devices and " +
                                std::to_string(names.series) +
                                " series were lost: their readings are under names "
                                "that begin with recovered-");
}

// Which devices and times went with files that were damaged when the store was opened.
void tell_damage(const Engine& engine, const catalog::Catalog& catalog, observe::Logger& logger) {
  constexpr std::size_t kToldOfFileMax = 8;
  for (const query::Damage& damage : query::find_damage(engine, catalog)) {
    std::size_t told = 0;
    for (const query::LostSeries& lost : damage.lost) {
      if (told++ == kToldOfFileMax) break;
      std::string line = damage.file.path + " (" + damage.file.problem + "): lost of namespace " +
                         lost.namespace_name;
      if (!lost.device.empty()) line += ", " + lost.device + "/" + lost.sensor;
      if (lost.from_ns != INT64_MIN) line += " from " + wire::time_text(lost.from_ns);
      if (lost.to_ns != INT64_MAX) line += " to " + wire::time_text(lost.to_ns);
      logger.warning("damage", line);
    }
    if (told > kToldOfFileMax || damage.lost_more)
      logger.warning("damage", damage.file.path + ": and others; edgecase status names more");
  }
}

namespace {

// What helps where a file of the store cannot be opened: most often it was made by root, with the
// service stopped.
std::string remedy_of_rights(const Status& failure) {
  std::string owner = "another user";
  struct stat found = {};
  const std::string path(failure.file());
  if (!path.empty() && ::stat(path.c_str(), &found) == 0)
    owner = "uid " + std::to_string(found.st_uid);
  return "the daemon runs as uid " + std::to_string(::geteuid()) + ", and the file is " + owner +
         "'s: chown -R both directories of the store to the daemon's user (edgecase)";
}

std::string remedy_of(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::NotAllowed:
      return failure.system_error() != 0 ? remedy_of_rights(failure) : std::string();
    case StatusCode::OutOfSpace: return "free space on that drive";
    case StatusCode::Unavailable: return "mount it, or correct storage.values";
    case StatusCode::AlreadyExists:
      return "stop what has it, or set another http.socket, http.listen or mqtt.listen";
    case StatusCode::Locked: return "stop the other daemon, or use another storage.metadata";
    case StatusCode::Unsupported:
      return "install the version of EdgeCase that wrote the store, or a later one";
    case StatusCode::Corruption: return "see what edgecase check says with the service stopped";
    case StatusCode::IoError: return "see to the drive, or to the rights of the daemon's user";
    default: return "";
  }
}

}  // namespace

std::string with_remedy(const Status& failure) {
  const std::string remedy = limit_of_error(failure.system_error()).empty()
                                 ? remedy_of(failure)
                                 : "raise that limit (LimitFSIZE=, LimitNOFILE= of the service)";
  return failure.to_string() + (remedy.empty() ? "" : "; to do: " + remedy);
}

std::string drive_trouble(const Stats& stats) {
  const bool is_of_metadata = !stats.metadata.degraded.ok();
  const Status& failure = is_of_metadata ? stats.metadata.degraded : stats.values.degraded;
  if (failure.ok()) return {};
  return std::string(is_of_metadata ? "the metadata" : "the values") +
         " drive takes no writes: " + with_remedy(failure);
}

namespace {

Status prepare(const config::Configuration& configuration, std::string_view key,
               const std::string& path, struct stat& found) {
  if (mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    if (errno == ENOENT) {
      return configuration.error(key, path +
                                          " cannot be made, its parent does not exist; make it, "
                                          "or mount the drive that holds it");
    }
    // A read-only parent is none of our business when the directory is there.
    const int error = errno;
    if (stat(path.c_str(), &found) != 0) {
      return configuration.error(key, path + " cannot be made: " + std::strerror(error) +
                                          ", use a directory that the daemon may write");
    }
  }
  if (stat(path.c_str(), &found) != 0) {
    return configuration.error(key, path + " cannot be reached: " + std::strerror(errno) +
                                        ", use a directory that the daemon may write");
  }
  if (!S_ISDIR(found.st_mode)) {
    return configuration.error(key, path + " is no directory, use one");
  }
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return configuration.error(key, path + " cannot be written: " + std::strerror(errno) +
                                        ", use a directory that the daemon may write");
  }
  return ok();
}

}  // namespace

Status prepare_directories(const config::Configuration& configuration) {
  const config::StorageSettings& storage = configuration.settings.storage;
  struct stat metadata {};
  struct stat values {};
  EC_TRY(prepare(configuration, "storage.metadata", storage.metadata, metadata));
  // The drive of a store that is there already may come later; what it is mounted on stays empty.
  struct stat current {};
  if (stat((storage.metadata + "/CURRENT").c_str(), &current) != 0) {
    EC_TRY(prepare(configuration, "storage.values", storage.values, values));
  } else if (stat(storage.values.c_str(), &values) != 0) {
    return ok();
  }
  if (metadata.st_dev == values.st_dev && metadata.st_ino == values.st_ino) {
    return configuration.error("storage.values", storage.values + " and " + storage.metadata +
                                                     " are the same directory, use two");
  }
  return ok();
}

}  // namespace edgecase::app
