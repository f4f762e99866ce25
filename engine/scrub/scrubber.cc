#include "scrub/scrubber.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "file/file_names.h"
#include "metadata/umeta_table.h"
#include "table/record_cursor.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kPieceBytes = 1u << 20;
constexpr std::int64_t kSecondNs = 1'000'000'000;
// Until it is asked again whether users write little, the drive is back, or there is a file.
constexpr std::int64_t kWaitNs = kSecondNs;
// How long what users wrote before counts.
constexpr std::int64_t kSeenMaxNs = 10 * kSecondNs;
constexpr std::int64_t kEmptyWaitMaxNs = 60 * kSecondNs;

bool names(const Version& version, FileLayer layer, FileNumber number) {
  if (layer == FileLayer::Values) return version.value_files.contains(number);
  return std::any_of(version.tables.begin(), version.tables.end(),
                     [&](const TablePointer& table) { return table->number == number; });
}

bool names(const Version& version, FileNumber number) {
  return names(version, FileLayer::Values, number) || names(version, FileLayer::Metadata, number);
}

bool is_damage(const Status& read) {
  return read.code() == StatusCode::Corruption || read.code() == StatusCode::IoError;
}

constexpr const char* kWrongChecksum = "wrong checksum of the whole file";

Status wrong_size(const RandomAccessFile& file, std::uint64_t wanted_bytes) {
  return corruption("has " + std::to_string(file.size_bytes()) + " bytes, the manifest says " +
                    std::to_string(wanted_bytes));
}

}  // namespace

Scrubber::Scrubber(ScrubberContext context)
    : context_(std::move(context)),
      random_(static_cast<std::uint64_t>(context_.environment.clock.wall_ns())) {}

void Scrubber::start() {
  const std::int64_t interval_ns = context_.options.scrub_interval_ns;
  if (interval_ns == 0) return;
  manifest_due_ns_ = context_.environment.clock.boot_ns() + interval_ns;
  schedule_run(std::min(kStartDelayMaxNs, interval_ns / 16));
}

void Scrubber::schedule_run(std::int64_t delay_ns) {
  context_.schedule(delay_ns, [this] { run(); });
}

void Scrubber::run() {
  if (!is_quiet()) return schedule_run(kWaitNs);
  if (!reading_) {
    look_at_manifest();
    return begin_next();
  }
  const Status read = read_piece();
  if (!read.ok() || reading_->done == reading_->target.size_bytes) return finish(read);
  schedule_run(static_cast<std::int64_t>(kPieceBytes * kSecondNs / kBytesPerSecondMax));
}

// What was written over hours says nothing of now.
bool Scrubber::is_quiet() {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  const std::int64_t elapsed_ns = now_ns - seen_ns_;
  if (elapsed_ns < kWaitNs) return quiet_;
  const std::uint64_t written = context_.written_bytes();
  const double may_be_written = static_cast<double>(elapsed_ns) / static_cast<double>(kSecondNs) *
                                static_cast<double>(kIdleBytesPerSecond);
  quiet_ = elapsed_ns <= kSeenMaxNs && static_cast<double>(written - seen_bytes_) <= may_be_written;
  seen_ns_ = now_ns;
  seen_bytes_ = written;
  return quiet_;
}

// It was written anew when the process began.
void Scrubber::look_at_manifest() {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  if (now_ns < manifest_due_ns_) return;
  manifest_due_ns_ = now_ns + context_.options.scrub_interval_ns;
  if (const Status damage = context_.scrub_manifest(); !damage.ok())
    context_.environment.listener.on_corruption(damage);
}

// A file takes the share of the interval that its size is of all sizes: whenever the process began,
// each is read once in about an interval, and nobody has to keep how far it was.
void Scrubber::begin_next() {
  const std::int64_t interval_ns = context_.options.scrub_interval_ns;
  std::uint64_t total_bytes = 0;
  auto target = next_target(*context_.versions.current(), total_bytes);
  if (!target) return schedule_run(std::min(interval_ns, kEmptyWaitMaxNs));
  cursor_ = target->number;
  const double share = static_cast<double>(target->size_bytes) /
                       static_cast<double>(std::max<std::uint64_t>(total_bytes, 1));
  pause_ns_ = static_cast<std::int64_t>(share * static_cast<double>(interval_ns));
  reading_ = Reading{.target = *std::move(target), .file = nullptr, .done = 0, .checksum = 0};
  if (const Status opened = open_target(); !opened.ok()) return finish(opened);
  if (reading_->target.has_blanks) return finish(ok());
  schedule_run(0);
}

auto Scrubber::next_target(const Version& version, std::uint64_t& total_bytes)
    -> std::optional<Target> {
  FileNumber newest = 0;
  std::optional<Target> next;
  std::optional<Target> first;
  const auto consider = [&](const auto& file) {
    total_bytes += file.size_bytes;
    newest = std::max(newest, file.number);
    if (!first || file.number < first->number) first = target_of(file);
    if (file.number > cursor_ && (!next || file.number < next->number)) next = target_of(file);
  };
  const auto consider_all = [&] {
    total_bytes = 0;
    for (const TablePointer& table : version.tables) consider(*table);
    for (const auto& [number, file] : version.value_files) consider(file);
  };
  consider_all();
  if (!first) return std::nullopt;
  if (!std::exchange(begun_, true)) {
    // Somewhere: a board that is started each day would read its first files again and again.
    cursor_ = random_.next() % newest;
    next.reset();
    consider_all();
  }
  if (!next) {
    MutexLock lock(mutex_);
    ++stats_.passes;
  }
  return next ? next : first;
}

auto Scrubber::target_of(const TableMetadata& table) const -> Target {
  return {FileLayer::Metadata,
          table.number,
          Placement::Metadata,
          metadata_table_path(context_.options.metadata_directory, table.number),
          table.size_bytes,
          table.checksum,
          false};
}

auto Scrubber::target_of(const ValueFileMetadata& file) const -> Target {
  return {FileLayer::Values,
          file.number,
          file.placement,
          value_table_path(context_.options.metadata_directory, context_.options.values_directory,
                           file.placement, file.number),
          file.size_bytes,
          file.checksum,
          file.has_blanks};
}

Status Scrubber::open_target() {
  Reading& reading = *reading_;
  EC_ASSIGN_OR_RETURN(reading.file,
                      context_.environment.file_system.open_uncached(reading.target.path));
  if (reading.file->size_bytes() == reading.target.size_bytes) return ok();
  return wrong_size(*reading.file, reading.target.size_bytes);
}

Status Scrubber::read_piece() {
  Reading& reading = *reading_;
  const std::uint64_t left = reading.target.size_bytes - reading.done;
  piece_.resize(std::min(kPieceBytes, left));
  EC_ASSIGN_OR_RETURN(const std::size_t size,
                      reading.file->read(reading.done, piece_.size(), piece_.data()));
  if (size != piece_.size())
    return corruption("ends at byte " + std::to_string(reading.done + size));
  reading.checksum = crc32c_extend(reading.checksum, piece_);
  reading.done += size;
  MutexLock lock(mutex_);
  stats_.bytes += size;
  return ok();
}

void Scrubber::finish(const Status& read) {
  const Reading reading = *std::exchange(reading_, std::nullopt);
  piece_ = Bytes();
  const Target& target = reading.target;
  if (!read.ok()) {
    judge(target, read.message());
  } else if (target.has_blanks) {
    judge(target, "");
  } else if (reading.checksum != target.checksum) {
    judge(target, kWrongChecksum);
  } else {
    note_whole(target.number);
  }
  {
    MutexLock lock(mutex_);
    ++stats_.files;
  }
  schedule_run(std::max(pause_ns_, kSecondNs / 100));
}

auto Scrubber::find_target(const Version& version, FileNumber number) const
    -> std::optional<Target> {
  const auto file = version.value_files.find(number);
  if (file != version.value_files.end()) return target_of(file->second);
  for (const TablePointer& table : version.tables)
    if (table->number == number) return target_of(*table);
  return std::nullopt;
}

void Scrubber::note(FileLayer layer, FileNumber number, const std::string& problem) {
  const auto target = find_target(*context_.versions.current(), number);
  if (target && target->layer == layer) judge(*target, problem);
}

void Scrubber::doubt(std::string_view path) {
  const auto parsed = parse_file_name(path.substr(path.rfind('/') + 1));
  const bool is_table =
      parsed && (parsed->type == FileType::MetadataTable || parsed->type == FileType::ValueTable);
  if (!is_table) return;
  {
    MutexLock lock(mutex_);
    if (damaged_.contains(parsed->number) || doubted_.size() == kDamagedFilesMax ||
        !doubted_.insert(parsed->number).second)
      return;
  }
  context_.schedule(0, [this, number = parsed->number] { look_at_doubted(number); });
}

void Scrubber::look_at_doubted(FileNumber number) {
  const auto target = find_target(*context_.versions.current(), number);
  if (target) {
    const Status read = read_whole(*target);
    // What it was for once is no damage.
    const bool is_doubtful = !read.ok() || target->has_blanks;
    if (is_doubtful) judge(*target, read.message());
  }
  MutexLock lock(mutex_);
  doubted_.erase(number);
}

Status Scrubber::read_whole(const Target& target) {
  EC_ASSIGN_OR_RETURN(const auto file, context_.environment.file_system.open_uncached(target.path));
  if (file->size_bytes() != target.size_bytes) return wrong_size(*file, target.size_bytes);
  Bytes piece;
  std::uint32_t checksum = 0;
  for (std::uint64_t done = 0; done < target.size_bytes; done += piece.size()) {
    piece.resize(std::min(kPieceBytes, target.size_bytes - done));
    EC_ASSIGN_OR_RETURN(const std::size_t size, file->read(done, piece.size(), piece.data()));
    if (size != piece.size()) return corruption("ends at byte " + std::to_string(done + size));
    checksum = crc32c_extend(checksum, piece);
  }
  return target.has_blanks || checksum == target.checksum ? ok() : corruption(kWrongChecksum);
}

bool Scrubber::look_at(const std::vector<TablePointer>& tables) {
  const std::set<FileNumber> before = lost_files();
  const std::shared_ptr<const Version> version = context_.versions.current();
  std::set<FileNumber> seen;
  const auto look = [&](const Target& target) {
    const Status read = read_whole(target);
    const bool is_lost = is_damage(read) || read.code() == StatusCode::NotFound;
    if (is_lost || target.has_blanks) judge(target, read.message());
  };
  for (const TablePointer& table : tables) {
    if (!seen.insert(table->number).second) continue;
    look(target_of(*table));
    for (const ValueFileUse& use : table->value_files) {
      const auto file = version->value_files.find(use.file_number);
      if (file != version->value_files.end() && seen.insert(use.file_number).second)
        look(target_of(file->second));
    }
  }
  const std::set<FileNumber> now = lost_files();
  return !std::includes(before.begin(), before.end(), now.begin(), now.end());
}

std::set<FileNumber> Scrubber::lost_files() const {
  MutexLock lock(mutex_);
  return lost_;
}

// What was read may have been on its way out: erased, merged, or overwritten where it lay.
void Scrubber::judge(const Target& target, const std::string& problem) {
  const std::shared_ptr<const Version> version = context_.versions.current();
  if (!names(*version, target.layer, target.number)) return;
  DamagedFile found;
  found.path = target.path;
  found.layer = target.layer;
  found.problem = problem;
  found.found_ns = context_.environment.clock.wall_ns();
  if (target.layer == FileLayer::Values) {
    if (version->value_files.at(target.number).has_blanks != target.has_blanks) return;
    find_lost_values(*version, target, found);
    if (target.has_blanks && found.lost_entries == 0) return note_whole(target.number);
    if (target.has_blanks) found.problem = "items with a wrong checksum";
  } else {
    for (const TablePointer& table : version->tables)
      if (table->number == target.number) find_lost_records(*table, found);
  }
  // After all reads: a drive that fails says nothing of its files, and has words of its own. They
  // are looked at when it is back.
  if (context_.check_drives(target.placement).ok()) note_damage(target.number, std::move(found));
}

// By what records point to: a file's own summary may be what is damaged.
void Scrubber::find_lost_values(const Version& version, const Target& target, DamagedFile& found) {
  std::unique_ptr<ValueTableReader> values;
  if (auto file = context_.environment.file_system.open_uncached(target.path); file.ok()) {
    auto opened = ValueTableReader::open(std::move(file).value(), context_.store_id, target.number,
                                         context_.keys);
    if (opened.ok()) values = std::move(opened).value();
  }
  for (const TablePointer& table : version.tables) {
    const bool leads_there =
        std::any_of(table->value_files.begin(), table->value_files.end(),
                    [&](const ValueFileUse& use) { return use.file_number == target.number; });
    if (!leads_there) continue;
    bool follows = false;  // another one, with nothing of this table between
    for (RecordCursor records = context_.tables.records({table}); records.valid();
         records.next_record()) {
      const UMetaRecord& record = records.record();
      const bool is_lost = record.pointer.file_number == target.number &&
                           (values == nullptr || is_damage(values->read(record.pointer).status()));
      if (is_lost) add_lost(record.first, record.last, record.entries, follows, found);
      follows = is_lost;
    }
  }
}

// The values that its records point to are whole: a repair makes it anew.
void Scrubber::find_lost_records(const TableMetadata& table, DamagedFile& found) {
  auto file = context_.environment.file_system.open_uncached(found.path);
  if (file.ok()) {
    const auto opened =
        UMetaReader::open(std::move(file).value(), context_.store_id, table.number, context_.keys);
    if (opened.ok()) {
      const UMetaReader& reader = **opened;
      for (std::size_t i = 0; i < reader.blocks().size(); ++i) {
        const UMetaReader::BlockHandle& block = reader.blocks()[i];
        if (!is_damage(reader.read_block(i).status())) continue;
        const ByteView first =
            i == 0 ? ByteView(table.smallest) : ByteView(reader.blocks()[i - 1].last);
        add_lost(first, block.last, block.totals.entries, false, found);
      }
      return;
    }
  }
  add_lost(table.smallest, table.largest, table.entry_count, false, found);
}

// `follows`: what was added last, so that the two are one range.
void Scrubber::add_lost(ByteView first, ByteView last, std::uint64_t entries, bool follows,
                        DamagedFile& found) {
  found.lost_entries += entries;
  if (follows && !found.lost.empty() && namespace_of(first) == namespace_of(last) &&
      found.lost.back().namespace_id == namespace_of(last)) {
    if (found.more_lost_ranges == 0) found.lost.back().last = Bytes(user_key_of(last));
    return;
  }
  if (found.lost.size() == kLostRangesMax) {
    ++found.more_lost_ranges;
    return;
  }
  // A metadata block may hold several namespaces; then what is lost reaches to the last key of the
  // first, and from the first key of the last.
  const NamespaceId begin = namespace_of(first);
  const NamespaceId end = namespace_of(last);
  found.lost.push_back(
      {begin, Bytes(user_key_of(first)),
       begin == end ? std::optional<Bytes>(Bytes(user_key_of(last))) : std::nullopt});
  if (begin != end) found.lost.push_back({end, Bytes(), Bytes(user_key_of(last))});
}

void Scrubber::note_damage(FileNumber number, DamagedFile found) {
  const std::shared_ptr<const Version> version = context_.versions.current();
  const Status told = corruption(
      found.path + ": " + found.problem + "; " +
      (found.lost_entries == 0 ? std::string("all that lives in it is whole")
                               : std::to_string(found.lost_entries) + " entries cannot be read"));
  {
    MutexLock lock(mutex_);
    if (found.lost_entries > 0) {
      std::erase_if(lost_, [&](FileNumber each) { return !names(*version, each); });
      lost_.insert(number);
    } else {
      lost_.erase(number);
    }
    const auto known = damaged_.find(number);
    if (known != damaged_.end()) {
      found.found_ns = known->second.found_ns;
      known->second = std::move(found);
      return;
    }
    std::erase_if(damaged_, [&](const auto& each) {
      return !names(*version, each.second.layer, each.first);
    });
    if (damaged_.size() < kDamagedFilesMax) damaged_.emplace(number, std::move(found));
  }
  context_.environment.listener.on_corruption(told);
}

void Scrubber::note_whole(FileNumber number) {
  MutexLock lock(mutex_);
  damaged_.erase(number);
  lost_.erase(number);
}

ScrubStats Scrubber::stats() const {
  const std::vector<DamagedFile> now = damaged();
  MutexLock lock(mutex_);
  ScrubStats stats = stats_;
  stats.damaged_files = now.size();
  return stats;
}

std::vector<DamagedFile> Scrubber::damaged() const {
  const std::shared_ptr<const Version> version = context_.versions.current();
  std::vector<DamagedFile> found;
  MutexLock lock(mutex_);
  for (const auto& [number, file] : damaged_)
    if (names(*version, file.layer, number)) found.push_back(file);
  return found;
}

}  // namespace edgecase::engine
