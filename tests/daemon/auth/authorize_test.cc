#include "auth/authorize.h"

#include <doctest/doctest.h>

using namespace edgecase;
using auth::PrincipalKind;

namespace {

wire::ReadingBatch batch_in(std::string_view namespace_name) {
  wire::ReadingBatch batch;
  batch.readings.push_back({"default", "d", "s", 0, wire::Value::of_float64(1)});
  batch.readings.push_back({namespace_name, "d", "s", 0, wire::Value::of_float64(1)});
  return batch;
}

}  // namespace

TEST_CASE("authorize: only the daemon itself writes to the store's own namespaces") {
  for (const auto kind : {PrincipalKind::LocalSocket, PrincipalKind::Loopback,
                          PrincipalKind::Remote, PrincipalKind::Mqtt, PrincipalKind::Internal}) {
    const auth::Principal principal{kind, "test"};
    for (const char* own : {"_rejected", "_catalog", "_"}) {
      const auto batch = batch_in(own);
      const auto got = auth::authorize_write(principal, batch);
      CHECK(got.ok() == (kind == PrincipalKind::Internal));
      if (!got.ok()) CHECK(got.status().code() == StatusCode::NotAllowed);
    }
    const auto batch = batch_in("home_");
    const auto got = auth::authorize_write(principal, batch);
    REQUIRE(got.ok());
    CHECK(&got->batch() == &batch);
    CHECK(&got->principal() == &principal);
  }
}

TEST_CASE("authorize: what was rejected may be read, the store's books not") {
  const auth::Principal principal;
  CHECK(auth::authorize_read(principal, "").ok());
  CHECK(auth::authorize_read(principal, "default").ok());
  CHECK(auth::authorize_read(principal, "_rejected").ok());
  CHECK(auth::authorize_read(principal, "_catalog").code() == StatusCode::NotAllowed);
  CHECK(auth::authorize_read(principal, "_rejected2").code() == StatusCode::NotAllowed);
}
