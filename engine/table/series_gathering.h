// The groups of a namespace with GroupCodec::Series that a flush has open at once. Mostly that is
// one. Where entries that expire soon lie among others that last much longer, they are gathered
// apart, for a table of their own: else each would close the other's group, many groups would hold
// an entry or two, and when the ones expire every record would have to be written again for the
// others' sake.
//
// Use: when leaves_scope() answers true, write every group that holds something and call
// enter_scope(); then group_for() says where an entry goes. A group lies in one bucket: who finds
// another there writes it first. Owned by one thread; holds a group a life class.
#pragma once

#include <map>
#include <memory>

#include "edgecase/result.h"
#include "expiry/bucket.h"
#include "table/bucket_files.h"
#include "value/series_columns.h"

namespace edgecase::engine {

class SeriesGathering {
 public:
  struct Group {
    std::unique_ptr<SeriesColumns> columns;
    ItemExpiry expiry;
    LifeClass life = 0;    // of the table it goes to (TableMetadata)
    bool is_kept = false;  // what is of its life class goes here until the scope ends
  };

  // `keeps_sequences`: SeriesColumns::keep_sequences().
  SeriesGathering(std::size_t group_bytes, std::size_t entries_max, std::int64_t span_ns,
                  bool keeps_sequences);

  // Another namespace. Nothing may be gathered.
  void begin(std::size_t scope_bytes);
  // `full_key_begin` is a full key or what of it covers the scope.
  bool leaves_scope(ByteView full_key_begin) const;
  void enter_scope(ByteView full_key_begin);

  Group& main() { return main_; }
  Group& group_for(const ItemExpiry& item);
  // `write` answers a Status for each group that holds something; the first failure ends it.
  template <typename Write>
  Status for_each(const Write& write) {
    if (!main_.columns->empty()) EC_TRY(write(main_));
    for (auto& [life, group] : apart_)
      if (!group.columns->empty()) EC_TRY(write(group));
    return ok();
  }

 private:
  Group& keep(LifeClass life);
  std::unique_ptr<SeriesColumns> new_columns() const;

  const std::size_t group_bytes_;
  const std::size_t entries_max_;
  const std::int64_t span_ns_;
  const bool keeps_sequences_;
  std::size_t scope_bytes_ = 0;
  Bytes scope_;
  Group main_;
  std::map<LifeClass, Group> apart_;
};

}  // namespace edgecase::engine
