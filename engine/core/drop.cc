// What disappears: whole namespaces. Merges ask here what of their inputs is dead.
#include "core/drop.h"

#include "compaction/purge.h"
#include "core/engine_impl.h"

namespace edgecase::engine {

ExpiryView EngineDropRule::expiry_of(ByteView full_key) const {
  auto rules = versions_.retention();
  if (rules == nullptr || !rules->has_namespace(namespace_of(full_key))) return {};
  return {std::move(rules), clock_.removal_ns(), mode_};
}

DropRule::Verdict EngineDropRule::judge_expiry(const UMetaRecord& record) const {
  const ExpiryView expiry = expiry_of(record.first);
  if (expiry.empty()) return Verdict::Keep;
  const std::shared_ptr<const Version> version = versions_.current();
  const auto file = version->value_files.find(record.pointer.file_number);
  if (file == version->value_files.end()) return Verdict::Keep;
  if (is_over(file->second, record.first, record.last, expiry)) return Verdict::Drop;
  if (record.type == ItemType::Single && expiry.hides(record.first)) return Verdict::Drop;
  const bool is_emptied = given_up_permille(file->second, expiry) >= kGivenUpPermille;
  if ((mode_ == ExpiryMode::Exact || is_emptied) && expiry.hides_all(record.first, record.last))
    return Verdict::Drop;
  if (expiry.rules()->changed_since(record.first, record.last, file->second.rule_epoch) ||
      expiry.is_coarse(file->second.expiry_min_ns, file->second.expiry_max_ns))
    return Verdict::Rewrite;
  const bool looks =
      is_emptied || (mode_ == ExpiryMode::Exact && file->second.expiry_min_ns < expiry.now_ns());
  const bool some_expired =
      looks && record.type != ItemType::Single && expiry.may_hide(record.first, record.last);
  return some_expired ? Verdict::Inspect : Verdict::Keep;
}

DropRule::Verdict EngineDropRule::judge_item(const UMetaRecord& record) const {
  if (versions_.dropped().contains(namespace_of(record.first))) return Verdict::Drop;
  const Verdict expired = judge_expiry(record);
  if (expired == Verdict::Drop || !versions_.has_range_deletes()) return expired;
  const std::shared_ptr<const Version> version = versions_.current();
  if (version->range_deletes == nullptr) return expired;
  const RangeDeletes& deletes = *version->range_deletes;
  if (deletes.covers(record.first, record.last, record.sequence_max)) return Verdict::Drop;
  if (expired != Verdict::Keep) return expired;
  return deletes.touches(record.first, record.last, record.sequence_min) ? Verdict::Inspect
                                                                         : Verdict::Keep;
}

bool EngineDropRule::drops_entry(ByteView full_key, SequenceNumber sequence) const {
  if (versions_.dropped().contains(namespace_of(full_key))) return true;
  if (expiry_of(full_key).hides(full_key)) return true;
  if (!versions_.has_range_deletes()) return false;
  const std::shared_ptr<const Version> version = versions_.current();
  return version->range_deletes != nullptr &&
         version->range_deletes->covering(full_key, UINT64_MAX) > sequence;
}

Status EngineImpl::drop_namespace(NamespaceId id) {
  // From here on reads refuse the id. Entries that wait in memtables, and those of batches that are
  // on their way, are left out when their memtable is flushed; records in tables of level 0 go with
  // the next merge.
  const auto attempt = [&] { return versions_->drop_namespace(id); };
  Status dropped = attempt();
  if (!dropped.ok()) dropped = use_reserve(std::move(dropped), attempt);
  EC_TRY(dropped);
  if (keys_ != nullptr) keys_->drop_namespace(id);
  publish_version();
  compactor_->retry_at_once();
  return ok();
}

}  // namespace edgecase::engine
