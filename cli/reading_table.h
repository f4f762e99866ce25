// Readings as a table: takes the daemon's NDJSON piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/status.h"
#include "output.h"
#include "time_arguments.h"

namespace edgecase::cli {

enum class NamespaceColumn : unsigned char { Hidden, Shown };

class ReadingTable {
 public:
  // After `row_limit` rows push() says that it wants no more. `now_ns` set: with a column that
  // tells how old a reading is. `zone`: whose clocks show the times; null: UTC.
  ReadingTable(NamespaceColumn namespaces, std::optional<std::uint64_t> row_limit,
               std::optional<std::int64_t> now_ns, std::FILE* out, Zone zone = nullptr);

  // False: the limit is reached or a line was no reading (status() tells which).
  bool push(std::string_view piece);
  // Prints what waits. IoError when a line was no reading or the last one is unfinished.
  Status finish();
  bool limit_reached() const { return limit_reached_; }
  std::uint64_t rows() const { return table_.rows(); }

 private:
  bool take_line(std::string_view line);

  const bool with_namespace_;
  const std::optional<std::uint64_t> row_limit_;
  const std::optional<std::int64_t> now_ns_;
  const Zone zone_;
  Table table_;
  std::string rest_;  // the beginning of a line whose end has not come
  Status status_;
  bool limit_reached_ = false;
};

}  // namespace edgecase::cli
