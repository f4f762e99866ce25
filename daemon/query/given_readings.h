// The readings that a part of an answer was made of, for who keeps that part, and must not once one
// of them has become unreadable (Engine::revocations()). One thread; must not outlive the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "wire/reading_key.h"

namespace edgecase::query {

class GivenReadings {
 public:
  // How many series are told apart; of more, whatever is revoked may be one.
  static constexpr std::size_t kSeriesMax = 4096;

  GivenReadings() = default;
  // Before they are read.
  explicit GivenReadings(const Engine& engine)
      : engine_(&engine), revocations_(engine.revocations()) {}

  bool empty() const { return spans_.empty() && !is_overfull_; }
  void add(const catalog::SeriesId& series, std::int64_t first_ns, std::int64_t last_ns) {
    if (!spans_.empty() && spans_.back().series == series) {
      spans_.back().first_ns = std::min(spans_.back().first_ns, first_ns);
      spans_.back().last_ns = std::max(spans_.back().last_ns, last_ns);
    } else if (spans_.size() < kSeriesMax) {
      spans_.push_back({series, first_ns, last_ns});
    } else {
      is_overfull_ = true;
    }
  }
  // What `other` has been given, too.
  void add(const GivenReadings& other) {
    if (other.engine_ == nullptr) return;
    revocations_ =
        engine_ == nullptr ? other.revocations_ : std::min(revocations_, other.revocations_);
    engine_ = other.engine_;
    seen_ = UINT64_MAX;
    is_overfull_ = is_overfull_ || other.is_overfull_;
    is_revoked_ = is_revoked_ || other.is_revoked_;
    for (const Span& span : other.spans_) add(span.series, span.first_ns, span.last_ns);
  }
  // What cannot be told by series: whatever is revoked may be of it.
  void add_all() { is_overfull_ = true; }
  // Whether one of them may be unreadable by now.
  bool is_revoked() {
    if (engine_ == nullptr || (empty() && !is_revoked_)) return is_revoked_;
    const std::uint64_t count = engine_->revocations();
    if (count == seen_) return is_revoked_;
    seen_ = count;
    is_revoked_ = is_revoked_ || (is_overfull_ && count != revocations_) ||
                  std::any_of(spans_.begin(), spans_.end(),
                              [this](const Span& span) { return is_gone(span); });
    return is_revoked_;
  }

 private:
  struct Span {
    catalog::SeriesId series;
    std::int64_t first_ns = 0, last_ns = 0;  // both included
  };

  bool is_gone(const Span& span) const {
    const catalog::SeriesId& id = span.series;
    return engine_->is_revoked(
        id.namespace_id, wire::make_reading_key({id.device, id.sensor, span.first_ns}),
        wire::make_reading_key({id.device, id.sensor, span.last_ns}), revocations_);
  }

  const Engine* engine_ = nullptr;
  std::uint64_t revocations_ = 0;
  std::uint64_t seen_ = UINT64_MAX;
  std::vector<Span> spans_;
  bool is_overfull_ = false;
  bool is_revoked_ = false;
};

}  // namespace edgecase::query
