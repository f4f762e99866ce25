#include "http/running_queries.h"

#include <utility>

namespace edgecase::http {

RunningQuery::~RunningQuery() {
  table_.end(*this);
}

Status RunningQuery::go_on() {
  if (is_killed_.load(std::memory_order_relaxed)) return cancelled("query killed");
  return behind_ == nullptr ? ok() : behind_->go_on();
}

void RunningQuery::rest() {
  if (behind_ != nullptr) behind_->rest();
}

void RunningQuery::resume() {
  if (behind_ != nullptr) behind_->resume();
}

std::shared_ptr<RunningQuery> RunningQueries::begin(std::string_view text,
                                                    std::string_view database,
                                                    const auth::Principal& asker, Patience* behind,
                                                    std::int64_t now_ns) {
  std::shared_ptr<RunningQuery> query(new RunningQuery(*this, behind));
  query->text_ = text.substr(0, kTextMaxBytes);
  query->database_ = database;
  query->asker_ = asker.name;
  query->begun_ns_ = now_ns;
  const MutexLock lock(mutex_);
  query->id_ = ++last_id_;
  running_.push_back(query.get());
  return query;
}

std::vector<RunningQueries::Told> RunningQueries::tell(const auth::Principal& asker,
                                                       std::int64_t now_ns) const {
  const bool is_administrator = auth::authorize_administration(asker).ok();
  std::vector<Told> told;
  const MutexLock lock(mutex_);
  for (const RunningQuery* query : running_) {
    if (!is_administrator && query->asker_ != asker.name) continue;
    told.push_back({query->id_, query->text_, query->database_, now_ns - query->begun_ns_,
                    query->is_killed_.load(std::memory_order_relaxed)});
  }
  return told;
}

Status RunningQueries::kill(std::int64_t id, const auth::Principal& asker) {
  const bool is_administrator = auth::authorize_administration(asker).ok();
  const MutexLock lock(mutex_);
  for (RunningQuery* query : running_) {
    if (static_cast<std::int64_t>(query->id_) != id) continue;
    if (!is_administrator && query->asker_ != asker.name) break;
    query->is_killed_.store(true, std::memory_order_relaxed);
    return ok();
  }
  return not_found("no such query id: " + std::to_string(id));
}

void RunningQueries::end(const RunningQuery& query) {
  const MutexLock lock(mutex_);
  std::erase(running_, &query);
}

}  // namespace edgecase::http
