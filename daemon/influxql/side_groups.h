// Groups of a SELECT that a second thread works out: every second one, unless the thread that
// answers came to it earlier, which works out those between. It has a plan and an account of its
// own; its rows wait here, so many at most, until the answer comes to them. Used by executor.cc
// alone.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "influxql/executor.h"
#include "influxql/points.h"
#include "influxql/series_reader.h"
#include "influxql/units.h"

namespace edgecase::influxql {

class SideGroups {
 public:
  // The statement's plan gives number rows (SelectPlan) and has so many groups; it begins with
  // `first`, in the order in which they are answered. Null: there is no turn, or no thread, to be
  // had.
  static std::unique_ptr<SideGroups> start(query::QueryService& service, const Asking& asking,
                                           std::unique_ptr<SelectStatement> statement,
                                           std::size_t first, std::size_t groups);
  // Waits for the thread, which soon asks whether it is to go on.
  ~SideGroups();

  // Whether the thread has begun with that group. If not it will not: it is the caller's.
  bool has_begun(std::size_t place);
  enum class Taken : unsigned char { Rows, End, NotMade };
  // The next rows of a group that it has, waiting for them; what they are made of is added to the
  // account, and to `given`. NotMade: the thread has ended without it, or found other groups.
  Result<Taken> next(std::size_t place, const UnitKey& key, ReadingAccount& account,
                     query::GivenReadings& given, NumberRows& rows);

 private:
  struct State;
  SideGroups(std::shared_ptr<State> state, std::size_t first)
      : state_(std::move(state)), first_(first) {}

  const std::shared_ptr<State> state_;
  const std::size_t first_;
  std::optional<std::size_t> ended_;  // the group of which all was taken
};

}  // namespace edgecase::influxql
