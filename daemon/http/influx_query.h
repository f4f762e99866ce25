// The statements of InfluxQL that clients send before they write. Not a query language: whatever is
// not done here is an error, never a yes.
#pragma once

#include <memory>
#include <string_view>

#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "http/http_routes.h"

namespace edgecase::http {

inline constexpr std::size_t kInfluxQueryMaxBytes = 64u << 10;
// Names that SHOW MEASUREMENTS holds at once. Where there are more, it looks through the catalog
// once for each so many bytes of them.
inline constexpr std::size_t kMeasurementsHeldBytes = 256u << 10;

// What is asked, and by whom. `database`: what statements without ON speak of.
struct InfluxQuestion {
  std::string_view text;
  std::string_view database;
  const auth::Principal& principal;
  std::size_t statements_max = 64;  // limits.query-statements
};

// The pieces of {"results":[{"statement_id":0,…},…]}. A statement that is done in vain has its
// error in its result, and so has one that is not offered, where others of the request are. Names
// that the principal may not see are left out. `catalog` must outlive the answer. InvalidArgument:
// `text` is no such list of statements. Unsupported: it is one of which nothing is offered. After
// either nothing was done.
Result<std::shared_ptr<PieceSource>> answer_influx_query(const InfluxQuestion& question,
                                                         catalog::Catalog& catalog);

}  // namespace edgecase::http
