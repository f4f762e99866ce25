// The namespaces of a store that is made anew: those a manifest tells of, and those that data is
// of. Used by one thread.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "check/findings.h"
#include "edgecase/engine.h"

namespace edgecase::engine {

class NamespaceRebuild {
 public:
  explicit NamespaceRebuild(Findings& findings) : findings_(findings) {}

  // What a manifest says; ids below `id_limit` that it does not know were dropped, and stay so.
  void take(const std::vector<NamespaceInfo>& known, NamespaceId id_limit);
  // One that a value table says it is of. The older of two with one name was dropped.
  void add(NamespaceId id, std::string_view name, const NamespaceOptions& options);
  // One that data is of: where its name is lost it gets another one, and that is a loss.
  void ensure(NamespaceId id, const NamespaceOptions& options);
  // The mark of a repaired store (edgecase/store_check.h).
  void mark_repaired();

  bool is_dropped(NamespaceId id) const;
  NamespaceOptions options_of(NamespaceId id) const;
  Bytes name_of(NamespaceId id) const;
  NamespaceId id_limit() const { return id_limit_; }
  const std::vector<NamespaceInfo>& known() const { return known_; }  // by id

 private:
  const NamespaceInfo* find(NamespaceId id) const;
  const NamespaceInfo* find_name(std::string_view name) const;
  void insert(const NamespaceInfo& info);

  Findings& findings_;
  std::vector<NamespaceInfo> known_;
  NamespaceId known_below_ = 0;    // of these `known_` has all that were not dropped
  std::set<NamespaceId> dropped_;  // beside those
  NamespaceId id_limit_ = 1;
};

}  // namespace edgecase::engine
