#include "influxql/executor.h"

namespace edgecase::influxql {

Result<std::unique_ptr<RowSource>> run_select(std::unique_ptr<SelectStatement>, const Asking&,
                                              query::QueryService&) {
  return unsupported("SELECT is not offered here, and nothing was done of it");
}

}  // namespace edgecase::influxql
