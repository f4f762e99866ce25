#include "query/series_summary.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "wire/reading_key.h"

namespace edgecase::query {
namespace {

// How often a request that waits for another one's pass looks whether its client is still there.
constexpr std::int64_t kLookAgainNs = 20'000'000;

std::pair<std::uint32_t, std::uint32_t> ids_of(ByteView key) {
  std::uint32_t ids[2] = {};
  for (std::size_t i = 0; i < wire::kSeriesPrefixBytes; ++i)
    ids[i / 4] = ids[i / 4] << 8 | static_cast<unsigned char>(key[i]);
  return {ids[0], ids[1]};
}

}  // namespace

Result<std::shared_ptr<const SeriesSummary>> SeriesSummary::make(Engine& engine, NamespaceId id,
                                                                 const ReadOptions& options) {
  auto summary = std::make_shared<SeriesSummary>();
  EC_TRY(engine.summarize(id, {}, wire::kSeriesPrefixBytes, options, [&](const PrefixStats& stats) {
    if (stats.first.size() != wire::kReadingKeyBytes) return ok();
    const auto [device, sensor] = ids_of(stats.first);
    summary->rows_.push_back({device, sensor, stats.entries, stats.stored_bytes,
                              wire::time_of_reading_key(stats.first.data()),
                              wire::time_of_reading_key(stats.last.data())});
    return ok();
  }));
  return std::shared_ptr<const SeriesSummary>(std::move(summary));
}

const SeriesSummary::Row* SeriesSummary::find(const catalog::SeriesId& id) const {
  const auto found = std::lower_bound(
      rows_.begin(), rows_.end(), id, [](const Row& row, const catalog::SeriesId& wanted) {
        return std::tie(row.device, row.sensor) < std::tie(wanted.device, wanted.sensor);
      });
  const bool is_there =
      found != rows_.end() && found->device == id.device && found->sensor == id.sensor;
  return is_there ? &*found : nullptr;
}

Result<std::shared_ptr<const SeriesSummary>> SeriesSummaries::now(NamespaceId id,
                                                                  Patience* patience) {
  MutexLock lock(mutex_);
  Passes& passes = passes_[id];
  // One that runs may have begun before the call.
  const std::uint64_t wanted = passes.begun + 1;
  ++passes.askers;
  Result<std::shared_ptr<const SeriesSummary>> answer = std::shared_ptr<const SeriesSummary>();
  while (answer.ok() && *answer == nullptr) {
    if (passes.made != nullptr && passes.made_by >= wanted) {
      answer = passes.made;
    } else if (!passes.is_running) {
      passes.is_running = true;
      const std::uint64_t own = ++passes.begun;
      lock.unlock();
      ReadOptions options;
      options.fill_cache = false;
      options.patience = patience;
      answer = SeriesSummary::make(engine_, id, options);
      lock.lock();
      passes.is_running = false;
      if (answer.ok()) std::tie(passes.made, passes.made_by) = std::pair(*answer, own);
      ended_.notify_all();  // where it failed, another one tries
    } else {
      // The pass's maker may need the turn.
      if (patience != nullptr) {
        lock.unlock();
        patience->rest();
        lock.lock();
      }
      if (passes.is_running) ended_.wait_for(mutex_, kLookAgainNs);
      if (patience != nullptr) {
        lock.unlock();
        patience->resume();
        const Status status = patience->go_on();
        if (!status.ok()) answer = status;
        lock.lock();
      }
    }
  }
  if (--passes.askers == 0 && !passes.is_running) passes_.erase(id);
  return answer;
}

}  // namespace edgecase::query
