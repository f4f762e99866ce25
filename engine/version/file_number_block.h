// Numbers for the files of one flush or merge, which reserves them before the files are made: a
// drive that refuses the manifest's edit refuses it then. Owned by one thread.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "version/version_set.h"

namespace edgecase::engine {

class FileNumberBlock {
 public:
  // What is left is kept if it is enough.
  Status reserve(VersionSet& versions, std::uint64_t count) {
    if (end_ - next_ >= count) return ok();
    EC_ASSIGN_OR_RETURN(next_, versions.take_file_numbers(count));
    end_ = next_ + count;
    return ok();
  }

  FileNumber take() {
    EC_CHECK(next_ < end_);
    return next_++;
  }

 private:
  FileNumber next_ = 0;
  FileNumber end_ = 0;
};

}  // namespace edgecase::engine
