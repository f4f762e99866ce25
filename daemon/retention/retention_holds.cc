// RetentionService, as it spares what waits for a target of forwarding (unsent.h).
#include <algorithm>
#include <utility>

#include "retention/retention_records.h"
#include "retention/retention_service.h"

namespace edgecase::retention {

std::int64_t RetentionService::held_ns(std::string_view namespace_name, const std::string* device,
                                       const std::string* sensor) const {
  std::int64_t held_ns = 0;
  const auto takes = [&](const Hold::Part& part) {
    if (part.namespace_name != "*" && part.namespace_name != namespace_name) return false;
    const auto matches = [](const std::string& glob, const std::string* name) {
      return name == nullptr ? glob == "*" : wire::glob_matches(glob, *name);
    };
    return matches(part.selector.device, device) && matches(part.selector.sensor, sensor);
  };
  for (const Hold& hold : holds_) {
    if (!namespace_name.starts_with('_') &&
        std::any_of(hold.parts.begin(), hold.parts.end(), takes))
      held_ns = std::max(held_ns, hold.keep_ns);
  }
  return held_ns;
}

Status RetentionService::set_holds(std::vector<Hold> holds) {
  const MutexLock lock(mutex_);
  if (holds == holds_ && !has_untold_holds_) return ok();
  const bool had_any = has_untold_holds_ || !holds_.empty();
  const Bytes key(1, kHoldRecord);
  if (!holds.empty() && !had_any) {
    WriteBatch batch;
    batch.put(records_, key, Bytes(1, kRecordVersion));
    EC_TRY(engine_.write(batch, Durability::Sync));
  }
  const bool is_over = holds.empty() && had_any;
  holds_ = std::move(holds);
  has_untold_holds_ = false;
  EC_TRY(align(rules_));
  if (!is_over) return ok();
  WriteBatch batch;
  batch.remove(records_, key);
  batch.set_makes_room();
  return engine_.write(batch, Durability::Async);
}

}  // namespace edgecase::retention
