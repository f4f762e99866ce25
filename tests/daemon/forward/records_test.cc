#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "forward/records.h"
#include "ingest/origins.h"
#include "support/model_engine.h"

namespace edgecase::forward {
namespace {

Record some_record() {
  Record record;
  record.is_paused = true;
  record.totals = {.readings = 1,
                   .bytes = 2,
                   .undelivered = 3,
                   .unfit = 4,
                   .not_kept = 5,
                   .unsent = {6, 7, 8, 9},
                   .expired_until_ns = 10};
  record.cursor = Cursor(10);
  record.cursor.fresh_part(20, Place{3, "k"});
  return record;
}

std::unique_ptr<Records> records_of(Engine& engine) {
  auto opened = Records::open(engine);
  REQUIRE(opened.ok());
  return std::move(opened).value();
}

Refusal refusal_of(NamespaceId id, const char* key, std::uint16_t status) {
  return {Place{id, key}, status, 7};
}

// What was written once is read for good.
TEST_CASE("records: a place is written as it always was") {
  const Bytes of_version_1(
      "\x01\x01"
      "\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05"
      "\0\0\0\0\0\0\0\x14\x01"
      "\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\x14\0\0\0\x03\0\x01k",
      2 + 5 * 8 + 9 + 16 + 4 + 2 + 1);
  Bytes of_version_2 = of_version_1;
  of_version_2[0] = 2;
  of_version_2.insert(
      2 + 5 * 8,
      Bytes("\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x09", 4 * 8));
  Bytes golden = of_version_2;
  golden[0] = 3;
  golden.insert(2 + 9 * 8, Bytes("\0\0\0\0\0\0\0\x0a", 8));
  CHECK(encode_record(some_record()) == golden);
  const auto old = decode_record(of_version_1);
  REQUIRE(old.ok());
  CHECK(old->totals.not_kept == 5);
  CHECK(old->totals.unsent == UnsentCounts{});
  CHECK(old->cursor == some_record().cursor);
  const auto older = decode_record(of_version_2);
  REQUIRE(older.ok());
  CHECK(older->totals.unsent == UnsentCounts{6, 7, 8, 9});
  CHECK(older->totals.expired_until_ns == kUncounted);
  CHECK(older->cursor == some_record().cursor);
  const auto read = decode_record(golden);
  REQUIRE(read.ok());
  CHECK(read->is_paused);
  CHECK_FALSE(read->is_at_rest);
  CHECK(read->totals.not_kept == 5);
  CHECK(read->totals.unsent == UnsentCounts{6, 7, 8, 9});
  CHECK(read->totals.expired_until_ns == 10);
  CHECK(read->cursor == some_record().cursor);
  for (std::size_t cut = 0; cut < golden.size(); ++cut)
    CHECK(decode_record(ByteView(golden).substr(0, cut)).status().code() == StatusCode::Corruption);
  CHECK(decode_record(golden + "x").status().code() == StatusCode::Corruption);
  Bytes newer = golden;
  newer[0] = 4;
  CHECK(decode_record(newer).status().code() == StatusCode::Unsupported);
}

TEST_CASE("records: places are kept by name, and one that is broken is the beginning") {
  test::ModelEngine engine;
  auto records = records_of(engine);
  REQUIRE(records->write("cloud", some_record()).ok());
  REQUIRE(records->write("hub", Record()).ok());
  records = records_of(engine);
  auto all = records->load();
  REQUIRE(all.ok());
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].first == "cloud");
  CHECK((*all)[0].second.cursor == some_record().cursor);
  REQUIRE(records->forget("hub").ok());

  WriteBatch batch;
  batch.put(engine.find_namespace(kForwardNamespace)->id, "Tcloud", "\x01?");
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  all = records->load();
  REQUIRE(all.ok());
  REQUIRE(all->size() == 1);
  CHECK((*all)[0].second.cursor == Cursor(0));
}

TEST_CASE("records: what was refused is found in pages, of its target alone, and goes with it") {
  test::ModelEngine engine;
  const auto records = records_of(engine);
  REQUIRE(records->write("a", Record()).ok());
  REQUIRE(records
              ->add_refusals("a", {refusal_of(1, "k1", 400), refusal_of(1, "k2", 413),
                                   refusal_of(2, "k0", 422)})
              .ok());
  REQUIRE(records->add_refusals("ab", {refusal_of(1, "other", 400)}).ok());
  CHECK(*records->count_refusals("a") == 3);
  const auto first = records->refusals("a", {}, 2);
  REQUIRE(first.ok());
  REQUIRE(first->size() == 2);
  CHECK((*first)[1].place == Place{1, "k2"});
  CHECK((*first)[1].status == 413);
  CHECK((*first)[1].at_ns == 7);
  const auto rest = records->refusals("a", first->back().place, 2);
  REQUIRE(rest.ok());
  REQUIRE(rest->size() == 1);
  CHECK((*rest)[0].place == Place{2, "k0"});
  REQUIRE(records->remove_refusals("a", *first).ok());
  CHECK(*records->count_refusals("a") == 1);
  REQUIRE(records->forget("a").ok());
  CHECK(*records->count_refusals("a") == 0);
  CHECK(*records->count_refusals("ab") == 1);
}

// What was written once is read for good.
TEST_CASE("records: the shape of a target is kept as long as its place") {
  test::ModelEngine engine;
  auto records = records_of(engine);
  CHECK(records->shape("cloud").value().every_ns == 0);
  const Shape shape{.every_ns = 60'000'000'000, .salt = Bytes(kSaltBytes, 's')};
  REQUIRE(records->write_shape("cloud", shape).ok());
  const NamespaceId id = records->id();
  CHECK(engine.get(id, "Scloud", {}).value() == Bytes("\0\0\0\x0d\xf8\x47\x58\0", 8) + shape.salt);
  CHECK(records->shape("cloud").value().every_ns == shape.every_ns);
  CHECK(records->shape("cloud").value().salt == shape.salt);
  for (const std::size_t cut : {0u, 7u, 9u, 39u}) {
    WriteBatch batch;
    batch.put(id, "Scut", engine.get(id, "Scloud", {}).value().substr(0, cut));
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    CHECK(records->shape("cut").status().code() == StatusCode::Corruption);
  }
  REQUIRE(records->forget("cloud").ok());
  CHECK(records->shape("cloud").value().salt.empty());
}

ingest::OriginClaim claim_of(const Result<std::string>& line) {
  REQUIRE_MESSAGE(line.ok(), line.status().to_string());
  constexpr std::string_view kName = "X-EdgeCase-Origin: ";
  REQUIRE(line->starts_with(kName));
  REQUIRE(line->ends_with("\r\n"));
  const auto claim = ingest::parse_origin(
      std::string_view(*line).substr(kName.size(), line->size() - kName.size() - 2));
  REQUIRE_MESSAGE(claim.ok(), claim.status().to_string());
  return *claim;
}

}  // namespace

TEST_CASE("lineage: a run begins once the one before was answered, and says those before it") {
  test::ModelEngine engine;
  auto records = Records::open(engine);
  REQUIRE(records.ok());
  const auto start = [&] { return Lineage(engine, **records, system_random()); };
  const auto first = claim_of(start().header(false));
  CHECK(first.runs.size() == 1);
  // Nobody has answered: it may be unknown to all.
  CHECK(claim_of(start().header(false)).runs == first.runs);
  Lineage answered(engine, **records, system_random());
  CHECK(claim_of(answered.header(false)).runs == first.runs);
  answered.note_answered();
  CHECK(claim_of(answered.header(true)).runs == first.runs);
  Lineage next(engine, **records, system_random());
  const auto second = claim_of(next.header(false));
  CHECK(second.store == first.store);
  REQUIRE(second.runs.size() == 2);
  CHECK(second.runs.back() == first.runs.front());
  CHECK(claim_of(next.header(true)).runs == std::vector<std::string>{second.runs.front()});
}

TEST_CASE("lineage: runs are bounded, and a target takes as many") {
  test::ModelEngine engine;
  auto records = Records::open(engine);
  REQUIRE(records.ok());
  ingest::OriginClaim claim;
  for (std::size_t i = 0; i < ingest::OriginClaim::kRunsMax + 3; ++i) {
    Lineage lineage(engine, **records, system_random());
    claim = claim_of(lineage.header(false));
    lineage.note_answered();
  }
  CHECK(claim.runs.size() == ingest::OriginClaim::kRunsMax);
}

}  // namespace edgecase::forward
