// Thinned keeps what a target is owed as windows: readings became windows of a tier before it had
// them (retention/TIERS.md). The batch of SeriesWindows, which takes the readings, brings the debt
// along; the target's thread pays it (ThinnedSender). Each writes a record of its own, so neither
// waits for the other, and a crash in between sends windows twice, which changes nothing there.
//
//   key 'W' name, 0, series -> what is owed: 1 version, 8 from, 8 to, 8 readings, 4 debt. From and
//                              debt are another where more is owed of what may have gone; the
//                              others only grow. Version 1 has no debt: 0
//   key 'X' name, 0, series -> what went: 1 version, 8 done_to, 8 readings, 4 debt of which that
//                              is, then spans: 8 begin, 8 end, 8 length of windows, 1 columns (bits
//                              by wire::WindowColumn; 128: of several lengths, all multiples of
//                              that one). Version 1 has no debt: 0
//   key 'X' name, 0         -> 1 version, 8 readings of windows that went to that target. It is
//                              there from before the first one. Version 1: 'Y' may lack some
//   key 'Y' name, 0, 16 hash of a series' names -> series, where the target is an EdgeCase: an
//                              erasure finds its spans once nobody knows the names here
//
// In `_forward` (records.h); a series is 4 namespace, 4 device, 4 sensor. Numbers are big-endian,
// times nanoseconds since 1970. Of the same debt what lies before done_to went; of another one
// nothing did. A span is durable before a window of it is sent, so an erasure finds all columns
// that a target may have; done_to and readings are once the target has them for good.
//
// A series has one record of each, however long a target is away or rests: `forget` takes them.
// Thinned is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "edgecase/engine.h"
#include "forward/courier.h"
#include "forward/records.h"
#include "forward/series_names.h"
#include "forward/windows.h"
#include "retention/retention_service.h"
#include "wire/tiers.h"

namespace edgecase::forward {

// Columns, as bits.
using WindowColumns = std::uint8_t;
constexpr WindowColumns column_bit(wire::WindowColumn column) {
  return static_cast<WindowColumns>(1u << static_cast<unsigned>(column));
}
inline constexpr WindowColumns kAllWindowColumns = (1u << wire::kWindowColumns.size()) - 1;
inline constexpr WindowColumns kSeveralLengths = 128;
static_assert(kAllWindowColumns < kSeveralLengths);

struct SeriesOrder {
  bool operator()(const catalog::SeriesId& a, const catalog::SeriesId& b) const {
    return std::tie(a.namespace_id, a.device, a.sensor) <
           std::tie(b.namespace_id, b.device, b.sensor);
  }
};

struct OwedWindows {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint64_t readings = 0;
  std::uint32_t debt = 0;

  friend bool operator==(const OwedWindows&, const OwedWindows&) = default;
};

struct SentWindows {
  // Windows that begin within it have one length, or several: then they are multiples of this one.
  struct Span {
    std::int64_t begin_ns = 0, end_ns = 0, every_ns = 0;
    WindowColumns columns = 0;

    bool has_several_lengths() const { return (columns & kSeveralLengths) != 0; }
    friend bool operator==(const Span&, const Span&) = default;
  };
  // Lengths change with rules; where there would be more, the oldest two become one.
  static constexpr std::size_t kSpansMax = 64;

  std::int64_t done_to_ns = INT64_MIN;
  std::uint64_t readings = 0;
  std::uint32_t debt = 0;
  std::vector<Span> spans = {};  // by time

  void note(const Span& span);
  // Before that time what is owed has gone.
  std::int64_t done_to_of(const OwedWindows& owed) const {
    return owed.debt == debt ? done_to_ns : owed.from_ns;
  }
  // Null: no window that begins then was sent.
  const Span* find(std::int64_t begin_ns) const;

  friend bool operator==(const SentWindows&, const SentWindows&) = default;

 private:
  void join_oldest();
};

class Thinned {
 public:
  Thinned(Engine& engine, Records& records) : engine_(engine), records_(records) {}

  // Readings of the series, so many, from `from_ns` on, go before the target has them; what lies
  // before `to_ns` is windows once `batch` is written. Then call note_owed().
  Status owe(const std::string& name, const catalog::SeriesId& id, std::int64_t from_ns,
             std::int64_t to_ns, std::uint64_t readings, WriteBatch& batch);
  void note_owed() { ++generation_; }
  // Another one: more may be owed.
  std::uint64_t generation() const { return generation_; }

  using Owed = std::pair<catalog::SeriesId, OwedWindows>;
  // Behind a series, `most` of them.
  Result<std::vector<Owed>> owed(const std::string& name,
                                 const std::optional<catalog::SeriesId>& behind,
                                 std::size_t most) const;
  // Nothing: nothing ever was.
  Result<std::optional<OwedWindows>> owed(const std::string& name,
                                          const catalog::SeriesId& id) const;
  // Nothing went: as of a series that is new.
  Result<SentWindows> sent(const std::string& name, const catalog::SeriesId& id) const;
  // The sum of all series; none: no window was ever sent there.
  Result<std::optional<std::uint64_t>> sent_readings(const std::string& name) const;

  using Sent = std::pair<catalog::SeriesId, SentWindows>;
  // What `Y` has of a series' names.
  static Bytes hash_of(const std::string& namespace_name, const std::string& device,
                       const std::string& sensor);
  using Named = std::pair<Bytes, catalog::SeriesId>;
  // Durable on return. `named`: of `Y`.
  Status write(const std::string& name, const std::vector<Sent>& some, std::uint64_t readings,
               const std::vector<Named>& named = {});
  // A series that had that name, of which windows went. `knows_all`: nothing, where there was none.
  struct Gone {
    std::optional<catalog::SeriesId> id = {};
    bool knows_all = false;
  };
  Result<Gone> find_gone(const std::string& name, const Bytes& hash) const;
  // Series that are not there any more owe nothing.
  Status remove_owed(const std::string& name, const std::vector<catalog::SeriesId>& some);
  // Nothing of these is there any more.
  Status remove_sent(const std::string& name, const std::vector<Named>& some);
  Status forget(const std::string& name);

 private:
  Engine& engine_;
  Records& records_;
  std::atomic<std::uint64_t> generation_{1};
};

// Columns whose names are not those of series here: they would get readings of both.
WindowColumns free_columns(const catalog::Catalog& catalog, const catalog::SeriesEntry& series);

// What a target may have of windows of tiers (ThinnedSender).
class WindowsThere {
 public:
  virtual ~WindowsThere() = default;
  // Errors: the engine's; Corruption.
  virtual Result<SentWindows> of(const catalog::SeriesId& id) const = 0;
  // Which series it was that nobody knows here any more.
  virtual Result<Thinned::Gone> find_gone(const std::string& namespace_name,
                                          const std::string& device,
                                          const std::string& sensor) const = 0;
  // Whether a window ever went there.
  virtual Result<bool> has_any() const = 0;
  // Whether a series here has that name.
  virtual bool is_series(const std::string& namespace_name, const std::string& device,
                         const std::string& sensor) const = 0;
};

class BatchReader;  // batch_reader.h

// Sends one target what it is owed as windows: series after series in the order of
// their numbers, of each the windows of its tiers, as columns. A target that has `every` gets
// windows of that length of them, as far as these can be made (windows.h).
//
//   read() ─► announce(): spans are durable ─► the target has taken it: sent()
//                                                └─ and will not forget it: keep()
//
// A sweep goes through all that is owed; another one follows once more is. What was taken and has
// not settled there goes again when the target went away. One thread.
class ThinnedSender final : public WindowsThere {
 public:
  static constexpr std::size_t kSeriesAtOnce = 1'000;
  // More wait until these have settled.
  static constexpr std::size_t kUnsettledMax = 10'000;

  struct Parts {
    Engine& engine;
    const catalog::Catalog& catalog;
    Thinned& thinned;
    const retention::RetentionService* rules = nullptr;  // null: nothing became windows
    std::int64_t every_ns = 0;                           // 0: readings go as they came
    bool keeps_names = false;  // erasures of series that are gone here find their windows
  };
  struct Step {
    catalog::SeriesId id;
    SentWindows before, after;
    Bytes hash = {};  // of its names, where these are kept
  };
  struct Part {
    Batch batch;
    std::vector<Step> steps;
    std::vector<catalog::SeriesId> gone;    // nobody knows them here any more
    std::optional<catalog::SeriesId> last;  // all of it is in the batch
    bool is_whole = true;                   // the sweep ends with it
  };

  // `settle_ns`: after so long a target will not forget what it has taken.
  ThinnedSender(const Parts& parts, std::string name, std::int64_t settle_ns)
      : parts_(parts),
        name_(std::move(name)),
        settle_ns_(settle_ns),
        windows_(parts.engine, parts.every_ns, parts.rules) {}

  bool has_work() const {
    return parts_.rules != nullptr && unsettled_.size() < kUnsettledMax &&
           (is_sweeping_ || done_generation_ != parts_.thinned.generation());
  }
  // Some of it. Errors: the engine's.
  Result<Part> read(BatchReader& reader, std::size_t lines_max);
  // Before it is sent.
  Status announce(const Part& part);
  // It was taken. `may_forget`: no erasure asks for series that are gone.
  void sent(Part part, std::int64_t now_ns, bool may_forget);
  // Durable on return: what has settled.
  Status keep(std::int64_t now_ns);
  // The target may have forgotten what it has taken and not kept.
  void go_back();
  // Readings that went as windows, for good.
  std::uint64_t readings() const { return readings_; }

  Result<SentWindows> of(const catalog::SeriesId& id) const override {
    return parts_.thinned.sent(name_, id);
  }
  Result<Thinned::Gone> find_gone(const std::string& namespace_name, const std::string& device,
                                  const std::string& sensor) const override {
    return parts_.thinned.find_gone(name_, Thinned::hash_of(namespace_name, device, sensor));
  }
  Result<bool> has_any() const override;
  // All of these is erased there.
  Status erased(const std::vector<Thinned::Named>& some);
  bool is_series(const std::string& namespace_name, const std::string& device,
                 const std::string& sensor) const override {
    return parts_.catalog.find(namespace_name, device, sensor).ok();
  }

 private:
  struct Unsettled {
    SentWindows now;
    std::uint64_t kept_readings = 0;
    std::int64_t sent_ns = 0;
  };
  Result<SentWindows> sent_of(const catalog::SeriesId& id) const;
  Status forget_sent(const std::vector<catalog::SeriesId>& some);
  Status load();
  // Whether all that is owed of the series is in the batch.
  Result<bool> read_series(const catalog::SeriesEntry& here, const SeriesNames::Series& there,
                           const OwedWindows& owed, const std::shared_ptr<const Snapshot>& snapshot,
                           BatchReader& reader, std::size_t lines_max, Part& part) const;

  const Parts parts_;
  const std::string name_;
  const std::int64_t settle_ns_;
  const Windows windows_;
  bool is_loaded_ = false, is_sweeping_ = false;
  std::uint64_t readings_ = 0;
  std::uint64_t generation_ = 0, done_generation_ = 0;  // of the sweep, of the one before
  std::optional<catalog::SeriesId> behind_;
  std::map<catalog::SeriesId, Unsettled, SeriesOrder> unsettled_;
};

}  // namespace edgecase::forward
