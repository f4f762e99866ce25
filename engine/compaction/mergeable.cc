#include "compaction/mergeable.h"

#include <utility>

namespace edgecase::engine {

std::shared_ptr<const Version> Mergeable::of(std::shared_ptr<const Version> version) {
  std::set<FileNumber> lost = host_.lost_files();
  if (lost.empty()) {
    made_.reset();
    return version;
  }
  if (made_ == nullptr || made_of_.lock() != version || made_without_ != lost) {
    made_ = std::make_shared<const Version>(without_runs(*version, lost));
    made_of_ = version;
    made_without_ = std::move(lost);
  }
  return made_;
}

bool Mergeable::sets_apart(const Status& failure, const std::vector<TablePointer>& tables) {
  const StatusCode code = failure.code();
  const bool is_damage = code == StatusCode::Corruption || code == StatusCode::Unavailable ||
                         code == StatusCode::IoError;
  return is_damage && host_.check_drives().ok() && host_.look_for_damage(tables);
}

}  // namespace edgecase::engine
