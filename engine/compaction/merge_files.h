// MergeFiles gives merges the files that they write: numbers that nobody else has, and what a
// writer must know of the store. Owned by the lane.
#pragma once

#include "compaction/work_source.h"
#include "version/file_number_block.h"

namespace edgecase::engine {

class MergeFiles {
 public:
  explicit MergeFiles(const CompactorContext& context) : context_(context) {}

  // For one merge that makes no more than so many files; valid until the next one.
  Result<TableWriterContext> writer(std::uint64_t files_max) {
    EC_TRY(numbers_.reserve(context_.versions, files_max));
    const auto info_of = [this](NamespaceId id) { return context_.versions.find_namespace(id); };
    TableWriterContext writer{context_.environment.file_system,
                              context_.options,
                              context_.store_id,
                              [this] { return numbers_.take(); },
                              [info_of](NamespaceId id) {
                                const auto info = info_of(id);
                                return info.ok() ? info->options : NamespaceOptions{};
                              },
                              [info_of](NamespaceId id) {
                                const auto info = info_of(id);
                                return info.ok() ? info->name : Bytes();
                              }};
    writer.remover = &context_.remover;
    writer.keys = context_.keys;
    return writer;
  }

 private:
  const CompactorContext& context_;
  FileNumberBlock numbers_;
};

}  // namespace edgecase::engine
