#include "catalog/catalog_format.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace edgecase;
using catalog::encode_record_key;
using catalog::FieldTag;
using catalog::RecordKey;
using catalog::RecordKind;

TEST_CASE("catalog format: keys are the documented bytes and sort parents first") {
  const RecordKey device{RecordKind::Device, 1, 2, 0};
  const RecordKey sensor{RecordKind::Sensor, 1, 2, 0x01020304};
  CHECK(encode_record_key(device) == Bytes("D\0\0\0\1\0\0\0\2", 9));
  CHECK(encode_record_key(sensor) == Bytes("S\0\0\0\1\0\0\0\2\1\2\3\4", 13));
  CHECK(encode_record_key({}) == "F");
  CHECK(encode_record_key({RecordKind::Device, ~0u, ~0u, 0}) < encode_record_key(sensor));
  for (const RecordKey& key : {RecordKey{}, device, sensor}) {
    const auto back = catalog::decode_record_key(encode_record_key(key));
    REQUIRE(back.ok());
    CHECK(back->kind == key.kind);
    CHECK(back->namespace_id == key.namespace_id);
    CHECK(back->device == key.device);
    CHECK(back->sensor == key.sensor);
  }
}

TEST_CASE("catalog format: every other length and kind of key is corruption") {
  const Bytes whole = encode_record_key({RecordKind::Sensor, 1, 2, 3});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(catalog::decode_record_key(whole.substr(0, size)).status().code() ==
          StatusCode::Corruption);
  }
  for (const Bytes& key : {whole + "x", Bytes("FF"), Bytes("X"), Bytes(9, 'X')}) {
    CHECK(catalog::decode_record_key(key).status().code() == StatusCode::Corruption);
  }
}

TEST_CASE("catalog format: a record is the documented bytes") {
  CHECK(catalog::encode_record(FieldTag::Name, "temp") == Bytes("\2\1\4temp"));
  const std::string name(128, 'n');
  const Bytes record = catalog::encode_record(FieldTag::Name, name);
  const auto back = catalog::decode_record_field(record, FieldTag::Name);
  REQUIRE(back.ok());
  CHECK(*back == name);
}

TEST_CASE("catalog format: unknown fields are passed over") {
  // Tag 300 (two bytes of varint) before and tag 16 behind the name.
  const Bytes record = Bytes("\1\xac\2\3abc\1\1n\x10\0", 12);
  const auto back = catalog::decode_record_field(record, FieldTag::Name);
  REQUIRE(back.ok());
  CHECK(*back == "n");
}

TEST_CASE("catalog format: a cut record is corruption at every length") {
  const Bytes whole = catalog::encode_record(FieldTag::Name, "temp");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(catalog::decode_record_field(ByteView(whole).substr(0, size), FieldTag::Name)
              .status()
              .code() == StatusCode::Corruption);
  }
  CHECK(catalog::decode_record_field(whole, FieldTag::LayoutVersion).status().code() ==
        StatusCode::Corruption);
  const Bytes endless = Bytes("\1\x80\x80\x80\x80\x80\x80\1\1n");
  CHECK(catalog::decode_record_field(endless, FieldTag::Name).status().code() ==
        StatusCode::Corruption);
}

TEST_CASE("catalog format: a newer record is unsupported, not misread") {
  const Bytes newer = Bytes("\3\1\4temp");
  CHECK(catalog::decode_record_field(newer, FieldTag::Name).status().code() ==
        StatusCode::Unsupported);
}
