// Until there are functions: who asks for one hears that there are none.
#include "influxql/functions.h"

namespace edgecase::influxql {

struct FunctionPlan::Impl {
  std::vector<Cell::Kind> kinds;
};

Result<FunctionPlan> FunctionPlan::make(const std::vector<const Expr*>&, const Columns&,
                                        const Windows&) {
  return unsupported("functions in SELECT are not offered here yet: use GET /api/v1/query");
}
FunctionPlan::FunctionPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
FunctionPlan::~FunctionPlan() = default;
TimeSpan FunctionPlan::span_to_read() const {
  return {};
}
const std::vector<Cell::Kind>& FunctionPlan::kinds() const {
  return impl_->kinds;
}
std::unique_ptr<PointSource> FunctionPlan::open(std::unique_ptr<PointSource> points,
                                                Spending&) const {
  return points;
}

}  // namespace edgecase::influxql
