// What is signed of a JSON object, and whose signature is taken for one.
#include "sign/signed_json.h"

#include <doctest/doctest.h>

#include "sign/signature.h"

namespace edgecase::sign {
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

}  // namespace edgecase::sign
