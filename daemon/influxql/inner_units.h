// A statement in brackets as what stands behind FROM: its groups are units. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "influxql/select_plan.h"

namespace edgecase::influxql {

class InnerUnits final : public Units {
 public:
  explicit InnerUnits(std::unique_ptr<SelectPlan> plan) : plan_(std::move(plan)) {}

  Result<NameKind> find(const std::string& name) override;
  Status list(std::map<std::string, NameKind>& fields, std::set<std::string>& tags) override;
  Status choose(const Choice& choice) override;
  std::size_t size() const override { return groups_.size(); }
  Result<UnitKey> key(std::size_t unit) const override { return plan_->key(groups_[unit]); }
  Result<std::unique_ptr<PointSource>> open(std::size_t unit) override;

 private:
  const std::unique_ptr<SelectPlan> plan_;
  Choice choice_;
  std::vector<std::optional<std::size_t>> places_;  // of each column; none: it is no field of it
  std::vector<std::uint32_t> groups_;               // for which WHERE may hold
};

}  // namespace edgecase::influxql
