#include "auth/authorize.h"

#include <doctest/doctest.h>

namespace edgecase::auth {
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
    CHECK(auth::authorize_write(principal, batch_in("_views")).ok());
    const auto batch = batch_in("home_");
    const auto got = auth::authorize_write(principal, batch);
    REQUIRE(got.ok());
    CHECK(&got->batch() == &batch);
    CHECK(&got->principal() == &principal);
  }
}

TEST_CASE("authorize: views and what was rejected may be read, the store's books not") {
  const auth::Principal principal;
  const auto may_read = [&principal](std::string_view name) {
    return authorize(Operation::Read, principal, name, {}).code();
  };
  CHECK(may_read("") == StatusCode::Ok);
  CHECK(may_read("default") == StatusCode::Ok);
  CHECK(may_read("_rejected") == StatusCode::Ok);
  CHECK(may_read("_views") == StatusCode::Ok);
  CHECK(may_read("_catalog") == StatusCode::NotAllowed);
  CHECK(may_read("_tokens") == StatusCode::NotAllowed);
  CHECK(may_read("_rejected2") == StatusCode::NotAllowed);
}

TEST_CASE("authorize: a token may do what its scopes say, and nothing else") {
  struct Case {
    const char* namespace_name;  // of the scopes
    Operation operation;
    const char* namespace_asked;
    const char* selector;
    bool want;
  };
  // Reads k*/temp, writes kitchen/*, may not export, erases nothing.
  for (const Case& c : {
           Case{"home", Operation::Read, "home", "kitchen/temp", true},
           Case{"home", Operation::Read, "home", "kitchen/*", true},
           Case{"home", Operation::Read, "home", "*/*", true},
           Case{"home", Operation::Read, "home", "shed/*", false},
           Case{"home", Operation::Read, "home", "kitchen/hum", false},
           Case{"home", Operation::Read, "other", "kitchen/temp", false},
           Case{"home", Operation::Read, "", "kitchen/temp", true},
           Case{"home", Operation::Read, "_rejected", "*/*", false},
           Case{"_rejected", Operation::Read, "_rejected", "k/temp", true},
           Case{"", Operation::Read, "other", "kitchen/temp", true},
           Case{"", Operation::Read, "_rejected", "*/*", false},
           Case{"", Operation::Write, "other", "kitchen/x", true},
           Case{"", Operation::Read, "_views", "*/*", false},
           Case{"", Operation::Write, "_views", "kitchen/x", false},
           Case{"_views", Operation::Write, "_views", "kitchen/x", true},
           Case{"", Operation::Write, "other", "kitchen2/x", false},
           Case{"", Operation::Export, "other", "kitchen/temp", false},
           Case{"", Operation::Erase, "other", "kitchen/temp", false},
       }) {
    CAPTURE(c.namespace_name);
    CAPTURE(c.selector);
    auto grant = std::make_shared<auth::Grant>();
    grant->scopes.namespace_name = c.namespace_name;
    grant->scopes.read = {wire::parse_selector("k*/temp").value()};
    grant->scopes.write = {wire::parse_selector("kitchen/*").value()};
    const auth::Principal principal{PrincipalKind::LocalSocket, "test", grant};
    const wire::Selector asked = wire::parse_selector(c.selector).value();
    CHECK(authorize(c.operation, principal, c.namespace_asked, asked).ok() == c.want);
    if (asked.is_exact() && *c.namespace_asked != 0) {
      CHECK(allows(c.operation, principal, c.namespace_asked, asked.device, asked.sensor) ==
            c.want);
    }
    CHECK(authorize_administration(principal).code() == StatusCode::NotAllowed);
    grant->scopes.admin = true;
    CHECK(authorize(c.operation, principal, c.namespace_asked, asked).ok());
    CHECK(authorize_administration(principal).ok());
  }
}

TEST_CASE("authorize: a scope of several selectors is what any of them matches") {
  auto grant = std::make_shared<auth::Grant>();
  grant->scopes.read = {wire::Selector{"kitchen", "*"}, wire::Selector{"c*", "temp"}};
  const auth::Principal principal{PrincipalKind::Remote, "test", grant};
  struct Case {
    const char *device, *sensor;
    bool want;
  };
  for (const Case& c : {Case{"kitchen", "co2", true}, Case{"cellar", "temp", true},
                        Case{"cellar", "co2", false}, Case{"hall", "temp", false}}) {
    CAPTURE(c.device);
    CHECK(allows(Operation::Read, principal, "default", c.device, c.sensor) == c.want);
    CHECK(authorize(Operation::Read, principal, "default", {c.device, c.sensor}).ok() == c.want);
    CHECK_FALSE(allows(Operation::Erase, principal, "default", c.device, c.sensor));
  }
}

TEST_CASE("authorize: one reading outside the scope, and the batch is refused") {
  auto grant = std::make_shared<auth::Grant>();
  grant->scopes.namespace_name = "default";
  grant->scopes.write = {wire::parse_selector("d/*").value()};
  const auth::Principal principal{PrincipalKind::Remote, "test", grant};
  CHECK(authorize_write(principal, batch_in("default")).ok());
  CHECK(authorize_write(principal, batch_in("other")).status().code() == StatusCode::NotAllowed);
  CHECK(authorize_write(principal, batch_in("_tokens")).status().code() == StatusCode::NotAllowed);
  grant->scopes.write.clear();
  CHECK(authorize_write(principal, batch_in("default")).status().code() == StatusCode::NotAllowed);
}

TEST_CASE("authorize: without a token the machine administers itself, nobody else does") {
  CHECK(auth::authorize_administration({PrincipalKind::LocalSocket, ""}).ok());
  CHECK(auth::authorize_administration({PrincipalKind::Loopback, ""}).ok());
  for (const auto kind : {PrincipalKind::Remote, PrincipalKind::Mqtt}) {
    CHECK(auth::authorize_administration({kind, ""}).code() == StatusCode::NotAllowed);
  }
}

}  // namespace edgecase::auth
