#include "auth/hashing.h"

#include <doctest/doctest.h>

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

}  // namespace edgecase::auth
