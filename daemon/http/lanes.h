// Lanes of workers: a request's is told by its head alone, before anything of it is looked at.
// Requests that read share the processor by turns (ReadTurn); statements of InfluxQL can be listed,
// and killed (RunningQueries).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authorize.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "http/request_head.h"

namespace edgecase::http {

enum class Lane : unsigned char {
  Prompt,   // little work, and somebody draws conclusions from its being late: /healthz, /metrics
  Ingest,   // readings to be stored
  Changes,  // everything else that changes something; may take long, as an erasure does
  Reads,    // may take long, by work or by a reader that is slow
};
inline constexpr std::size_t kLanes = 4;

Lane lane_of(const RequestHead& head);

// Lets a number of reads work at once; the others wait, those first that wait longest.
// Thread-safe.
class ReadSlots {
 public:
  explicit ReadSlots(std::uint32_t count) : free_(count) {}

  void take();
  // False: others have them, or wait for one.
  bool try_take();
  void give_back();
  bool is_wanted() const;
  std::size_t waiting() const;

 private:
  struct Waiter {
    bool is_called = false;
  };
  mutable Mutex mutex_;
  CondVar called_;
  std::uint32_t free_ EC_GUARDED_BY(mutex_);
  std::list<Waiter> waiters_ EC_GUARDED_BY(mutex_);  // longest first
};

// One read at its work: asked now and then, it lets others have their turn, and tells when the
// client has left. While it waits for its reader it has no slot. One thread.
class ReadTurn final : public Patience {
 public:
  // `has_left` asks the connection; it must outlive the turn, as `slots`.
  ReadTurn(ReadSlots& slots, std::function<bool()> has_left);
  // A second thread's that works for the same client; null where there is no slot for it.
  static std::unique_ptr<ReadTurn> second(ReadSlots& slots);
  ~ReadTurn() override;

  // Cancelled: the client has left.
  Status go_on() override;
  void rest() override;
  void resume() override;

 private:
  explicit ReadTurn(ReadSlots& slots);  // whose slot was taken

  ReadSlots& slots_;
  const std::function<bool()> has_left_;  // null: somebody else asks
  std::int64_t looked_ns_;
  bool has_slot_ = true;
};

// Whether a client has left, by its socket. Who only ends its side of the connection may still
// read: it is told by taking what is sent, and has left where there was nothing to send for a
// while.
class LeavingClient {
 public:
  explicit LeavingClient(int descriptor) : descriptor_(descriptor) {}

  void sent(std::uint64_t bytes) { sent_bytes_ += bytes; }
  bool has_left();

 private:
  const int descriptor_;
  std::uint64_t sent_bytes_ = 0;
  std::int64_t ended_ns_ = 0;      // its side; 0: it has not
  std::uint64_t sent_before_ = 0;  // it was looked at last
};

// Requests of InfluxQL statements that are being answered, for SHOW QUERIES and KILL QUERY: there
// are never more than workers that answer. Thread-safe; outlives the queries.

class RunningQueries;

// One of them: asked now and then while it is answered, it ends with Cancelled once it is killed,
// and asks whoever stands behind it.
class RunningQuery final : public Patience {
 public:
  ~RunningQuery() override;
  Status go_on() override;
  void rest() override;
  void resume() override;

 private:
  friend class RunningQueries;
  RunningQuery(RunningQueries& table, Patience* behind) : table_(table), behind_(behind) {}

  RunningQueries& table_;
  Patience* const behind_;  // null: nobody
  std::atomic<bool> is_killed_{false};
  // Set before it is in the table.
  std::uint64_t id_ = 0;
  std::string text_, database_, asker_;
  std::int64_t begun_ns_ = 0;
};

class RunningQueries {
 public:
  // How much of a query's text is told.
  static constexpr std::size_t kTextMaxBytes = 1024;

  struct Told {
    std::uint64_t id = 0;
    std::string text, database;
    std::int64_t running_ns = 0;
    bool is_killed = false;
  };

  // Its entry, until it is destroyed. `behind` may be null, and outlives every call of it.
  std::shared_ptr<RunningQuery> begin(std::string_view text, std::string_view database,
                                      const auth::Principal& asker, Patience* behind,
                                      std::int64_t now_ns);
  // An administrator is told all, others are told their own; in the order in which they came.
  std::vector<Told> tell(const auth::Principal& asker, std::int64_t now_ns) const;
  // NotFound: there is none that the asker may see.
  Status kill(std::int64_t id, const auth::Principal& asker);

 private:
  friend class RunningQuery;
  void end(const RunningQuery& query);

  mutable Mutex mutex_;
  std::vector<RunningQuery*> running_ EC_GUARDED_BY(mutex_);
  std::uint64_t last_id_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::http
