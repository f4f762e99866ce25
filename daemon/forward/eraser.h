// The eraser asks one target to erase: an EdgeCase by its erase route, InfluxDB 1 by DELETE and
// DROP SERIES, VictoriaMetrics by delete_series. Exactly what is named goes there; where a target
// can only take more along, it is not asked, and the answer is NotPossible. One thread.
//
//   EdgeCase         the same names and times; its certificates' numbers are ours to look at
//   InfluxDB 1       series by all their tags, tags that others have and these have not included;
//                    a field goes only with all other fields that its series has there
//   VictoriaMetrics  whole series, no ranges of times; names stay in its index: NotProvable
//   others           NotPossible
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/forward_target.h"
#include "forward/asking.h"
#include "forward/erasures.h"
#include "forward/series_names.h"
#include "forward/windows.h"
#include "wire/names.h"

namespace edgecase::forward {

class Eraser {
 public:
  enum class Kind : unsigned char { Unknown, EdgeCase, Influx1, Victoria, Other };

  Eraser(Asked& asked, const config::ForwardSettings& settings, const config::ForwardTarget& target,
         const Shape& shape = {});

  // What it is; Unknown until find_kind() was answered.
  Kind kind() const { return kind_; }
  // Why it erases nothing; empty: it does, or it is not known.
  std::string cannot() const;
  // Asks what it is, once. Taken: kind() is known.
  Answer find_kind();

  // The names of one chunk after another; `step` and `why` become worse from chunk to chunk, never
  // better. Anything but Taken: again later, from the beginning of the chunk.
  using AllNames = std::function<Status(const std::function<void(const ErasedName&)>& take)>;
  Answer erase(const ErasureOrder& order, const std::vector<ErasedName>& names,
               const AllNames& all_names, TargetErasure& result);
  // Lifts the fences of certificates of an EdgeCase. Taken: they are, or `why` says why they stay.
  Answer lift(const TargetErasure& erased, std::string& why);
  // Looks at certificates of an EdgeCase; Taken: `result` says what they say.
  Answer look(TargetErasure& result);

 private:
  // Series of one measurement with the same tags: a row of InfluxDB.
  struct Group {
    std::string database, measurement;
    wire::Identity::Tags tags;
    friend auto operator<=>(const Group&, const Group&) = default;
  };
  using Groups = std::map<Group, std::set<std::string>>;  // fields

  // What of it the target takes, as it is called there: of thinned targets, the columns.
  using NameTaker = std::function<void(const ErasedName& name)>;
  void each_there(const ErasedName& name, const NameTaker& take) const;
  ErasureOrder order_there(ErasureOrder order) const;
  Groups groups_of(const std::vector<ErasedName>& names, TargetErasure& result) const;
  std::string database_of(const std::string& namespace_name) const;
  Answer erase_at_edgecase(const ErasureOrder& order, const std::vector<ErasedName>& names,
                           TargetErasure& result);
  Answer ask_edgecase(const std::string& path, TargetErasure& result);
  Answer erase_at_influx(const ErasureOrder& order, const Group& group,
                         const std::set<std::string>& fields, const AllNames& all_names,
                         TargetErasure& result);
  Answer erase_at_victoria(const Group& group, const std::set<std::string>& fields,
                           TargetErasure& result);

  Asked& asked_;
  const config::ForwardTarget target_;
  const WatchedTarget watched_;
  const std::string database_, namespace_, bucket_;
  const std::int64_t every_ns_;
  const Pseudonyms pseudonyms_;
  Kind kind_ = Kind::Unknown;
};

}  // namespace edgecase::forward
