// What disappears: whole namespaces. Merges ask here what of their inputs is dead.
#include "core/drop.h"

#include "core/engine_impl.h"

namespace edgecase::engine {

DropRule::Verdict EngineDropRule::judge_item(const UMetaRecord& record) const {
  if (versions_.dropped().contains(namespace_of(record.first))) return Verdict::Drop;
  if (!versions_.has_range_deletes()) return Verdict::Keep;
  const std::shared_ptr<const Version> version = versions_.current();
  if (version->range_deletes == nullptr) return Verdict::Keep;
  const RangeDeletes& deletes = *version->range_deletes;
  if (deletes.covers(record.first, record.last, record.sequence_max)) return Verdict::Drop;
  return deletes.touches(record.first, record.last, record.sequence_min) ? Verdict::Inspect
                                                                         : Verdict::Keep;
}

bool EngineDropRule::drops_entry(ByteView full_key, SequenceNumber sequence) const {
  if (versions_.dropped().contains(namespace_of(full_key))) return true;
  if (!versions_.has_range_deletes()) return false;
  const std::shared_ptr<const Version> version = versions_.current();
  return version->range_deletes != nullptr &&
         version->range_deletes->covering(full_key, UINT64_MAX) > sequence;
}

Status EngineImpl::drop_namespace(NamespaceId id) {
  // From here on reads refuse the id. Entries that wait in memtables, and those of batches that are
  // on their way, are left out when their memtable is flushed; records in tables of level 0 go with
  // the next merge.
  EC_TRY(versions_->drop_namespace(id));
  publish_version();
  compactor_->wake();
  return ok();
}

}  // namespace edgecase::engine
