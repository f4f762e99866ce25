// The statements of InfluxQL that clients send before they write. Not a query language.
#pragma once

#include <string>
#include <string_view>

#include "auth/authorize.h"
#include "catalog/catalog.h"

namespace edgecase::http {

inline constexpr std::size_t kInfluxStatementsMax = 64;
inline constexpr std::size_t kInfluxQueryMaxBytes = 64u << 10;

// {"results":[{"statement_id":0,…},…]}. A statement that is understood but cannot be done has its
// error in its result. InvalidArgument: `text` is no such list of statements at all.
// `database` is what statements without ON speak of. Names that the principal may not see are left
// out.
Result<std::string> answer_influx_query(std::string_view text, std::string_view database,
                                        const auth::Principal& principal,
                                        catalog::Catalog& catalog);

}  // namespace edgecase::http
