// Requests of InfluxQL statements that are being answered, for SHOW QUERIES and KILL QUERY: there
// are never more than workers that answer. Thread-safe; outlives the queries.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authorize.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::http {

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
