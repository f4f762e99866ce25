#include "version/version.h"

#include <string>

#include "base/coding.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

enum class Tag : unsigned char {
  FormatVersion = 1,
  FileNumberLimit = 2,
  NamespaceIdLimit = 3,
  Namespace = 4,
  AddedValueFile = 5,
  RemovedValueFile = 6,
  AddedTable = 7,
  RemovedTable = 8,
  FlushedSequence = 9,
  OldestWalSegment = 10,
  DroppedNamespace = 11,
  RangeDelete = 12,
  ExpiryMark = 13,
  RuleChange = 14,
  Scope = 15,
  Erasure = 16,
  ErasedSequence = 17,
  BlankedValueFile = 18,
  GivenUp = 19,
  ValueFileTimeMax = 20,
  TableLife = 21,
  HeldTime = 22,
  NewRule = 23,  // a RuleChange of a scope that is new
};

constexpr std::size_t kFullKeyMaxBytes = kKeySizeMaxBytes + kNamespacePrefixBytes;

void append_tag(Bytes& out, Tag tag) {
  out.push_back(static_cast<char>(tag));
}

void append_number(Bytes& out, Tag tag, std::uint64_t number) {
  append_tag(out, tag);
  append_varint64(out, number);
}

void append_time(Bytes& out, Tag tag, std::int64_t time_ns) {
  append_tag(out, tag);
  append_varint64(out, zigzag(time_ns));
}

void append_given_up(Bytes& out, const GivenUp& each) {
  append_tag(out, Tag::GivenUp);
  append_varint32(out, each.namespace_id);
  append_varint64(out, zigzag(each.before_ns));
}

void append_namespace(Bytes& out, const NamespaceInfo& info) {
  append_tag(out, Tag::Namespace);
  append_varint32(out, info.id);
  append_length_prefixed(out, info.name);
  out.push_back(static_cast<char>(info.options.placement));
  out.push_back(static_cast<char>(info.options.codec));
  append_varint32(out, info.options.scope_bytes);
}

void append_value_file(Bytes& out, const ValueFileMetadata& file) {
  append_tag(out, Tag::AddedValueFile);
  append_varint64(out, file.number);
  append_varint32(out, file.namespace_id);
  out.push_back(static_cast<char>(file.placement));
  append_varint64(out, file.size_bytes);
  append_varint64(out, file.item_count);
  append_fixed32(out, file.checksum);
  append_varint64(out, file.item_bytes);
  append_varint64(out, file.rule_epoch);
  append_varint64(out, file.time_min_ns == kNeverNs ? 0 : zigzag(file.time_min_ns) + 1);
  out.push_back(static_cast<char>(file.bucket.bucket_class));
  if (file.bucket.expires()) {
    append_varint64(out, zigzag(file.bucket.end_ns));
    append_varint64(out, zigzag(file.expiry_min_ns));
    append_varint64(out, zigzag(file.expiry_max_ns));
  }
  if (file.time_max_ns != kNeverNs) append_time(out, Tag::ValueFileTimeMax, file.time_max_ns);
}

void append_range(Bytes& out, Tag tag, const RangeDelete& each) {
  append_tag(out, tag);
  append_length_prefixed(out, each.lower);
  append_length_prefixed(out, each.upper);
  append_varint64(out, each.sequence);
}

void append_rule(Bytes& out, Tag tag, ByteView full_prefix,
                 std::optional<std::int64_t> retention_ns) {
  append_tag(out, tag);
  append_length_prefixed(out, full_prefix);
  append_varint64(out, retention_ns ? static_cast<std::uint64_t>(*retention_ns) + 1 : 0);
}

void append_table(Bytes& out, const TableMetadata& table) {
  append_tag(out, Tag::AddedTable);
  out.push_back(static_cast<char>(table.level));
  out.push_back(static_cast<char>(table.kind));
  append_varint64(out, table.number);
  if (table.level > 0) {
    append_varint32(out, table.namespace_id);
    append_varint64(out, table.run);
  }
  append_varint64(out, table.size_bytes);
  append_varint64(out, table.entry_count);
  append_varint64(out, table.delete_count);
  append_varint64(out, table.item_count);
  append_fixed32(out, table.checksum);
  append_varint64(out, table.sequence_min);
  append_varint64(out, table.sequence_max);
  append_varint64(out, table.purged_sequence);
  append_varint64(out, table.rule_epoch);
  append_length_prefixed(out, table.smallest);
  append_length_prefixed(out, table.largest);
  append_varint64(out, table.value_files.size());
  for (const ValueFileUse& use : table.value_files) {
    append_varint64(out, use.file_number);
    append_varint64(out, use.bytes);
  }
  if (table.life == 0) return;
  append_tag(out, Tag::TableLife);
  out.push_back(static_cast<char>(table.life));
}

// Takes fields from the front. Each take_x() answers ok() or what is wrong.
class Decoder {
 public:
  explicit Decoder(ByteView input) : begin_(input.data()), rest_(input) {}

  bool done() const { return rest_.empty(); }

  Status take_field(VersionEdit& edit) {
    std::uint8_t tag = 0;
    EC_TRY(take_byte(tag));
    switch (static_cast<Tag>(tag)) {
      case Tag::FormatVersion: return take_format_version(edit);
      case Tag::FileNumberLimit: return take_number(edit.file_number_limit.emplace());
      case Tag::NamespaceIdLimit: return take_number32(edit.namespace_id_limit.emplace());
      case Tag::Namespace: return take_namespace(edit.namespaces.emplace_back());
      case Tag::AddedValueFile: return take_value_file(edit.added_value_files.emplace_back());
      case Tag::RemovedValueFile: return take_number(edit.removed_value_files.emplace_back());
      case Tag::AddedTable: return take_table(edit.added_tables.emplace_back());
      case Tag::RemovedTable: return take_number(edit.removed_tables.emplace_back());
      case Tag::FlushedSequence: return take_number(edit.flushed_sequence.emplace());
      case Tag::OldestWalSegment: return take_number(edit.oldest_wal_segment.emplace());
      case Tag::RangeDelete: return take_range_delete(edit.range_deletes.emplace_back());
      case Tag::DroppedNamespace: return take_number32(edit.dropped_namespaces.emplace_back());
      case Tag::ExpiryMark: return take_time(edit.expiry_mark_ns.emplace());
      case Tag::HeldTime: return take_number(edit.held_ns.emplace());
      case Tag::RuleChange: return take_rule_change(edit.rule_changes.emplace_back());
      case Tag::NewRule:
        edit.rule_changes.emplace_back().is_new = true;
        return take_rule_change(edit.rule_changes.back());
      case Tag::Erasure: return take_range_delete(edit.erasures.emplace_back());
      case Tag::ErasedSequence: return take_number(edit.erased_sequence.emplace());
      case Tag::BlankedValueFile: return take_number(edit.blanked_value_files.emplace_back());
      case Tag::GivenUp: return take_given_up(edit.given_up.emplace_back());
      case Tag::ValueFileTimeMax: return take_time_max(edit);
      case Tag::TableLife: return take_life(edit);
      case Tag::Scope: return take_scope(edit.scopes.emplace_back());
    }
    return newer("field", tag);
  }

 private:
  Status damaged(std::string_view what) const {
    return corruption("edit at byte " + std::to_string(rest_.data() - begin_) + ": " +
                      std::string(what));
  }
  static Status newer(std::string_view what, unsigned value) {
    return unsupported("the manifest uses " + std::string(what) + " " + std::to_string(value) +
                       ", which only a newer version of EdgeCase knows");
  }

  Status take_byte(std::uint8_t& value) {
    if (rest_.empty()) return damaged("cut short");
    value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return ok();
  }
  Status take_number(std::uint64_t& value) {
    return take_varint64(rest_, value) ? ok() : damaged("no number");
  }
  Status take_number32(std::uint32_t& value) {
    return take_varint32(rest_, value) ? ok() : damaged("no 32-bit number");
  }
  Status take_checksum(std::uint32_t& value) {
    return take_fixed32(rest_, value) ? ok() : damaged("no checksum");
  }
  Status take_text(std::size_t size_max, Bytes& value) {
    ByteView view;
    if (!take_length_prefixed(rest_, size_max, view)) return damaged("no bytes within the limit");
    value.assign(view);
    return ok();
  }
  Status take_placement(Placement& placement) {
    std::uint8_t value = 0;
    EC_TRY(take_byte(value));
    if (value > static_cast<std::uint8_t>(Placement::Metadata)) return newer("placement", value);
    placement = static_cast<Placement>(value);
    return ok();
  }

  Status take_format_version(VersionEdit& edit) {
    std::uint32_t version = 0;
    EC_TRY(take_number32(version));
    if (version > kManifestFormatVersion) return newer("format version", version);
    if (version == 0) return damaged("format version 0");
    edit.format_version = version;
    return ok();
  }

  Status take_namespace(NamespaceInfo& info) {
    EC_TRY(take_number32(info.id));
    EC_TRY(take_text(kNamespaceNameMaxBytes, info.name));
    EC_TRY(take_placement(info.options.placement));
    std::uint8_t codec = 0;
    EC_TRY(take_byte(codec));
    if (codec > static_cast<std::uint8_t>(GroupCodec::Series)) return newer("group codec", codec);
    info.options.codec = static_cast<GroupCodec>(codec);
    return take_number32(info.options.scope_bytes);
  }

  Status take_value_file(ValueFileMetadata& file) {
    EC_TRY(take_number(file.number));
    EC_TRY(take_number32(file.namespace_id));
    EC_TRY(take_placement(file.placement));
    EC_TRY(take_number(file.size_bytes));
    EC_TRY(take_number(file.item_count));
    EC_TRY(take_checksum(file.checksum));
    EC_TRY(take_number(file.item_bytes));
    EC_TRY(take_number(file.rule_epoch));
    std::uint64_t time = 0;
    EC_TRY(take_number(time));
    file.time_min_ns = time == 0 ? kNeverNs : unzigzag(time - 1);
    EC_TRY(take_byte(file.bucket.bucket_class));
    if (file.bucket.bucket_class == 0) return ok();
    if (file.bucket.bucket_class > kBucketClassMax)
      return newer("class of buckets", file.bucket.bucket_class);
    EC_TRY(take_time(file.bucket.end_ns));
    EC_TRY(take_time(file.expiry_min_ns));
    return take_time(file.expiry_max_ns);
  }

  Status take_time(std::int64_t& time_ns) {
    std::uint64_t value = 0;
    EC_TRY(take_number(value));
    time_ns = unzigzag(value);
    return ok();
  }

  Status take_time_max(VersionEdit& edit) {
    if (edit.added_value_files.empty()) return damaged("a latest time of no value file");
    return take_time(edit.added_value_files.back().time_max_ns);
  }

  Status take_life(VersionEdit& edit) {
    if (edit.added_tables.empty()) return damaged("a life class of no table");
    LifeClass& life = edit.added_tables.back().life;
    EC_TRY(take_byte(life));
    return life <= kLifeForever ? ok() : newer("life class", life);
  }

  Status take_given_up(GivenUp& each) {
    EC_TRY(take_number32(each.namespace_id));
    return take_time(each.before_ns);
  }

  Status take_rule_change(RetentionRule& rule) {
    ScopeState scope;
    EC_TRY(take_rule(scope));
    rule.namespace_id = namespace_of(scope.prefix);
    rule.prefix = user_key_of(scope.prefix);
    rule.retention_ns = scope.retention_ns;
    return ok();
  }

  Status take_rule(ScopeState& scope) {
    EC_TRY(take_text(kFullKeyMaxBytes, scope.prefix));
    if (scope.prefix.size() < kNamespacePrefixBytes) return damaged("a rule of no namespace");
    std::uint64_t value = 0;
    EC_TRY(take_number(value));
    if (value == 0) return ok();
    if (value == 1 || value - 1 > static_cast<std::uint64_t>(kRetentionForever))
      return damaged("a retention out of range");
    scope.retention_ns = static_cast<std::int64_t>(value - 1);
    return ok();
  }

  Status take_scope(ScopeState& scope) {
    EC_TRY(take_rule(scope));
    EC_TRY(take_number(scope.floor));
    return take_number(scope.epoch);
  }

  Status take_range_delete(RangeDelete& each) {
    EC_TRY(take_text(kFullKeyMaxBytes, each.lower));
    EC_TRY(take_text(kRangeBoundMaxBytes, each.upper));
    return take_number(each.sequence);
  }

  Status take_level(TableMetadata& table) {
    EC_TRY(take_byte(table.level));
    if (table.level > kLevelMax) return newer("level", table.level);
    std::uint8_t kind = 0;
    EC_TRY(take_byte(kind));
    if (kind > static_cast<std::uint8_t>(TableKind::Singles)) return newer("table kind", kind);
    table.kind = static_cast<TableKind>(kind);
    EC_TRY(take_number(table.number));
    table.run = table.number;
    if (table.level == 0) return ok();
    EC_TRY(take_number32(table.namespace_id));
    return take_number(table.run);
  }

  Status take_table(TableMetadata& table) {
    EC_TRY(take_level(table));
    EC_TRY(take_number(table.size_bytes));
    EC_TRY(take_number(table.entry_count));
    EC_TRY(take_number(table.delete_count));
    EC_TRY(take_number(table.item_count));
    EC_TRY(take_checksum(table.checksum));
    EC_TRY(take_number(table.sequence_min));
    EC_TRY(take_number(table.sequence_max));
    EC_TRY(take_number(table.purged_sequence));
    EC_TRY(take_number(table.rule_epoch));
    EC_TRY(take_text(kFullKeyMaxBytes, table.smallest));
    EC_TRY(take_text(kFullKeyMaxBytes, table.largest));
    if (table.smallest.size() < kNamespacePrefixBytes || table.largest < table.smallest)
      return damaged("table bounds are out of order");
    if (table.sequence_max < table.sequence_min) return damaged("sequences are out of order");
    std::uint64_t count = 0;
    EC_TRY(take_number(count));
    // Each takes a byte at least: no length is believed that the edit cannot hold.
    if (count > rest_.size()) return damaged("more value files than bytes");
    for (; count > 0; --count) {
      ValueFileUse use;
      EC_TRY(take_number(use.file_number));
      EC_TRY(take_number(use.bytes));
      table.value_files.push_back(use);
    }
    return ok();
  }

  const char* begin_;
  ByteView rest_;
};

}  // namespace

Bytes VersionEdit::encode() const {
  constexpr std::size_t kRuleBytes = 32;  // about
  Bytes out;
  out.reserve((rule_changes.size() + 2 * scopes.size()) * kRuleBytes);
  if (format_version) append_number(out, Tag::FormatVersion, *format_version);
  if (file_number_limit) append_number(out, Tag::FileNumberLimit, *file_number_limit);
  if (namespace_id_limit) append_number(out, Tag::NamespaceIdLimit, *namespace_id_limit);
  for (const NamespaceInfo& info : namespaces) append_namespace(out, info);
  for (const NamespaceId id : dropped_namespaces) append_number(out, Tag::DroppedNamespace, id);
  for (const RangeDelete& each : range_deletes) append_range(out, Tag::RangeDelete, each);
  if (erased_sequence) append_number(out, Tag::ErasedSequence, *erased_sequence);
  for (const RangeDelete& each : erasures) append_range(out, Tag::Erasure, each);
  for (const ValueFileMetadata& file : added_value_files) append_value_file(out, file);
  for (const FileNumber number : removed_value_files)
    append_number(out, Tag::RemovedValueFile, number);
  for (const FileNumber number : blanked_value_files)
    append_number(out, Tag::BlankedValueFile, number);
  for (const TableMetadata& table : added_tables) append_table(out, table);
  for (const FileNumber number : removed_tables) append_number(out, Tag::RemovedTable, number);
  if (flushed_sequence) append_number(out, Tag::FlushedSequence, *flushed_sequence);
  if (oldest_wal_segment) append_number(out, Tag::OldestWalSegment, *oldest_wal_segment);
  if (expiry_mark_ns) append_number(out, Tag::ExpiryMark, zigzag(*expiry_mark_ns));
  if (held_ns) append_number(out, Tag::HeldTime, *held_ns);
  for (const RetentionRule& each : rule_changes)
    append_rule(out, each.is_new ? Tag::NewRule : Tag::RuleChange,
                make_full_key(each.namespace_id, each.prefix), each.retention_ns);
  for (const ScopeState& each : scopes) {
    append_rule(out, Tag::Scope, each.prefix, each.retention_ns);
    append_varint64(out, each.floor);
    append_varint64(out, each.epoch);
  }
  for (const GivenUp& each : given_up) append_given_up(out, each);
  return out;
}

Result<VersionEdit> VersionEdit::decode(ByteView encoded) {
  VersionEdit edit;
  Decoder decoder(encoded);
  while (!decoder.done()) EC_TRY(decoder.take_field(edit));
  return edit;
}

namespace {

constexpr std::size_t kCurrentMaxBytes = 64;

Status write_to(FileSystem& file_system, const std::string& metadata_directory,
                const std::string& path, std::uint64_t number) {
  return replace_whole_file(file_system, metadata_directory, current_new_path(metadata_directory),
                            path, manifest_name(number) + "\n");
}

}  // namespace

Result<std::uint64_t> read_current(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(Bytes name, read_whole_file(file_system, path, kCurrentMaxBytes));
  const bool terminated = !name.empty() && name.back() == '\n';
  if (terminated) name.pop_back();
  const auto parsed = parse_file_name(name);
  if (!terminated || !parsed || parsed->type != FileType::Manifest)
    return corruption_in(path, ": does not name a manifest");
  return parsed->number;
}

Result<std::uint64_t> find_current(FileSystem& file_system, const std::string& metadata_directory,
                                   Status& damage) {
  const std::string path = current_path(metadata_directory);
  auto number = read_current(file_system, path);
  const StatusCode code = number.status().code();
  if (code != StatusCode::Corruption && code != StatusCode::NotFound) return number;
  auto copy = read_current(file_system, current_copy_path(metadata_directory));
  if (!copy.ok()) return number;
  damage = code == StatusCode::NotFound ? corruption_in(path, ": missing") : number.status();
  return copy;
}

// The copy first, so that it never names a manifest that is not there any more; without it the
// store is as good as one of an older version. But a store is there once CURRENT is: that begins
// it.
Status write_current(FileSystem& file_system, const std::string& metadata_directory,
                     std::uint64_t number) {
  const std::string path = current_path(metadata_directory);
  const auto write_copy = [&] {
    static_cast<void>(
        write_to(file_system, metadata_directory, current_copy_path(metadata_directory), number)
            .ok());
  };
  const bool begins = file_system.file_size(path).status().code() == StatusCode::NotFound;
  if (!begins) write_copy();
  EC_TRY(write_to(file_system, metadata_directory, path, number));
  if (begins) write_copy();
  return ok();
}

}  // namespace edgecase::engine
