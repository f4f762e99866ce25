// The current version without the runs that damage touches. What lies in damaged files is lost, not
// dead: nobody may take it for that, or merge what overlaps it as if it were not there. So such
// runs stay as they are until a repair says what is left of them. Owned by the lane.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "compaction/work_source.h"

namespace edgecase::engine {

class Mergeable {
 public:
  explicit Mergeable(CompactionHost& host) : host_(host) {}

  std::shared_ptr<const Version> of(std::shared_ptr<const Version> version);
  // A merge of these tables failed. Whether that was for damage that nobody knew of: the next
  // version is without it, and others go on.
  bool sets_apart(const Status& failure, const std::vector<TablePointer>& tables);

 private:
  CompactionHost& host_;
  // What of() made last, of which version and without which files.
  std::shared_ptr<const Version> made_;
  std::weak_ptr<const Version> made_of_;
  std::set<FileNumber> made_without_;
};

}  // namespace edgecase::engine
