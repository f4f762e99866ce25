#include <doctest/doctest.h>

#include "auth/hashing.h"
#include "support/model_engine.h"

namespace edgecase::auth {

TEST_CASE("a pseudonym tells kinds, namespaces, names and stores apart") {
  const Pseudonyms here(Bytes(kPseudonymKeyBytes, 'k'));
  CHECK(here.of_device("a", "bc") == here.of_device("a", "bc"));
  CHECK(here.of_device("a", "bc") != here.of_device("ab", "c"));
  CHECK(here.of_device("a", "b") != here.of_series("a", "b", ""));
  CHECK(here.of_series("a", "b", "cd") != here.of_series("a", "bc", "d"));
  CHECK(here.of_owner("alice") != here.of_text("label", {}, "alice"));
  CHECK(here.of_owner("alice") == here.of_text("owner", {}, "alice"));
  CHECK(here.of_device("a", "b") != Pseudonyms(Bytes(kPseudonymKeyBytes, 'x')).of_device("a", "b"));
}

TEST_CASE("pseudonyms: version 1 is these bytes, for ever") {
  const Pseudonyms here(Bytes(kPseudonymKeyBytes, 'k'));
  CHECK(hex_text(view_of(here.of_device("default", "kitchen"))) ==
        hex_text(view_of(
            hmac_sha256(std::string(32, 'k'), std::string("device\0default\0kitchen\0\0", 24)))));
}

TEST_CASE("pseudonyms: a store has one key, which is made once") {
  test::ModelEngine engine, other;
  SeededRandom random(1);
  const auto first = Pseudonyms::load(engine, random);
  const auto second = Pseudonyms::load(engine, random);
  const auto of_other = Pseudonyms::load(other, random);
  REQUIRE((first.ok() && second.ok() && of_other.ok()));
  CHECK(first->of_owner("alice") == second->of_owner("alice"));
  CHECK(first->of_owner("alice") != of_other->of_owner("alice"));
}

TEST_CASE("pseudonyms: a key of a wrong size is damage") {
  test::ModelEngine engine;
  const NamespaceId id = *engine.create_namespace(kPseudonymsNamespace, {});
  WriteBatch batch;
  batch.put(id, "K", "short");
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  SeededRandom random(1);
  CHECK(Pseudonyms::load(engine, random).status().code() == StatusCode::Corruption);
}

namespace {

TEST_CASE("sealing: what was sealed opens with its key and number alone") {
  SeededRandom random(7);
  const Bytes key = make_seal_key(random), other = make_seal_key(random);
  REQUIRE(key.size() == kSealKeyBytes);
  CHECK(key != other);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{70'000}}) {
    CAPTURE(size);
    const Bytes text(size, 'k');
    const Bytes sealed = seal(key, 3, text);
    CHECK(sealed.find("kkk") == Bytes::npos);
    CHECK(open_sealed(key, 3, sealed).value() == text);
    CHECK(open_sealed(key, 4, sealed).status().code() == StatusCode::Corruption);
    CHECK(open_sealed(other, 3, sealed).status().code() == StatusCode::Corruption);
    CHECK(open_sealed(key, 3, ByteView(sealed).substr(1)).status().code() ==
          StatusCode::Corruption);
    Bytes changed = sealed;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    CHECK(open_sealed(key, 3, changed).status().code() == StatusCode::Corruption);
  }
  CHECK(open_sealed(key, 3, "").status().code() == StatusCode::Corruption);
  CHECK(open_sealed("short", 3, Bytes(40, 'x')).status().code() == StatusCode::Corruption);
}

}  // namespace
}  // namespace edgecase::auth

using namespace edgecase;

TEST_CASE("sha256: the examples of FIPS 180-4") {
  const auto hex = [](std::string_view text) {
    return auth::hex_text(auth::view_of(auth::sha256(text)));
  };
  CHECK(hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("hmac_sha256: an example of RFC 4231") {
  CHECK(auth::hex_text(auth::view_of(auth::hmac_sha256("Jefe", "what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("digests are read back from hex, and compared at every byte") {
  const auth::Digest digest = auth::sha256("abc");
  auth::Digest back{};
  REQUIRE(auth::parse_digest(auth::hex_text(auth::view_of(digest)), back));
  CHECK(auth::equal_in_constant_time(digest, back));
  for (std::size_t i = 0; i < back.size(); ++i) {
    auth::Digest other = digest;
    other[i] = static_cast<unsigned char>(other[i] ^ 1);
    CHECK(!auth::equal_in_constant_time(digest, other));
  }
  CHECK(!auth::parse_digest("12", back));
  CHECK(!auth::parse_digest(std::string(64, 'g'), back));
}
