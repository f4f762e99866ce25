// Catches up for `edgecase tail`: prints readings that were stored while it could not follow, since
// the daemon was away or started again.
//
// The daemon's feed begins anew then. The newest time of each series that was shown, or stored
// before, is known here; what is stored under later times now is what came meanwhile. A reading
// that came late, under a time before that, does not show; nor does one that replaced another. Use:
// begin(), shown() for each reading that is printed, after a gap show_missed(), which may be called
// again where it failed; skips() for what the feed brings. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "daemon_client.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::cli {

// False: it takes no more.
using TakeReading = std::function<bool(const wire::Reading&)>;

// Decodes NDJSON of the daemon as it comes. Cancelled: `take` took no more.
class ReadingLines {
 public:
  explicit ReadingLines(TakeReading take) : take_(std::move(take)) {}
  Status push(std::string_view piece);
  Status finish();  // the answer is whole

 private:
  const TakeReading take_;
  std::string rest_;  // the beginning of a line whose end has not come
};

class CatchUp {
 public:
  // Series and readings that are kept in mind; beyond, what came meanwhile is not shown, or twice.
  static constexpr std::size_t kSeriesMax = 1u << 20;
  static constexpr std::size_t kRepeatsMax = 1u << 18;

  // `client` outlives this.
  CatchUp(DaemonClient& client, const NamespaceArguments& namespaces,
          wire::SelectionTexts selection, std::string purpose);

  // What is stored already.
  Status begin();
  void shown(const wire::Reading& reading);
  // Hands over the newest `count` readings of all, in the order of their times. Those of them that
  // the feed brings, too, are skipped.
  Status show_newest(std::size_t count, const TakeReading& take);
  // Nothing that was asked for was there at begin().
  bool found_nothing() const { return series_.empty(); }
  // Hands over what came since, ordered by series and time: take() prints and calls shown().
  Status show_missed(const TakeReading& take);
  // Whether show_missed() handed it over, once for each time it did.
  bool skips(const wire::Reading& reading);
  // The feed brought all that was stored while show_missed() ran.
  void forget_repeats() { repeats_.clear(); }

 private:
  struct Newest {
    std::int64_t dated_ns = INT64_MIN;
    std::int64_t undated_ns = INT64_MIN;  // waits for its time: wire/time_text.h

    bool is_before(std::int64_t time_ns) const;
    void add(std::int64_t time_ns);
  };
  using Series = std::map<std::string, Newest, std::less<>>;

  Newest* newest_of(const wire::Reading& reading);  // null: kSeriesMax
  Status for_each_last(const TakeReading& take);

  DaemonClient& client_;
  const NamespaceArguments namespaces_;
  const wire::SelectionTexts selection_;
  const std::string purpose_;
  Series series_;  // by namespace/device/sensor
  std::set<std::pair<const Newest*, std::int64_t>> repeats_;
};

}  // namespace edgecase::cli
