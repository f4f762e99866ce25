// One target: its thread reads what the target does not have, sends it, and moves the target's
// place once it is answered.
//
//   bell, or 1 s ─► fresh range ─► one batch ─► Courier ─► answered ─► cursor moves ─► kept
//                   backlog     ─►                    └─► not: rest, and the same again
//
// Three cursors: `live_` is what was answered; `record_.cursor` is durable; between them, at
// targets that answer before they have synced, `settling_` waits for the settle time. When such a
// target goes away, `live_` goes back to `record_.cursor`. All three are bounds of merges.
//
// Erasures go before everything else: what was committed before them and is gone is not read any
// more, and what was committed after them waits until they are answered and that is durable. At
// targets that settle an erasure is final before a place is kept that lies behind it.
//
// One class of many methods: its turns (send_…) move the same cursors and wait for the same answer.
// status(), waiting(), resend(), pause(), resume() and stop() are for any thread; a lock is held
// for them alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "forward/batch_reader.h"
#include "forward/courier.h"
#include "forward/cursor.h"
#include "forward/eraser.h"
#include "forward/erasures.h"
#include "forward/http_target.h"
#include "forward/records.h"
#include "forward/summaries.h"
#include "forward/summarizer.h"
#include "forward/thinned.h"
#include "forward/unsent.h"
#include "forward/windows.h"
#include "ingest/reading_feed.h"
#include "observe/logger.h"

namespace edgecase::forward {

enum class TargetState : unsigned char {
  Current,  // it has everything
  Sending,
  Waiting,  // it does not answer, or asks for patience
  Denied,   // the token may not
  Wrong,    // what answers is no target, or refuses everything
  Paused,   // by somebody's word
  AtRest,   // it is not configured
  Failing,  // the store cannot be read, or its place not be kept
};
const char* state_name(TargetState state);

struct TargetStatus {
  std::string name, to;
  TargetState state = TargetState::Current;
  std::string why;          // of what keeps it back; empty: nothing does
  std::string refused_why;  // what the target said of the line that it refused last
  Totals totals;            // since the target is known
  std::size_t undelivered_kept = 0;
  std::uint64_t requests = 0, failed_requests = 0;  // batches, since the start
  std::int64_t answered_ns = 0;                     // wall time; 0: not yet, since the start
  std::int64_t current_ns = 0;  // when it last had everything; 0: not yet, since the start
  std::size_t erasures = 0;     // that wait for it
  std::optional<std::int64_t> oldest_ns;  // of what waits, as far as that is known
  std::string cannot_erase;               // why; empty: it can, or it is not known yet
  bool is_apart = false;                  // as of Answer
  Cursor cursor, kept;                    // kept: what the target cannot forget any more
  CommitPosition shown = 0;               // the target shows what was committed until then
  std::uint64_t thinned_sent = 0;  // of what went before it had it: readings whose windows it has
};

struct TargetParts {
  Engine& engine;
  const catalog::Catalog& catalog;
  Clock& clock;
  Random& random;  // thread-safe
  observe::Logger& logger;
  Records& records;
  Erasures& erasures;
  Unsent& unsent;
  Thinned& thinned;
  FeedBounds& bounds;
  Lineage& lineage;
  Summaries& summaries;
  const retention::RetentionService* rules;  // that may go along; null: there are none
  ingest::CommitBell& bell;
  // What went there on a day that is over, or until now.
  std::function<void(const std::string& name, std::uint64_t readings)> sent = {};
};

class Target {
 public:
  // How long an answer waits to count, of targets that answer before they have synced.
  static constexpr std::int64_t kSettleNs = 30'000'000'000;
  // The time after which such a target shows what it has answered, at the latest.
  static constexpr std::int64_t kShownNs = 10'000'000'000;
  static constexpr std::int64_t kKeepEveryNs = 1'000'000'000;
  // The place moves without anything being sent, too.
  static constexpr std::int64_t kKeepIdleNs = 600'000'000'000;
  static constexpr std::int64_t kPublishNs = 60'000'000'000;  // of bounds, where nothing moves
  static constexpr std::int64_t kLookNs = 1'000'000'000;      // what rings no bell: dated readings
  static constexpr std::int64_t kLateNs = 2'000'000'000;      // readings come after their window
  // A round of more commits goes as backlog, which keeps its place on the way.
  static constexpr CommitPosition kRoundMax = 1'000'000;
  static constexpr std::int64_t kNamelessNs = 10'000'000'000;
  static constexpr std::int64_t kCertificateLookNs = 1'000'000'000;
  // What one takes, beside a value that is larger than usual.
  static constexpr std::uint64_t kMemoryBytes = 3u << 20;

  // InvalidArgument begins with the key that is wrong.
  static Result<std::unique_ptr<Target>> create(const TargetParts& parts,
                                                const config::ForwardSettings& settings,
                                                Record record);
  ~Target() { stop(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // Its positions, for FeedBounds. Before start().
  FeedBounds::Positions positions() const;
  void start();
  // Its place is kept. Ends within a second, or when the system's resolver answers.
  void stop();
  // After stop().
  Record record() const { return record_; }

  const config::ForwardSettings& settings() const { return settings_; }
  TargetStatus status() const EC_EXCLUDES(mutex_);
  // How many readings it does not have, at most. Looks at the store.
  Result<std::uint64_t> waiting() const EC_EXCLUDES(mutex_);
  // Once the batch that is on its way is answered; kept over restarts.
  void pause() EC_EXCLUDES(mutex_) { set_paused(true, Again::Nothing); }
  // Tries at once. `undelivered`: what it refused, too.
  void resume(bool undelivered) EC_EXCLUDES(mutex_) {
    set_paused(false, undelivered ? Again::All : Again::Nothing);
  }
  // What Records keeps as missing there is sent, once the target is not paused.
  void resend() EC_EXCLUDES(mutex_);

 private:
  enum class Turn : unsigned char { Idle, Sent, Failed };
  enum class Refusals : unsigned char { AreNew, AreKept };
  // What is sent again of the readings that are kept aside.
  enum class Again : unsigned char { Nothing, Missing, All };

  Target(const TargetParts& parts, const config::ForwardSettings& settings,
         const config::ForwardTarget& target, const Shape& shape, std::unique_ptr<HttpTarget> http,
         Record record);
  void set_paused(bool paused, Again which) EC_EXCLUDES(mutex_);
  void run();
  void pause_for(std::int64_t duration_ns) EC_EXCLUDES(mutex_);
  bool take_orders() EC_EXCLUDES(mutex_);
  Turn work();
  // Says who sends, with what is sent from now on.
  Status introduce();
  void note_known(const Delivery& delivery);
  Turn send_fresh();
  // With `every`: a round of windows that are over (windows.h).
  Turn send_windows();
  void note_window();
  bool has_windows() const;
  Turn send_backlog();
  // What it is owed of readings that have become windows (thinned.h).
  Turn send_thinned();
  // What comes behind the fresh range.
  bool has_later() const { return !live_.backlog().empty() || thinned_.has_work(); }
  // With `retention`: rules of series of which nothing goes now, after a change and at the start.
  bool has_rules();
  Turn send_rules();
  bool carry_rules(const Batch& batch);
  bool has_summaries();
  Turn send_summaries();
  Turn send_again();
  void end_again();
  void show_later();
  Turn send_erasure(const ErasureOrder& order);
  Turn send_lift(std::uint64_t number, const TargetErasure& erased);
  // Something goes before readings.
  bool has_erasure() const;
  Status end_erasure(std::uint64_t number, TargetErasure result);
  void forget_erased(const ErasureOrder& order, const TargetErasure& result);
  // Makes answers final that the target cannot forget any more; false: that could not be kept.
  bool settle_erasures();
  void look_at_certificates();
  // Nothing: it did not go, and `live_` stays as it is.
  std::optional<Delivery> send(const Batch& batch, Refusals refusals = Refusals::AreNew);
  Result<Batch> read(BatchReader::Wish wish);
  bool still_holds(const Batch& batch);
  Status set_aside(const Batch& batch, const Delivery& delivery);
  void fail(const Answer& answer, bool refuses_all);
  void fail(const Status& status);
  void go_back();
  void forget_round();
  void rest_until(std::int64_t boot_ns, TargetState state, std::string why);
  // What the target cannot forget any more.
  const Cursor& settled() const { return settle_ns_ == 0 ? live_ : record_.cursor; }
  void keep_place(bool is_last);
  Status keep(const Cursor& cursor);
  void publish_bounds();
  void note_unsent();
  void note_current();
  void tell();
  void tell_sent(bool is_last);
  bool is_stopping() const EC_EXCLUDES(mutex_);

  const TargetParts parts_;
  const config::ForwardSettings settings_;
  const config::ForwardTarget target_;
  const std::int64_t settle_ns_;
  const bool is_local_;
  const CommitPosition began_behind_;
  std::unique_ptr<HttpTarget> http_;
  std::thread thread_;

  // The thread's own.
  Record record_;
  Cursor live_;
  std::optional<Cursor> settling_;
  std::int64_t settling_since_ns_ = 0, kept_at_ns_ = 0, published_at_ns_ = 0;
  // What is shown there, and what will be from kShownNs after that time on.
  CommitPosition shown_, answered_upto_;
  std::int64_t answered_upto_ns_;
  bool is_unkept_ = false;         // something was sent since the place was kept
  bool is_unsettled_ = false;      // the same, since `settling_` was taken
  bool is_backlogs_turn_ = false;  // or that of windows
  bool was_summing_ = false;       // readings and summaries take turns
  bool was_thinned_ = false;       // so do windows and backlog
  // An EdgeCase was told who sends; has answered since; keeps that apart.
  bool is_introduced_ = false, is_known_ = false, is_apart_ = false;
  // For targets with `every`. `boundary_` is where commits stood when the last window was over, for
  // the next round; a bound, as that of the round that is being sent, from behind `round_behind_`
  // on.
  std::optional<std::int64_t> window_;  // in which the clock is
  std::optional<CommitPosition> boundary_;
  std::int64_t boundary_ns_ = 0;
  Round round_;
  CommitPosition round_upto_ = 0;  // 0: none is being sent
  std::optional<Place> round_behind_;
  CommitPosition done_upto_ = 0;
  std::int64_t done_over_ns_ = INT64_MIN;
  Again again_now_ = Again::Nothing;  // what is being sent again, and how far that is
  Place again_behind_;
  BatchReader reader_;
  Courier courier_;
  ThinnedSender thinned_;
  Eraser eraser_;
  Summarizer summarizer_;
  // The erasure that is being sent: how far it is.
  struct Erasing {
    std::uint64_t number = 0;
    std::uint32_t chunk = 0;
    TargetErasure result = {};
  };
  Erasing erasing_;
  struct Settling {
    std::uint64_t number = 0;
    std::int64_t answered_ns = 0;  // by boot_ns()
    TargetErasure result = {};
  };
  std::vector<Settling> settling_erasures_;
  std::int64_t looked_ns_ = 0;
  Pace pace_;
  std::int64_t rests_until_ns_ = 0;     // by boot_ns()
  std::int64_t nameless_since_ns_ = 0;  // 0: none
  std::uint64_t lost_connections_ = 0, revocations_ = 0;
  std::size_t kept_refusals_ = 0;
  std::uint64_t rules_generation_ = UINT64_MAX;      // that was told, or is being told
  std::optional<catalog::SeriesRow> rules_row_ = 0;  // from where on; none: all of it
  TargetState state_ = TargetState::Sending;
  std::string why_, refused_why_;
  std::uint64_t requests_ = 0, failed_requests_ = 0;
  std::int64_t answered_ns_ = 0;
  std::uint64_t sent_today_ = 0;
  std::int64_t today_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  bool is_paused_ EC_GUARDED_BY(mutex_) = false;
  Again again_ EC_GUARDED_BY(mutex_) = Again::Nothing;
  bool is_hurried_ EC_GUARDED_BY(mutex_) = false;
  TargetStatus told_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::forward
