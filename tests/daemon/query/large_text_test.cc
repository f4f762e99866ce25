// Texts and bytes of megabytes on their way out, on the engine itself.
#include "query/series_scan.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "query/query_service.h"
#include "support/manual_clock.h"
#include "support/temp_directory.h"
#include "wire/reading.h"

using namespace edgecase;
using wire::Value;

namespace {

std::string text_of(char letter, std::size_t bytes = 600'000) {
  std::string text(bytes, letter);
  for (std::size_t i = 0; i < bytes; i += 1'000) text[i] = static_cast<char>('0' + i / 1'000 % 10);
  return text;
}

struct LargeTexts {
  LargeTexts() {
    Options options;
    options.metadata_directory = directory / "m";
    options.values_directory = directory / "v";
    options.memory_limit_bytes = 8u << 20;
    auto opened = Engine::open(
        options, {posix_file_system(), system_clock(), system_random(), *executor, listener});
    REQUIRE_MESSAGE(opened.ok(), opened.status().to_string());
    engine = std::move(opened).value();
    auto names = catalog::Catalog::open(*engine, {});
    REQUIRE(names.ok());
    catalog = std::move(names).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(*engine, *catalog, clock);
    service = std::make_unique<query::QueryService>(*engine, *catalog);
  }
  void put(std::string_view sensor, std::int64_t time_ns, const Value& value) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", "d", sensor, time_ns, value});
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    const Status status = pipeline->ingest(*authorized);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
  }
  std::unique_ptr<query::ReadingCursor> query(wire::QueryRequest request = {}) {
    auto cursor = service->query(principal, request);
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    return std::move(cursor).value();
  }
  // A memtable that nobody but readers needs, of more than they may keep.
  void make_memory_short() {
    put("filler", 1, Value::of_text(text_of('f', 2'000'000)));
    keeper = engine->snapshot();
    REQUIRE(engine->flush().ok());
    REQUIRE(engine->is_short_of_memory());
  }

  test::TempDirectory directory;
  EventListener listener;
  test::ManualClock clock;
  std::unique_ptr<Executor> executor = make_thread_executor();
  std::unique_ptr<Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> service;
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  std::shared_ptr<const Snapshot> keeper;
};

std::string rest_of(query::LargeText& text) {
  std::string all;
  for (;;) {
    const auto piece = text.next_piece();
    REQUIRE_MESSAGE(piece.ok(), piece.status().to_string());
    if (piece->empty()) return all;
    all += *piece;
  }
}

// What comes of the next reading: its text, with its type and content type; "end".
std::string next_of(query::ReadingCursor& cursor) {
  wire::Reading reading;
  const auto more = cursor.next(reading);
  REQUIRE_MESSAGE(more.ok(), more.status().to_string());
  if (!*more) return "end";
  std::string text(wire::value_type_name(reading.value.type));
  text += " " + std::string(reading.value.content_type) + " ";
  query::LargeText* const large = cursor.large_text();
  if (large == nullptr) return text + std::string(reading.value.text);
  CHECK(reading.value.text.empty());
  std::string all = rest_of(*large);
  CHECK(all.size() == large->size_bytes());
  return text + all;
}

}  // namespace

TEST_CASE("large texts: cursors answer them in pieces, small ones as they are") {
  LargeTexts store;
  const std::string a = text_of('a'), b = text_of('b');
  store.put("s", 1, Value::of_text(a));
  store.put("s", 2, Value::of_text("small"));
  store.put("s", 3, Value::of_bytes(b, "image/png"));
  for (int pass = 0; pass < 2; ++pass) {
    CAPTURE(pass);
    auto cursor = store.query();
    CHECK(next_of(*cursor) == "text  " + a);
    CHECK(next_of(*cursor) == "text  small");
    CHECK(next_of(*cursor) == "bytes image/png " + b);
    CHECK(next_of(*cursor) == "end");
    auto last = store.service->last(store.principal, "default", {}, "");
    REQUIRE(last.ok());
    CHECK(next_of(**last) == "bytes image/png " + b);
    for (const bool descending : {false, true}) {
      for (const wire::Aggregate each : {wire::Aggregate::First, wire::Aggregate::Last}) {
        wire::QueryRequest request;
        request.aggregate = each;
        request.descending = descending;
        const bool is_first = each == wire::Aggregate::First;
        CHECK(next_of(*store.query(request)) == (is_first ? "text  " + a : "bytes image/png " + b));
      }
    }
    wire::QueryRequest count;
    count.aggregate = wire::Aggregate::Count;
    wire::Reading reading;
    REQUIRE(*store.query(count)->next(reading));
    CHECK(reading.value.int64 == 3);
    REQUIRE(store.engine->flush().ok());  // then from tables
  }
}

TEST_CASE("a cursor keeps its moment, unless memory is short and it may let go") {
  LargeTexts store;
  for (int i = 1; i <= 5; ++i) store.put("s", i, Value::of_int64(i));
  auto cursor = store.query();
  CHECK(next_of(*cursor) == "int  ");
  store.put("s", 6, Value::of_text("later"));
  cursor->let_go();  // nothing is short
  int seen = 1;
  while (next_of(*cursor) != "end") ++seen;
  CHECK(seen == 5);

  auto other = store.query();
  CHECK(next_of(*other) == "int  ");
  store.make_memory_short();
  store.put("s", 7, Value::of_text("still later"));
  const std::uint64_t kept = store.engine->stats().kept_memtable_bytes;
  other->let_go();
  CHECK(store.engine->stats().kept_memtable_bytes < kept);
  std::vector<std::string> rest;
  for (int i = 0; i < 6; ++i) rest.push_back(next_of(*other));
  CHECK(rest[3] == "int  ");
  CHECK(rest[4] == "text  later");
  CHECK(rest[5] == "text  still later");
}

TEST_CASE("a large text goes on where it was let go, or says that it is another now") {
  for (const bool replaced : {false, true}) {
    CAPTURE(replaced);
    LargeTexts store;
    const std::string large = text_of('a');
    store.put("s", 1, Value::of_text(large));
    auto cursor = store.query();
    wire::Reading reading;
    REQUIRE(*cursor->next(reading));
    REQUIRE(cursor->large_text() != nullptr);
    std::string all(*cursor->large_text()->next_piece());
    all += *cursor->large_text()->next_piece();
    store.make_memory_short();
    const std::uint64_t kept = store.engine->stats().kept_memtable_bytes;
    cursor->let_go();
    CHECK(store.engine->stats().kept_memtable_bytes + large.size() <= kept);
    if (replaced) {
      store.put("s", 1, Value::of_text(text_of('b')));
      CHECK(cursor->large_text()->next_piece().status().code() == StatusCode::Unavailable);
      continue;
    }
    all += rest_of(*cursor->large_text());
    CHECK((all == large));
    CHECK(next_of(*cursor) == "end");
  }
}

TEST_CASE("a cursor of a moment that a backup holds never leaves it") {
  LargeTexts store;
  for (int i = 1; i <= 3; ++i) store.put("s", i, Value::of_int64(i));
  auto moment = store.engine->snapshot();
  auto cursor = store.service->query_at(store.principal, {}, moment);
  REQUIRE(cursor.ok());
  CHECK(next_of(**cursor) == "int  ");
  store.make_memory_short();
  store.put("s", 4, Value::of_int64(4));
  (*cursor)->let_go();
  CHECK(next_of(**cursor) == "int  ");
  CHECK(next_of(**cursor) == "int  ");
  CHECK(next_of(**cursor) == "end");
}
