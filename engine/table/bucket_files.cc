#include "table/bucket_files.h"

#include <algorithm>
#include <utility>

#include "file/file_names.h"

namespace edgecase::engine {

ItemExpiry expiry_of_entry(const ExpiryView& expiry, GroupCodec codec, ByteView full_key) {
  ItemExpiry item;
  if (codec != GroupCodec::Series || !has_time(full_key)) return item;
  item.time_min_ns = time_of_ordinal(ordinal_in(full_key));
  item.time_max_ns = item.time_min_ns;
  if (expiry.empty()) return item;
  const std::int64_t retention_ns = expiry.retention_ns(scope_part(full_key));
  item.bucket = expiry.bucket_of(item.time_min_ns, retention_ns);
  item.expiry_min_ns = expiry_of(item.time_min_ns, retention_ns);
  item.expiry_max_ns = item.expiry_min_ns;
  return item;
}

void BucketFiles::begin(NamespaceId id, const NamespaceOptions& options) {
  namespace_id_ = id;
  options_ = options;
}

Result<ValueTableWriter*> BucketFiles::open(const ItemExpiry& item) {
  const auto at = [&] {
    return std::lower_bound(
        files_.begin(), files_.end(), item.bucket,
        [](const File& file, const Bucket& b) { return file.expiry.bucket < b; });
  };
  auto found = at();
  const bool there = found != files_.end() && found->expiry.bucket == item.bucket;
  if (!there && files_.size() < kOpenBucketsMax) {
    EC_TRY(create(item));
    found = at();
  } else if (!there && (found == files_.end() || !found->expiry.bucket.expires())) {
    // What never expires must not hold up what does: the latest that does takes it, and its bucket
    // grows with it.
    if (found != files_.begin()) --found;
  }
  found->expiry.add(item);
  return found->writer.get();
}

Status BucketFiles::create(const ItemExpiry& item) {
  ValueTableHead head;
  head.identity = {context_.store_id, context_.allocate_file_number()};
  head.namespace_id = namespace_id_;
  head.placement = options_.placement;
  head.codec = options_.codec;
  head.scope_bytes = options_.scope_bytes;
  head.packs = context_.options.compress;
  if (context_.namespace_name) head.namespace_name = context_.namespace_name(namespace_id_);
  const std::string path =
      value_table_path(context_.options.metadata_directory, context_.options.values_directory,
                       head.placement, head.identity.file_number);
  auto writer = ValueTableWriter::create(context_.file_system, path, head, context_.keys);
  // One that was there before is not ours to remove.
  if (writer.status().code() != StatusCode::AlreadyExists) created_.push_back(path);
  if (!writer.ok()) return writer.status();
  EC_TRY(name_durably(context_, path).on(drive_of(head.placement)));
  const auto behind =
      std::upper_bound(files_.begin(), files_.end(), item.bucket,
                       [](const Bucket& b, const File& file) { return b < file.expiry.bucket; });
  files_.insert(behind, File{std::move(writer).value(), item});
  return ok();
}

Status BucketFiles::close(File& file, TableOutput& output) {
  EC_TRY(file.writer->end());
  ValueFileMetadata metadata = describe_values(*file.writer);
  metadata.bucket = file.expiry.bucket;
  metadata.expiry_min_ns = file.expiry.expiry_min_ns;
  metadata.expiry_max_ns = file.expiry.expiry_max_ns;
  metadata.time_min_ns = file.expiry.time_min_ns;
  if (metadata.time_min_ns != kNeverNs) metadata.time_max_ns = file.expiry.time_max_ns;
  metadata.rule_epoch = context_.expiry.epoch();
  (metadata.placement == Placement::Values ? output.value_bytes : output.metadata_bytes) +=
      metadata.size_bytes;
  output.value_files.push_back(metadata);
  unsynced_.push_back(std::move(file.writer));
  return unsynced_.size() > kUnsyncedFilesMax ? sync_oldest() : ok();
}

Status BucketFiles::sync_oldest() {
  EC_TRY(unsynced_.front()->sync());
  unsynced_.pop_front();
  return ok();
}

Status BucketFiles::sync() {
  while (!unsynced_.empty()) EC_TRY(sync_oldest());
  return ok();
}

Status BucketFiles::close_full(std::uint64_t size_bytes_max, TableOutput& output) {
  for (File& file : files_) {
    if (file.writer->size_bytes() < size_bytes_max) continue;
    EC_TRY(close(file, output));
  }
  std::erase_if(files_, [](const File& file) { return file.writer == nullptr; });
  return ok();
}

SeriesGathering::SeriesGathering(std::size_t group_bytes, std::size_t entries_max,
                                 std::int64_t span_ns, bool keeps_sequences)
    : group_bytes_(group_bytes),
      entries_max_(entries_max),
      span_ns_(span_ns),
      keeps_sequences_(keeps_sequences) {
  main_.columns = new_columns();
}

std::unique_ptr<SeriesColumns> SeriesGathering::new_columns() const {
  auto columns = std::make_unique<SeriesColumns>(group_bytes_, entries_max_, span_ns_);
  columns->set_scope_bytes(scope_bytes_);
  if (keeps_sequences_) columns->keep_sequences();
  return columns;
}

void SeriesGathering::begin(std::size_t scope_bytes) {
  scope_bytes_ = scope_bytes;
  scope_.clear();
  main_.columns->set_scope_bytes(scope_bytes);
  apart_.clear();
}

bool SeriesGathering::leaves_scope(ByteView full_key_begin) const {
  return full_key_begin.substr(0, kNamespacePrefixBytes + scope_bytes_) != scope_;
}

void SeriesGathering::enter_scope(ByteView full_key_begin) {
  scope_.assign(full_key_begin.substr(0, kNamespacePrefixBytes + scope_bytes_));
  for (auto& [life, group] : apart_) group.is_kept = false;
}

SeriesGathering::Group& SeriesGathering::group_for(const ItemExpiry& item) {
  const LifeClass life = life_class_of(item.bucket);
  const auto apart = apart_.find(life);
  if (apart != apart_.end() && apart->second.is_kept) return apart->second;
  // A group that is half full is worth its record.
  if (main_.columns->empty() || main_.expiry.bucket == item.bucket ||
      main_.columns->raw_bytes() >= group_bytes_ / 2)
    return main_;
  const LifeClass open = life_class_of(main_.expiry.bucket);
  if (open == life) return main_;
  if (life < open) return keep(life);
  Group& sooner = keep(open);
  std::swap(sooner.columns, main_.columns);
  std::swap(sooner.expiry, main_.expiry);
  return main_;
}

SeriesGathering::Group& SeriesGathering::keep(LifeClass life) {
  Group& group = apart_[life];
  if (group.columns == nullptr) {
    group.columns = new_columns();
    group.life = life;
  }
  group.is_kept = true;
  return group;
}

}  // namespace edgecase::engine
