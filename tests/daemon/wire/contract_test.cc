#include "wire/contract.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("errors: every code has a name that leads back to it") {
  for (int i = 0; i <= static_cast<int>(StatusCode::Cancelled); ++i) {
    const auto code = static_cast<StatusCode>(i);
    CAPTURE(i);
    CHECK(wire::status_code_of(wire::error_code_name(code)) == code);
  }
}

TEST_CASE("errors: what may succeed later is 503") {
  for (const StatusCode code :
       {StatusCode::Busy, StatusCode::OutOfSpace, StatusCode::IoError, StatusCode::Unavailable}) {
    CHECK(wire::http_status_of(code) == 503);
  }
}

TEST_CASE("errors: JSON bodies follow the contract") {
  CHECK(wire::error_json(invalid_argument("no \"x\""), 3) ==
        R"({"error":{"code":"invalid_argument","line":3,"message":"no \"x\""}})");
  CHECK(wire::error_json(not_found("x"), 1) ==
        R"({"error":{"code":"not_found","line":1,"message":"x"}})");
  CHECK(wire::error_json(not_found("x"), 0) == R"({"error":{"code":"not_found","message":"x"}})");
}
