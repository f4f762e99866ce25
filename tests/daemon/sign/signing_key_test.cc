// The key by which a store signs.
#include "sign/signing_key.h"

#include <doctest/doctest.h>

#include "edgecase/random.h"
#include "support/model_engine.h"

namespace edgecase::sign {

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
