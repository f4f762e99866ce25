#include "audit/record.h"

#include <doctest/doctest.h>

#include "audit/pseudonyms.h"

namespace edgecase::audit {
namespace {

Record example() {
  Record record;
  record.time_ns = 1'763'647'200'000'000'001;
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
  return record;
}

}  // namespace

TEST_CASE("audit record: what is encoded comes back") {
  const Record wanted = example();
  const Bytes body = encode_body(wanted);
  const auth::Digest hash = chain_hash({}, 9, body);
  const auto got = decode_record(9, record_value(hash, body));
  REQUIRE(got.ok());
  CHECK(got->sequence == 9);
  CHECK(got->time_ns == wanted.time_ns);
  CHECK(got->trust == wanted.trust);
  CHECK(got->outcome == wanted.outcome);
  CHECK(got->operation == wanted.operation);
  CHECK(got->actor == wanted.actor);
  CHECK(got->token == wanted.token);
  CHECK(got->namespace_name == wanted.namespace_name);
  CHECK(got->selector == wanted.selector);
  CHECK(got->detail == wanted.detail);
  CHECK(got->count == wanted.count);
  CHECK(got->targets == wanted.targets);
  CHECK(got->reaches_more);
  CHECK(got->hash == hash);
  CHECK(encode_body(*got) == body);
}

TEST_CASE("audit record: version 1 is these bytes, for ever") {
  const std::string wanted =
      "8115d57e0ed95ddf8213a214d65df8e5dc5d4f734fa6a66da1a94da86d60a2b50102051879bb"
      "c8c11cc00106696e676573741c746f6b656e2030313233343536373839206f662031302e302e"
      "302e370a303132333435363738390764656661756c74052a2f7e30300b6f66207265636f7264"
      "2035ac02028000000000000001ab02000000000000000701";
  const Bytes body = encode_body(example());
  CHECK(auth::hex_text(record_value(chain_hash({}, 9, body), body)) == wanted);
  CHECK(auth::hex_text(record_key(9)) == "520000000000000009");
  CHECK(auth::hex_text(encode_mark({9, {}, 300})) ==
        "010000000000000009" + std::string(64, '0') + "000000000000012c");
}

TEST_CASE("audit record: texts and targets are bounded") {
  Record record = example();
  record.detail = std::string(10'000, 'x');
  record.targets.assign(1'000, Target{1, 1});
  const Bytes body = encode_body(record);
  const auto got = decode_record(1, record_value({}, body));
  REQUIRE(got.ok());
  CHECK(got->detail.size() == kTextMaxBytes);
  CHECK(got->targets.size() == kTargetsMax);
}

TEST_CASE("audit record: what is cut or goes on behind its end is no record") {
  const Bytes value = record_value({}, encode_body(example()));
  for (std::size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(decode_record(1, ByteView(value).substr(0, size)).status().code() ==
          StatusCode::Corruption);
  }
  CHECK_FALSE(decode_record(1, value + "x").ok());
}

TEST_CASE("audit record: the hash depends on the one before, the sequence and the body") {
  const Bytes body = encode_body(example());
  auth::Digest previous{};
  const auth::Digest hash = chain_hash(previous, 1, body);
  CHECK(hash != chain_hash(previous, 2, body));
  CHECK(hash != chain_hash(previous, 1, body + "x"));
  previous[31] = 1;
  CHECK(hash != chain_hash(previous, 1, body));
}

TEST_CASE("pseudonyms: of one key the same, of another key or name others") {
  const Pseudonyms one("key"), other("kex");
  CHECK(one.of_device("n", "kitchen") == Pseudonyms("key").of_device("n", "kitchen"));
  CHECK(one.of_device("n", "kitchen") != other.of_device("n", "kitchen"));
  CHECK(one.of_device("n", "kitchen") != one.of_device("m", "kitchen"));
  CHECK(one.of_device("n", "kitchen") != one.of_device("nk", "itchen"));
  CHECK(one.of_text("owner", "alice") != one.of_text("label", "alice"));
}

TEST_CASE("pseudonyms: of a selector only what holds no name is kept as it is") {
  const Pseudonyms pseudonyms("key");
  struct Case {
    const char* namespace_name;
    const char* text;
    bool is_target, keeps_device, keeps_sensor;
  };
  for (const Case& c :
       {Case{"n", "*/*", false, true, true}, Case{"n", "?*/*", false, true, true},
        Case{"n", "kitchen", true, false, true}, Case{"n", "kitchen/temp", true, false, false},
        Case{"n", "kit*/temp", false, false, false}, Case{"", "kitchen/*", false, false, true},
        Case{"n", "\\*/*", true, false, true}}) {
    CAPTURE(c.text);
    const auto selector = wire::parse_selector(c.text);
    REQUIRE(selector.ok());
    Record record;
    pseudonyms.describe(c.namespace_name, *selector, record);
    CHECK(record.targets.size() == (c.is_target ? 1 : 0));
    CHECK(record.reaches_more != c.is_target);
    const std::size_t slash = record.selector.find('/');
    CHECK((record.selector.substr(0, slash) == selector->device) == c.keeps_device);
    CHECK((record.selector.substr(slash + 1) == selector->sensor) == c.keeps_sensor);
    CHECK(record.selector.find("kit") == std::string::npos);
    CHECK(record.selector.find("temp") == std::string::npos);
  }
}

TEST_CASE("pseudonyms: a device's records are those that name it, or may reach it") {
  const Pseudonyms pseudonyms("key");
  const std::uint64_t kitchen = pseudonyms.of_device("n", "kitchen");
  const auto is_found = [&](const char* namespace_name, const char* text) {
    Record record;
    record.namespace_name = *namespace_name == '\0' ? "*" : namespace_name;
    pseudonyms.describe(namespace_name, wire::parse_selector(text).value(), record);
    return concerns(record, kitchen, "n", "kitchen");
  };
  CHECK(is_found("n", "kitchen/temp"));
  CHECK(is_found("n", "*/*"));
  CHECK(is_found("", "*/*"));
  CHECK(is_found("", "kitchen/temp"));
  CHECK(is_found("n", "kit*/*"));
  CHECK_FALSE(is_found("n", "shed/*"));
  CHECK_FALSE(is_found("n", "?/*"));
  CHECK_FALSE(is_found("m", "kitchen/temp"));
  CHECK_FALSE(is_found("m", "*/*"));
}

}  // namespace edgecase::audit
