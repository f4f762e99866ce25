// Groups of a SELECT that a second thread works out: every second one from where it was begun,
// while the thread that answers works out those between. It has a plan and an account of its own;
// its rows wait here, so many at most, until the answer comes to them. Used by executor.cc alone.
#pragma once

#include <cstddef>
#include <memory>

#include "influxql/executor.h"
#include "influxql/points.h"
#include "influxql/reading_account.h"
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

  bool has(std::size_t place) const { return place >= first_ && (place - first_) % 2 == 0; }
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
};

}  // namespace edgecase::influxql
