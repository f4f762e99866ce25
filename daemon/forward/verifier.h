// The verifier compares what was sent with what a target holds: a series after another, so many
// readings at a time, each by its time and value. It names hours in which some are missing; who
// asked has them sent again. In pages, so that nobody waits long. One thread.
//
//   EdgeCase         its query route: the same line as here
//   InfluxDB 1       SELECT of the field: the same time and value
//   VictoriaMetrics  /api/v1/export: the same millisecond; numbers alone
//   others           Unsupported
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "config/forward_target.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "forward/eraser.h"
#include "forward/records.h"
#include "wire/reading_format.h"

namespace edgecase::forward {

struct VerifyRequest {
  std::optional<std::int64_t> from_ns, to_ns;
  // What was committed in between was sent.
  CommitPosition after = 0, upto = 0;
  // What was committed later may be there and not be shown yet: a page that lacks some of it looks
  // again until its time is over, and the next one begins with it. `wait`: false, nobody waits on.
  CommitPosition shown = UINT64_MAX;
  std::function<bool(std::int64_t duration_ns)> wait = {};
  std::string behind;  // VerifyPage::next of the page before
  // Whether the target has refused that reading: it is not missing, then.
  std::function<Result<bool>(const Place&)> is_refused;
};

struct VerifyPage {
  struct Hour {
    std::string namespace_name, device, sensor;
    std::int64_t begin_ns = 0;
    std::uint64_t here = 0, missing = 0;
  };
  std::uint64_t readings = 0;  // that were compared
  std::uint64_t missing = 0;
  std::uint64_t refused = 0;    // by the target, when they were sent
  std::uint64_t unchecked = 0;  // too large to be fetched, here or there
  std::vector<Hour> hours;      // with something missing, kHoursMax at most
  std::vector<Refusal> again;   // what is missing, kAgainMax at most
  std::string next;             // empty: that was all
};

class Verifier {
 public:
  static constexpr std::size_t kHoursMax = 1'000;
  static constexpr std::size_t kAgainMax = kUndeliveredMax;
  static constexpr std::size_t kReadingsAtOnce = 2'000;
  static constexpr std::size_t kBytesAtOnce = 128u << 10;
  static constexpr std::size_t kWindowsAtOnce = 500;
  static constexpr std::int64_t kPageNs = 2'000'000'000;
  static constexpr std::int64_t kLookAgainNs = 250'000'000;

  Verifier(Engine& engine, const catalog::Catalog& catalog, Clock& clock, Asked& asked,
           const config::ForwardSettings& settings, const config::ForwardTarget& target,
           const Shape& shape = {}, const retention::RetentionService* rules = nullptr);

  // Errors: InvalidArgument (`behind`), NotAllowed, Unavailable, Unsupported: the target's; the
  // engine's.
  Result<VerifyPage> page(const VerifyRequest& request);

 private:
  struct Local {
    std::int64_t time_ns = 0;
    Bytes key;
    std::string as_it_is;  // the line or the value that the target should answer
    bool is_settled = true;
  };
  struct Series;
  using Answered = std::optional<std::set<std::string>>;
  struct Found {
    std::set<std::string> there;
    std::set<std::int64_t> too_long;  // times of which more is there than an answer may hold
  };

  // Compares from `from_ns` on; where to go on, or nothing: that was all of it.
  Result<std::optional<std::int64_t>> compare(const catalog::SeriesEntry& entry,
                                              const VerifyRequest& request, std::int64_t from_ns,
                                              std::int64_t until_ns, VerifyPage& page);
  // The same of a thinned target, window by window.
  Result<std::optional<std::int64_t>> compare_windows(const catalog::SeriesEntry& entry,
                                                      const VerifyRequest& request,
                                                      std::int64_t from_ns, std::int64_t until_ns,
                                                      VerifyPage& page);
  // False: some may be there and is not shown yet.
  Result<bool> compare_some(const Series& series, const std::vector<Local>& some,
                            const VerifyRequest& request, std::int64_t until_ns, VerifyPage& page);
  // What the target holds of these: in parts, where an answer is longer than is taken.
  Status fetch_some(const Series& series, std::span<const Local> some, Found& found);
  // What it holds between two times, both included, in the words of Local; nothing: an answer would
  // be longer than is taken.
  Result<Answered> fetch(const Series& series, std::int64_t first_ns, std::int64_t last_ns);
  Result<Answered> fetch_edgecase(const Series& series, std::int64_t first_ns,
                                  std::int64_t last_ns);
  Result<Answered> fetch_influx(const Series& series, std::int64_t first_ns, std::int64_t last_ns);
  Result<Answered> fetch_victoria(const Series& series, std::int64_t first_ns,
                                  std::int64_t last_ns);
  // False: a target of this kind cannot hold it.
  bool describe(const Series& series, const wire::Reading& reading, std::string& text);

  Engine& engine_;
  const catalog::Catalog& catalog_;
  Clock& clock_;
  Asked& asked_;
  const config::ForwardTarget target_;
  const WatchedTarget watched_;
  const std::string database_, namespace_;
  const Pseudonyms pseudonyms_;
  const Windows windows_;
  Eraser kind_;
  wire::ReadingFormatter lines_, objects_;
};

}  // namespace edgecase::forward
