// Queries under way while something is erased: cursors, aggregates that are being computed,
// moments.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "query/pinned_moments.h"
#include "query/query_service.h"
#include "query/wide_rows.h"
#include "support/counting_engine.h"
#include "support/manual_clock.h"
#include "wire/reading.h"

namespace edgecase::query {
namespace {

using wire::Aggregate;
using wire::Value;

constexpr std::int64_t kCount = 1'000;

// One series with a reading each nanosecond, of the value of its time.
struct Readings {
  Readings() {
    wire::ReadingBatch batch;
    for (std::int64_t i = 0; i < kCount; ++i)
      batch.readings.push_back({"default", "d", "s", i, Value::of_int64(i)});
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    REQUIRE(pipeline.ingest(*authorized).ok());
    series = catalog->find("default", "d", "s").value().id;
  }
  // Erases times from `from_ns` to before `to_ns`.
  void erase(std::int64_t from_ns, std::int64_t to_ns) {
    WriteBatch batch;
    batch.erase_range(series.namespace_id, key(from_ns), key(to_ns));
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }
  Bytes key(std::int64_t time_ns) const {
    return wire::make_reading_key({series.device, series.sensor, time_ns});
  }
  std::unique_ptr<ReadingCursor> open(const wire::QueryRequest& request) {
    auto cursor = service.query(principal, request);
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    return std::move(cursor).value();
  }

  edgecase::test::CountingEngine engine;
  edgecase::test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  ingest::IngestPipeline pipeline{engine, *catalog, clock};
  QueryService service{engine, *catalog};
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  catalog::SeriesId series;
};

}  // namespace

TEST_CASE("revoked: a cursor passes over what is erased, and knows of what it gave") {
  for (const bool descending : {false, true}) {
    CAPTURE(descending);
    Readings f;
    wire::QueryRequest request;
    request.descending = descending;
    const auto cursor = f.open(request);
    wire::Reading reading;
    std::vector<std::int64_t> seen;
    while (cursor->next(reading).value()) {
      seen.push_back(*reading.time_ns);
      if (seen.size() != 100) continue;
      CHECK_FALSE(cursor->is_given_revoked());
      f.erase(200, 900);
      CHECK_FALSE(cursor->is_given_revoked());
      GivenReadings given = cursor->take_given();
      // The last one that was given, and one that was not, in either direction.
      f.erase(descending ? 901 : 98, descending ? 902 : 99);
      CHECK(given.is_revoked());
      CHECK_FALSE(cursor->is_given_revoked());
      CHECK_FALSE(f.engine.snapshot()->revocations() == 0);
    }
    CHECK(seen.size() == 300);
    CHECK(seen.back() == (descending ? 0 : kCount - 1));
  }
}

TEST_CASE("revoked: an aggregate that is being computed begins anew without what is erased") {
  struct Case {
    Aggregate aggregate;
    std::int64_t every_ns;
    double want;  // of the first row
    std::size_t rows;
  };
  // Erased are the times 100 to 599, while the one of 400 is taken in.
  for (const Case& c : {Case{Aggregate::Count, 0, 500, 1}, Case{Aggregate::Sum, 0, 324'750, 1},
                        Case{Aggregate::Min, 0, 0, 1}, Case{Aggregate::P50, 0, 749.5, 1},
                        Case{Aggregate::First, 300, 0, 3}, Case{Aggregate::Count, 300, 100, 3}}) {
    CAPTURE(static_cast<int>(c.aggregate));
    CAPTURE(c.every_ns);
    for (const bool descending : {false, true}) {
      CAPTURE(descending);
      Readings f;
      wire::QueryRequest request;
      request.aggregate = c.aggregate;
      request.every_ns = c.every_ns;
      request.descending = descending;
      f.engine.at_look(f.engine.looks() + 400, [&f] { f.erase(100, 600); });
      const auto cursor = f.open(request);
      wire::Reading reading;
      std::vector<double> rows;
      while (cursor->next(reading).value()) {
        const Value& value = reading.value;
        rows.push_back(value.type == wire::ValueType::Int64 ? static_cast<double>(value.int64)
                                                            : value.float64);
        // Windows from 0, 300, 600, 900, of which the second is gone.
        if (c.every_ns != 0) CHECK(*reading.time_ns != 300);
      }
      REQUIRE(rows.size() == c.rows);
      if (c.every_ns == 0 && c.aggregate != Aggregate::P50)
        CHECK(rows.front() == doctest::Approx(c.want));
      if (c.aggregate == Aggregate::P50) CHECK(rows.front() > 600);
      // What was answered before is given already.
      const bool is_early = c.aggregate == Aggregate::Count && !descending;
      if (c.every_ns != 0)
        CHECK((descending ? rows.back() : rows.front()) == (is_early ? 300 : c.want));
    }
  }
}

TEST_CASE("revoked: nobody keeps what is erased alive, neither a cursor that waits nor a moment") {
  Readings f;
  PinnedMoments moments(f.engine, f.clock);
  const std::string name = moments.pin().value();
  const std::weak_ptr<const Snapshot> pinned = moments.use(name).value();
  const auto cursor = f.open({});
  wire::QueryRequest all;
  auto of_moment = f.service.query_at(f.principal, all, moments.use(name).value());
  REQUIRE(of_moment.ok());
  wire::Reading reading;
  REQUIRE(cursor->next(reading).value());
  REQUIRE((*of_moment)->next(reading).value());
  const std::weak_ptr<const void> held = f.engine.held_snapshots();
  f.erase(1, 500);
  CHECK_FALSE(held.expired());
  cursor->let_go();
  (*of_moment)->let_go();
  moments.sweep();
  CHECK(pinned.expired());
  CHECK(held.expired());
  CHECK(moments.use(name).ok());
  REQUIRE(cursor->next(reading).value());
  CHECK(*reading.time_ns == 500);
  REQUIRE((*of_moment)->next(reading).value());
  CHECK(*reading.time_ns == 500);
}

TEST_CASE("revoked: wide rows know of what waits to stand in them, and of what stood there") {
  for (const bool descending : {false, true}) {
    CAPTURE(descending);
    Readings f;
    wire::QueryRequest request;
    request.descending = descending;
    auto rows = f.service.wide(f.principal, request, {});
    REQUIRE_MESSAGE(rows.ok(), rows.status().to_string());
    WideRows& wide = **rows;
    for (int i = 0; i < 100; ++i) REQUIRE(wide.next().value());
    CHECK(wide.time_ns() == (descending ? kCount - 100 : 99));
    CHECK_FALSE(wide.is_given_revoked());
    // Nothing of it was read yet.
    f.erase(descending ? 100 : 800, descending ? 200 : 900);
    CHECK_FALSE(wide.is_given_revoked());
    GivenReadings given = wide.take_given();
    CHECK_FALSE(given.is_revoked());
    // The next row.
    f.erase(descending ? kCount - 101 : 100, descending ? kCount - 100 : 101);
    CHECK(given.is_revoked());
    CHECK(wide.is_given_revoked());
  }
}

}  // namespace edgecase::query
