#include "audit/page.h"

#include <doctest/doctest.h>

namespace edgecase::audit {
namespace {

constexpr std::int64_t kTimeNs = 1'763'647'200'000'000'001;

Record example() {
  Record record;
  record.time_ns = kTimeNs;
  record.trust = ClockTrust::Untrusted;
  record.outcome = Outcome::OutOfSpace;
  record.operation = "ingest";
  record.actor = "token 0123456789 of 10.0.0.7";
  record.token = "0123456789";
  record.namespace_name = "default";
  record.selector = "*/~00";
  record.detail = "of record 5";
  record.count = 300;
  record.targets = {{0x8000000000000001, 299}, {7, 1}};
  record.reaches_more = true;
  record.more_devices = 70'000;
  return record;
}

// As the log does.
Draft drafted(const Record& record) {
  Draft draft = draft_of(record);
  draft.time_ns = record.time_ns;
  draft.trust = record.trust;
  return draft;
}

Bytes body_with(const std::vector<Record>& records) {
  std::vector<Draft> drafts;
  for (const Record& record : records) drafts.push_back(drafted(record));
  std::vector<const Draft*> pointers;
  for (const Draft& draft : drafts) pointers.push_back(&draft);
  return encode_page(pointers);
}

std::vector<Record> three() {
  std::vector<Record> records(3, example());
  records[1].time_ns -= 900'000'000;  // within what is no step
  records[1].trust = ClockTrust::Trusted;
  records[1].operation = "query";
  records[1].targets.clear();
  records[1].reaches_more = false;
  records[1].more_devices = 0;
  records[2].time_ns += 5;
  records[2].outcome = Outcome::Ok;
  records[2].count = 0;
  records[2].targets[1].count = UINT64_MAX;
  return records;
}

void check_equal(const Record& got, const Record& wanted) {
  CHECK(got.time_ns == wanted.time_ns);
  CHECK(got.trust == wanted.trust);
  CHECK(got.outcome == wanted.outcome);
  CHECK(got.operation == wanted.operation);
  CHECK(got.actor == wanted.actor);
  CHECK(got.token == wanted.token);
  CHECK(got.namespace_name == wanted.namespace_name);
  CHECK(got.selector == wanted.selector);
  CHECK(got.detail == wanted.detail);
  CHECK(got.count == wanted.count);
  CHECK(got.targets == wanted.targets);
  CHECK(got.reaches_more == wanted.reaches_more);
  CHECK(got.more_devices == wanted.more_devices);
}

}  // namespace

TEST_CASE("audit page: what is encoded comes back") {
  const std::vector<Record> wanted = three();
  const Bytes body = body_with(wanted);
  const auth::Digest hash = chain_hash({}, 9, body);
  const auto got = decode_page(9, page_value(hash, body));
  REQUIRE_MESSAGE(got.ok(), got.status().to_string());
  REQUIRE(got->records.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    check_equal(got->records[i], wanted[i]);
    CHECK(got->records[i].sequence == 7 + i);
    CHECK(got->records[i].hash == hash);
  }
  CHECK(body_with(got->records) == body);
  const auto head = decode_page_head(9, page_value(hash, body));
  REQUIRE(head.ok());
  CHECK(head->first == 7);
  CHECK(head->last == 9);
  CHECK(head->first_ns == wanted[0].time_ns);
  CHECK(head->last_ns == wanted[2].time_ns);
  CHECK(head->hash == hash);
}

TEST_CASE("audit page: of the records those come that are wanted, as they are") {
  const std::vector<Record> all = three();
  const Bytes value = page_value({}, body_with(all));
  for (const Record& wanted : all) {
    const auto is_like = [&wanted](const Record& each) {
      return each.operation == wanted.operation && each.targets.size() == wanted.targets.size();
    };
    const auto got = decode_page(9, value, is_like);
    REQUIRE(got.ok());
    CHECK(got->head.first == 7);
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_like(all[i])) continue;
      REQUIRE(next < got->records.size());
      check_equal(got->records[next], all[i]);
      CHECK(got->records[next++].sequence == 7 + i);
    }
    CHECK(next == got->records.size());
  }
  CHECK(decode_page(9, value, [](const Record&) { return false; })->records.empty());
}

TEST_CASE("audit page: version 1 is these bytes, for ever") {
  const std::string wanted =
      "85838ee9c2f7758545db5d790b69218d9490dce1a13a0b65bcddf4096016f16701031879bbc8c11c"
      "c0010a025b0106696e676573741c746f6b656e2030313233343536373839206f662031302e302e30"
      "2e370a303132333435363738390764656661756c74052a2f7e30300b6f66207265636f7264203502"
      "800000000000000100000000000000074a000571756572791c746f6b656e20303132333435363738"
      "39206f662031302e302e302e370a303132333435363738390764656661756c74052a2f7e30300b6f"
      "66207265636f7264203500000a00ac02f0a204ab0201010bffa3a7da06ac020000008aa4a7da0600"
      "f0a204ab02ffffffffffffffffff01";
  const Bytes body = body_with(three());
  CHECK(auth::hex_text(page_value(chain_hash({}, 9, body), body)) == wanted);
  CHECK(auth::hex_text(page_key(9)) == "520000000000000009");
  CHECK(auth::hex_text(encode_mark({9, {}, 300})) ==
        "010000000000000009" + std::string(64, '0') + "000000000000012c");
}

TEST_CASE("audit page: any times, and a page of alike records costs ten bytes a record") {
  std::vector<Record> records(3, example());
  records[0].time_ns = INT64_MAX;
  records[1].time_ns = INT64_MIN;
  records[2].time_ns = 0;
  const auto extreme = decode_page(3, page_value({}, body_with(records)));
  REQUIRE(extreme.ok());
  for (std::size_t i = 0; i < 3; ++i) CHECK(extreme->records[i].time_ns == records[i].time_ns);

  std::vector<Record> many(kPageRecordsMax, example());
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i].time_ns += static_cast<std::int64_t>(i) * 50'000;
    many[i].count = 1;
    many[i].targets = {{7, 1}};
    many[i].more_devices = 0;
  }
  CHECK(body_with(many).size() < 10 * many.size());
}

TEST_CASE("audit page: texts and targets are bounded") {
  Record record = example();
  record.detail = std::string(10'000, 'x');
  record.targets.assign(1'000, Target{1, 1});
  const auto got = decode_page(1, page_value({}, body_with({record})));
  REQUIRE(got.ok());
  CHECK(got->records[0].detail.size() == kTextMaxBytes);
  CHECK(got->records[0].targets.size() == kTargetsMax);
}

TEST_CASE("audit page: what is cut or goes on behind its end is no page") {
  const Bytes value = page_value({}, body_with(three()));
  for (std::size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(decode_page(9, ByteView(value).substr(0, size)).status().code() ==
          StatusCode::Corruption);
  }
  CHECK_FALSE(decode_page(9, value + "x").ok());
  CHECK_FALSE(decode_page(2, value).ok());  // before the first record
}

TEST_CASE("audit page: a changed byte is another page, or none") {
  const Bytes body = body_with(three());
  for (std::size_t i = 0; i < body.size(); ++i) {
    Bytes bad = body;
    for (int bit = 0; bit < 8; ++bit) {
      bad[i] = static_cast<char>(body[i] ^ 1 << bit);
      const auto got = decode_page(9, page_value({}, bad));
      CHECK((!got.ok() || chain_hash({}, 9, bad) != chain_hash({}, 9, body)));
    }
  }
}

TEST_CASE("audit page: the hash depends on the one before, the sequence and the body") {
  const Bytes body = body_with({example()});
  auth::Digest previous{};
  const auth::Digest hash = chain_hash(previous, 1, body);
  CHECK(hash != chain_hash(previous, 2, body));
  CHECK(hash != chain_hash(previous, 1, body + "x"));
  previous[31] = 1;
  CHECK(hash != chain_hash(previous, 1, body));
}

}  // namespace edgecase::audit
