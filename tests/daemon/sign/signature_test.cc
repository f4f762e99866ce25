#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "sign/signature.h"
#include "support/model_engine.h"

namespace edgecase::sign {
namespace {

// RFC 6979, A.2.5: P-256, SHA-256, message "sample".
constexpr char kSecretHex[] = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
constexpr char kSignatureHex[] =
    "3046022100efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    "022100f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";

Bytes bytes_of(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace

TEST_CASE("sign: the example of RFC 6979") {
  SeededRandom random(1);
  const auto signature = sign(bytes_of(kSecretHex), "sample", random);
  REQUIRE(signature.ok());
  CHECK(*signature == bytes_of(kSignatureHex));
  const auto key = public_key_of(bytes_of(kSecretHex), random);
  REQUIRE(key.ok());
  CHECK(verify(*key, "sample", *signature).ok());
  CHECK(fingerprint(*key).size() == 64);
}

TEST_CASE("sign: what was changed, and what another key signed, is found") {
  SeededRandom random(2);
  const Bytes secret = make_secret(random).value();
  const Bytes others = make_secret(random).value();
  REQUIRE(secret.size() == kSecretBytes);
  const std::string key = public_key_of(secret, random).value();
  const Bytes signature = sign(secret, "text", random).value();
  CHECK(verify(key, "text", signature).ok());
  CHECK(verify(key, "texT", signature).code() == StatusCode::Corruption);
  CHECK(verify(public_key_of(others, random).value(), "text", signature).code() ==
        StatusCode::Corruption);
  for (std::size_t at = 0; at < signature.size(); ++at) {
    Bytes flipped = signature;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    CHECK(verify(key, "text", flipped).code() == StatusCode::Corruption);
    CHECK(verify(key, "text", signature.substr(0, at)).code() == StatusCode::Corruption);
  }
}

TEST_CASE("sign: what is no key is told") {
  SeededRandom random(3);
  for (const Bytes& secret : {Bytes(), Bytes(31, 'x'), Bytes(32, '\0'), Bytes(32, '\xff')}) {
    CHECK(public_key_of(secret, random).status().code() == StatusCode::Corruption);
    CHECK(sign(secret, "text", random).status().code() == StatusCode::Corruption);
  }
  for (const char* key :
       {"", "key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"})
    CHECK(verify(key, "text", "signature").code() == StatusCode::InvalidArgument);
  CHECK(fingerprint("key").empty());
}

// What is signed of a JSON object, and whose signature is taken for one.

namespace {

using Json = nlohmann::json;

Json document() {
  return {{"owner", "alice"}, {"count", 9'007'199'254'740'993u}, {"list", {1, nullptr, "ü/\"\n"}}};
}

}  // namespace

TEST_CASE("sign: what is signed is one text, whatever the order and the layout of a document") {
  const std::string text = signed_text(Json::parse(R"({ "b" : [1, 2.5],
      "a": {"z": null, "y": true}, "signature": {"value": "x"} })"));
  CHECK(text == R"({"a":{"y":true,"z":null},"b":[1,2.5]})");
  CHECK(signed_text(Json::parse(text)) == text);
  CHECK(signed_text(Json::parse(R"({"text":"\u00fc"})")) == "{\"text\":\"\u00fc\"}");
}

TEST_CASE("sign: a document and the digest of its text have the same signer") {
  SeededRandom random(6);
  const Bytes secret = make_secret(random).value();
  Json one = document();
  one[kSignatureMember] =
      signature_of(auth::sha256(signed_text(document())), secret, random).value();
  const auto signer = check_signature(one);
  REQUIRE(signer.ok());
  CHECK(signer->public_key == public_key_of(secret, random).value());
}

TEST_CASE(
    "sign: a document says who signed it, however it is laid out, and not once it is changed") {
  SeededRandom random(4);
  const Bytes secret = make_secret(random).value();
  Json signed_one = document();
  signed_one[kSignatureMember] = signature_of(document(), secret, random).value();
  const auto signer = check_signature(Json::parse(signed_one.dump(4)));
  REQUIRE(signer.ok());
  CHECK(signer->public_key == public_key_of(secret, random).value());
  CHECK(signer->fingerprint == fingerprint(signer->public_key));
  const nlohmann::ordered_json reordered = {{"signature", signed_one["signature"]},
                                            {"list", signed_one["list"]},
                                            {"count", signed_one["count"]},
                                            {"owner", "alice"}};
  CHECK(check_signature(Json::parse(reordered.dump())).ok());

  struct Change {
    const char* pointer;
    Json value;
  };
  for (const Change& c :
       {Change{"/owner", "bob"}, Change{"/count", 1}, Change{"/list/0", 2}, Change{"/more", true},
        Change{"/signature/value", "AAAA"}, Change{"/signature/value", "no base64"}}) {
    CAPTURE(c.pointer);
    Json changed = signed_one;
    changed[Json::json_pointer(c.pointer)] = c.value;
    CHECK(check_signature(changed).status().code() == StatusCode::Corruption);
  }
  Json unknown = signed_one;
  unknown["signature"]["algorithm"] = "none";
  CHECK(check_signature(unknown).status().code() == StatusCode::InvalidArgument);
  for (const char* text : {"{}", "[]", "5", R"({"signature":5})", R"({"signature":{}})"})
    CHECK(check_signature(Json::parse(text)).status().code() == StatusCode::InvalidArgument);
}

// The key by which a store signs.

TEST_CASE("sign: the store's key is made once, and kept") {
  test::ModelEngine engine;
  SeededRandom random(5);
  engine.fail_writes(out_of_space("full"));
  CHECK(SigningKey(engine, random).secret().status().code() == StatusCode::OutOfSpace);
  engine.fail_writes(ok());
  const auto made = SigningKey(engine, random).secret();
  REQUIRE(made.ok());
  CHECK(made->is_new);
  const auto again = SigningKey(engine, random).secret();
  REQUIRE(again.ok());
  CHECK_FALSE(again->is_new);
  CHECK(again->bytes == made->bytes);
  WriteBatch batch;
  batch.put(engine.find_namespace(kSigningNamespace)->id, "K", "short");
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  CHECK(SigningKey(engine, random).secret().status().code() == StatusCode::Corruption);
}

}  // namespace edgecase::sign
