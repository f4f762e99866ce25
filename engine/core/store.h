// Store: the things that all owners of an open store share. It owns nothing: everything here
// outlives them, and is thread-safe. EngineImpl puts it together.
#pragma once

#include <algorithm>

#include "core/background_tasks.h"
#include "core/health.h"
#include "core/memory_budget.h"
#include "core/revocations.h"
#include "core/views.h"
#include "core/wal.h"
#include "crypto/key_ring.h"
#include "edgecase/options.h"
#include "expiry/expiry_clock.h"
#include "expiry/expiry_view.h"
#include "feed/feed_bounds.h"
#include "file/file_remover.h"
#include "table/table_cache.h"
#include "version/version_set.h"

namespace edgecase::engine {

struct Store {
  const Options& options;
  const Environment& environment;
  StoreId id;
  BackgroundTasks& tasks;
  Health& health;
  MemoryBudget& budget;
  KeyRing* keys;  // null: not encrypted
  VersionSet& versions;
  Wal& wal;
  TableCache& tables;
  FileRemover& remover;
  ExpiryClock& expiry_clock;
  Views& views;
  Revocations& revocations;
  const FeedBounds& feed_bounds;

  // By the time at which reads of the namespace do not see entries any more. Empty: never.
  ExpiryView expiry_of_reads(NamespaceId namespace_id) const {
    auto rules = versions.retention();
    if (rules == nullptr || !rules->has_namespace(namespace_id)) return {};
    return {std::move(rules), expiry_clock.now_ns(), options.expiry};
  }
  // By the time at which bytes go.
  ExpiryView expiry_of_bytes() const {
    auto rules = versions.retention();
    if (rules == nullptr) return {};
    return {std::move(rules), expiry_clock.removal_ns(), options.expiry};
  }
  // Whether any namespace has its values on the values drive.
  bool uses_values_drive() const {
    const auto all = versions.state().namespaces;
    return std::any_of(all.begin(), all.end(), [](const NamespaceInfo& info) {
      return info.options.placement == Placement::Values;
    });
  }
};

}  // namespace edgecase::engine
