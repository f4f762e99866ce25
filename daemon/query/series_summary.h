// Summaries of a namespace's series for listings, found in one pass over it. Looking at each series
// by itself takes a hundred times as long where there are many.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::query {

// As of one moment. Series without readings are not in it.
class SeriesSummary {
 public:
  struct Row {
    std::uint32_t device = 0, sensor = 0;  // of SeriesId
    std::uint64_t count = 0, stored_bytes = 0;
    std::int64_t first_ns = 0, last_ns = 0;
  };

  static Result<std::shared_ptr<const SeriesSummary>> make(Engine& engine, NamespaceId id,
                                                           const ReadOptions& options);
  // Null: it has no readings.
  const Row* find(const catalog::SeriesId& id) const;

 private:
  std::vector<Row> rows_;  // in the order of their ids
};

// One pass does for all that ask at the same time, so that there are few of them and few summaries
// in memory, however many list. Thread-safe.
class SeriesSummaries {
 public:
  explicit SeriesSummaries(Engine& engine) : engine_(engine) {}

  // The summary of a moment that is not before the call. Errors: the engine's, and those of
  // `patience`, which may be null; Unsupported where the engine makes none.
  Result<std::shared_ptr<const SeriesSummary>> now(NamespaceId id, Patience* patience)
      EC_EXCLUDES(mutex_);

 private:
  // Passes over one namespace, while anybody asks.
  struct Passes {
    std::uint64_t begun = 0;
    bool is_running = false;
    std::uint64_t made_by = 0;  // the pass that made it
    std::shared_ptr<const SeriesSummary> made;
    std::size_t askers = 0;
  };

  Engine& engine_;
  Mutex mutex_;
  CondVar ended_;
  std::map<NamespaceId, Passes> passes_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::query
