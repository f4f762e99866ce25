#include "mqtt/paho_client.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("paho client: a library older than 1.3.10 is refused with words") {
  for (const char* const text : {"1.3.10", "1.3.13", "1.4.0", "1.10", "2.0.0", "2"}) {
    CAPTURE(text);
    CHECK(mqtt::PahoClient::check_version(text).ok());
  }
  for (const char* const text : {"1.3.9", "1.3.0", "1.2.99", "0.9.9", "1.3", "1", "", "new"}) {
    CAPTURE(text);
    const Status status = mqtt::PahoClient::check_version(text);
    CHECK(status.code() == StatusCode::Unsupported);
    CHECK(status.message().find("1.3.10 is needed") != std::string_view::npos);
  }
  CHECK(mqtt::PahoClient::check_version().ok());
}
