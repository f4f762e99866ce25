#include "http/http_routes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace edgecase::http {

bool CatalogSeries::has_device(std::string_view namespace_name, std::string_view device) const {
  return !catalog_.devices(namespace_name, wire::escape_name(device)).empty();
}

bool CatalogSeries::has_series(std::string_view namespace_name, std::string_view device,
                               std::string_view sensor,
                               const wire::SeriesIdentity& identity) const {
  return catalog_.may_be(namespace_name, device, sensor, identity);
}

bool CatalogSeries::has_series_of(std::string_view namespace_name, std::string_view device,
                                  std::string_view prefix) const {
  return catalog_.has_old(namespace_name, device, prefix);
}

LineSpares::Loan LineSpares::take(std::string_view namespace_name) {
  std::unique_ptr<LineSpare> spare;
  std::shared_ptr<const wire::LineRules> rules;
  const std::uint64_t generation = catalog_.generation();
  std::uint64_t forgets = 0;
  std::size_t share = 0;
  {
    const MutexLock lock(mutex_);
    forgets = forgets_;
    rules = rules_;
    std::erase_if(spares_, [&](const auto& each) {
      return each->generation != generation || each->rules != rules;
    });
    const auto served = std::find_if(
        spares_.rbegin(), spares_.rend(),
        [namespace_name](const auto& each) { return each->namespace_name == namespace_name; });
    // The spare that was used longest ago gives way, once there are as many as are kept.
    if (served != spares_.rend()) {
      const auto at = std::prev(served.base());
      spare = std::move(*at);
      spares_.erase(at);
    } else if (spares_.size() == kSparesMax) {
      spare = std::move(spares_.front());
      spares_.erase(spares_.begin());
    }
    ++lent_;
    share = share_bytes();
  }
  if (spare == nullptr) spare = std::make_unique<LineSpare>();
  spare->names.look_in(&series_);
  spare->names.obey(rules.get());
  spare->names.set_room(share / 2);
  spare->rules = std::move(rules);
  spare->generation = generation;
  spare->forgets = forgets;
  spare->namespace_name = namespace_name;
  return Loan(*this, std::move(spare));
}

void LineSpares::set_rules(std::shared_ptr<const wire::LineRules> rules) {
  const MutexLock lock(mutex_);
  rules_ = std::move(rules);
  spares_.clear();
  set_aside_.tell(0);
}

std::shared_ptr<const wire::LineRules> LineSpares::rules() const {
  const MutexLock lock(mutex_);
  return rules_;
}

void LineSpares::forget() {
  const MutexLock lock(mutex_);
  ++forgets_;
  spares_.clear();
  set_aside_.tell(0);
}

void LineSpares::give_back(std::unique_ptr<LineSpare> spare) {
  spare->batch.clear_readings();
  spare->buffers.abandon();
  const MutexLock lock(mutex_);
  const std::size_t most = std::min(share_bytes() / 2, kBuffersMaxBytes);
  --lent_;
  // Names bound themselves. A request of large texts is rare.
  const auto is_large = [&] { return spare->memory_bytes() - spare->names_bytes() > most; };
  if (is_large()) static_cast<void>(std::exchange(spare->buffers.gathered, {}));
  if (is_large() || spare->forgets != forgets_) return;
  if (spares_.size() == kSparesMax) spares_.erase(spares_.begin());
  spares_.push_back(std::move(spare));
  std::uint64_t bytes = 0;
  for (const auto& each : spares_) bytes += each->memory_bytes();
  set_aside_.tell(bytes);
}

// What one spare may take, of as many as are kept or lent.
std::size_t LineSpares::share_bytes() const {
  return kSparesMaxBytes / std::clamp<std::size_t>(spares_.size() + lent_, 1, kSparesMax);
}

}  // namespace edgecase::http
