#include "http/http_routes.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

using namespace edgecase;

namespace {

Status failed(int error) {
  return Status::of_file(StatusCode::IoError, "cannot sync ", "/v/x", "", error);
}

}  // namespace

TEST_CASE("drive status: every reason has one of few words") {
  struct Case {
    Status status;
    const char* want;
  };
  for (const Case& c :
       {Case{ok(), ""}, Case{out_of_space("cannot write /m/store/wal"), "full"},
        Case{failed(EROFS), "read-only"}, Case{failed(EIO), "io-error"},
        Case{failed(ENODEV), "away"}, Case{failed(ENXIO), "away"},
        // Words tell nothing: this is the name of a directory.
        Case{io_error("cannot sync /No such device/x: Input/output error"), "io-error"},
        Case{unavailable("the values drive is not mounted"), "away"},
        Case{corruption("/v/x at byte 0"), "damaged"}, Case{busy("later"), "other"}}) {
    CAPTURE(c.status.to_string());
    CHECK(http::degraded_reason(c.status) == c.want);
  }
}

TEST_CASE("drive status: metrics tell which drive, since when and why") {
  observe::Metrics metrics;
  Stats stats;
  http::register_drive_metrics(metrics, [&stats] { return stats; });
  const auto holds = [&](const std::string& line) {
    return ("\n" + metrics.render()).find("\n" + line + "\n") != std::string::npos;
  };
  CHECK(holds(R"(edgecase_engine_degraded_since_seconds{layer="values"} 0)"));
  CHECK(holds(R"(edgecase_engine_degraded_reason{layer="values",reason="full"} 0)"));
  stats.values.degraded = out_of_space("full");
  stats.values.degraded_since_ns = 1'763'647'200'000'000'000;
  CHECK(holds(R"(edgecase_engine_degraded_since_seconds{layer="values"} 1763647200)"));
  CHECK(holds(R"(edgecase_engine_degraded_reason{layer="values",reason="full"} 1)"));
  CHECK(holds(R"(edgecase_engine_degraded_reason{layer="values",reason="away"} 0)"));
  CHECK(holds(R"(edgecase_engine_degraded_since_seconds{layer="metadata"} 0)"));
  CHECK(holds(R"(edgecase_engine_degraded_reason{layer="metadata",reason="full"} 0)"));
}
