// Programs that people use, against the server: each is skipped with a message where it is missing.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

bool runs(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

TEST_CASE("http clients: curl writes and reads") {
  if (!runs("curl --version")) {
    MESSAGE("skipped: curl is not installed");
    return;
  }
  ServerFixture f;
  const std::string base = "http://localhost:" + std::to_string(f.server->tcp_port());
  // The client's default Content-Type calls the lines a form, and a body over 1 MiB is announced
  // first.
  CHECK(runs("curl -sf '" + base + "/write?db=c' --data-binary 'm,device=d value=1 1'"));
  CHECK(f.stored("c") == "d/m@1970-01-01T00:00:00.000000001Z=1\n");
  const std::string file = f.directory / "lines";
  CHECK(runs("yes 'm,device=d value=2 2' | head -n 100000 > " + file));
  CHECK(runs("curl -sf '" + base + "/write?db=c' --data-binary @" + file));
  CHECK(runs("gzip " + file + " && curl -sf -H 'Content-Encoding: gzip' '" + base +
             "/api/v2/write?bucket=c' --data-binary @" + file + ".gz"));
  CHECK(runs("curl -sf --unix-socket " + f.settings.http.socket + " http://localhost/readyz"));
  CHECK(runs("curl -sf -T " + file + ".gz '" + base + "/api/v1/blob/c/d/file' && curl -sf '" +
             base + "/api/v1/blob/c/d/file' | cmp - " + file + ".gz"));
  CHECK(!runs("curl -sf '" + base + "/write' --data-binary 'nonsense'"));
  // What clients of Influx v1 send where they are told nothing is no token; what should be one is.
  const std::string write = "' --data-binary 'm,device=d value=1 1' '" + base + "/write?db=c'";
  CHECK(runs("curl -sf -H 'Authorization: Basic cm9vdDpyb290" + write));
  CHECK(!runs("curl -sf -H 'Authorization: Bearer root" + write));
  CHECK(!runs("curl -sf -u 'root:ec1_0123456789_wrong" + write));
}

TEST_CASE("http clients: Python's influxdb package") {
  const char* chosen = std::getenv("EDGECASE_TEST_PYTHON");
  const std::string python = chosen == nullptr ? "/usr/bin/python3" : chosen;
  if (!runs(python + " -c 'import influxdb'")) {
    MESSAGE("skipped: no Python with the package influxdb (name one in EDGECASE_TEST_PYTHON)");
    return;
  }
  ServerFixture f;
  const std::string program =
      "from influxdb import InfluxDBClient as C; c = C(\"localhost\", " +
      std::to_string(f.server->tcp_port()) +
      ", database=\"p\"); assert c.ping(); c.create_database(\"p\"); "
      "assert {\"name\": \"p\"} in c.get_list_database(); "
      "assert c.write_points([{\"measurement\": \"m\", \"tags\": {\"device\": \"d e\"}, "
      "\"time\": 5, \"fields\": {\"x\": 1.5, \"s\": \"a \\\"b\\\"\"}}])";
  CHECK(runs(python + " -c '" + program + "'"));
  CHECK(f.stored("p") ==
        "d e/m.s@1970-01-01T00:00:00.000000005Z=\"a \\\"b\\\"\"\n"
        "d e/m.x@1970-01-01T00:00:00.000000005Z=1.5\n");
}

TEST_CASE("http clients: what Telegraf sends") {
  ServerFixture f;
  CHECK(
      f.ask("POST", "/query?q=CREATE+DATABASE+%22telegraf%22", "", "User-Agent: Telegraf/1.30\r\n")
          .status == 200);
  const std::string lines =
      "disk,device=sda1,fstype=ext4,host=pi,mode=rw,path=/ free=1i,used_percent=12.5 "
      "1763647200000000000\n"
      "cpu,cpu=cpu-total,host=pi usage_idle=97.2 1763647200000000000\n";
  CHECK(f.ask("POST",
              "/write?consistency=&db=telegraf&precision=ns&rp=", compress(lines, Wrapper::Gzip),
              "User-Agent: Telegraf/1.30\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Encoding: gzip\r\n")
            .status == 204);
  CHECK(f.stored("telegraf") ==
        "pi/cpu.usage_idle{cpu=cpu-total}@2025-11-20T14:00:00.000000000Z=97.2\n"
        "pi/disk.free{device=sda1,fstype=ext4,mode=rw,path=:}@2025-11-20T14:00:00.000000000Z=1\n"
        "pi/disk.used_percent{device=sda1,fstype=ext4,mode=rw,path=:}"
        "@2025-11-20T14:00:00.000000000Z=12.5\n");
}

}  // namespace edgecase::http::test
