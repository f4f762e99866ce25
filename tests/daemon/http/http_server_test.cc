#include "http/http_server.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

constexpr char kTwoReadings[] =
    "shed/weather.hum@1970-01-01T00:00:00.000000005Z=40\n"
    "shed/weather.temp@1970-01-01T00:00:00.000000005Z=21.5\n";

}  // namespace

TEST_CASE("http: line protocol is stored and acknowledged with 204 exactly") {
  ServerFixture f;
  for (const char* target :
       {"/write?db=a", "/write?db=a&precision=ns&consistency=all&rp=x&u=y&p=z",
        "/api/v2/write?bucket=a&org=o&precision=ns", "/api/v2/write?bucket=a%2Fautogen"}) {
    CAPTURE(target);
    const Answer answer = f.ask("POST", target, "weather,device=shed temp=21.5,hum=40i 5\n");
    CHECK(answer.status == 204);
    CHECK(answer.body.empty());
    CHECK(answer.header("content-length").empty());
    CHECK(!answer.header("x-influxdb-version").empty());
    CHECK(f.stored("a") == kTwoReadings);
  }
  CHECK(f.ask("POST", "/write?db=a").status == 204);
  CHECK(f.ask("POST", "/write", "m,device=d value=1 1").status == 204);
  CHECK(f.stored() == "d/m@1970-01-01T00:00:00.000000001Z=1\n");
}

TEST_CASE("http: a timestamp counts in the precision that is given") {
  ServerFixture f;
  CHECK(f.ask("POST", "/write?precision=s", "m,device=d value=1 5").status == 204);
  CHECK(f.stored() == "d/m@1970-01-01T00:00:05.000000000Z=1\n");
  for (const char* target :
       {"/write?precision=fortnight", "/api/v2/write?precision=h", "/write?precision=NS"}) {
    const Answer answer = f.ask("POST", target, "m,device=d value=2 5");
    CHECK(answer.status == 400);
    CHECK(json_of(answer)["error"].is_string());
  }
  CHECK(f.stored() == "d/m@1970-01-01T00:00:05.000000000Z=1\n");
}

TEST_CASE("http: bad lines are named, good ones stored and counted") {
  ServerFixture f;
  const Answer answer =
      f.ask("POST", "/write", "weather,device=shed temp=21.5,hum=40i 5\noops\nm x=nan\n");
  CHECK(answer.status == 400);
  const nlohmann::json body = json_of(answer);
  CHECK(body["error"].get<std::string>().find("partial write: unable to parse line 2") == 0);
  CHECK(body["line"] == 2);
  CHECK(body["stored"] == 2);
  CHECK(body["rejected"] == 2);
  CHECK(body["errors"][1]["line"] == 3);
  CHECK(f.stored() == kTwoReadings);
}

TEST_CASE("http: JSON readings") {
  ServerFixture f;
  Answer answer =
      f.ask("POST", "/api/v1/readings",
            R"([{"device":"shed","sensor":"weather.temp","time":5,"value":21.5},)"
            R"({"device":"shed","sensor":"weather.hum","time":5,"value":40,"type":"int"}])");
  CHECK(answer.status == 200);
  CHECK(json_of(answer) == nlohmann::json{{"stored", 2}, {"rejected", 0}});
  CHECK(f.stored() == kTwoReadings);
  answer = f.ask("POST", "/api/v1/readings?ns=b",
                 "{\"device\":\"d\",\"sensor\":\"s\",\"time\":1,\"value\":true}\n"
                 "{\"device\":\"d/e\",\"sensor\":\"s\",\"time\":1,\"value\":1}\n");
  CHECK(answer.status == 400);
  const nlohmann::json body = json_of(answer);
  CHECK(body["error"]["code"] == "invalid_argument");
  CHECK(body["error"]["line"] == 2);
  CHECK(body["stored"] == 1);
  CHECK(body["rejected"] == 1);
  CHECK(f.stored("b") == "d/s@1970-01-01T00:00:00.000000001Z=true\n");
  CHECK(f.ask("POST", "/api/v1/readings", "").status == 400);
  CHECK(f.ask("POST", "/api/v1/readings", "{\"device\":").status == 400);
}

TEST_CASE("http: a long array is stored in slices, a malformed one not at all" *
          doctest::test_suite("bulk")) {
  ServerFixture f;
  std::string body = "[";
  int readings = 0;
  while (body.size() < 3u << 20) {
    body += R"({"device":"d","sensor":"s","value":1,"time":)" + std::to_string(++readings) + "},";
  }
  CHECK(f.ask("POST", "/api/v1/readings", body + "{]").status == 400);
  CHECK(f.stored().empty());
  const Answer answer = f.ask("POST", "/api/v1/readings", body + "7]");
  CHECK(answer.status == 400);
  CHECK(json_of(answer)["stored"] == readings);
  CHECK(json_of(answer)["rejected"] == 1);
  CHECK(json_of(answer)["errors"][0]["line"] == readings + 1);
  const std::string stored = f.stored();
  CHECK(std::count(stored.begin(), stored.end(), '\n') == readings);
}

TEST_CASE("http: NDJSON of several pieces keeps its line numbers" * doctest::test_suite("bulk")) {
  ServerFixture f;
  std::string body;
  int lines = 0;
  while (body.size() < 3u << 20) {
    body += R"({"device":"d","sensor":"s","value":1,"time":)" + std::to_string(++lines) + "}\n";
  }
  body += "nonsense\n\n";
  const Answer answer = f.ask("POST", "/api/v1/readings", body);
  CHECK(answer.status == 400);
  CHECK(json_of(answer)["stored"] == lines);
  CHECK(json_of(answer)["errors"][0]["line"] == lines + 1);
}

TEST_CASE("http: a blob comes back byte for byte with its type") {
  ServerFixture f;
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes.push_back(static_cast<char>(i * 7));
  const std::string path = "/api/v1/blob/cam%20ns/front%20door/still%3Aimage";
  Answer answer = f.ask("PUT", path + "?time=@5", bytes, "Content-Type: image/jpeg; q=%41\r\n");
  CHECK(answer.status == 201);
  CHECK(json_of(answer)["time"] == "1970-01-01T00:00:05.000000000Z");
  CHECK(json_of(answer)["bytes"] == bytes.size());
  CHECK(f.ask("PUT", path + "?time=@4", "older").status == 201);
  for (const char* query : {"", "?time=@5", "?time=1970-01-01T00:00:05Z"}) {
    answer = f.ask("GET", path + query);
    CHECK(answer.status == 200);
    CHECK(answer.body == bytes);
    CHECK(answer.header("content-type") == "image/jpeg; q=%41");
    CHECK(answer.header("x-edgecase-time") == "1970-01-01T00:00:05.000000000Z");
    CHECK(answer.header("content-security-policy").find("sandbox") == 0);
  }
  CHECK(f.ask("HEAD", path).status == 200);
  CHECK(f.ask("GET", path + "?time=@6").status == 404);
  CHECK(f.ask("GET", "/api/v1/blob/cam%20ns/no/such").status == 404);
  CHECK(f.ask("GET", "/api/v1/blob/a/b").status == 400);
  CHECK(f.ask("PUT", "/api/v1/blob/a/b/c/d", "x").status == 400);
  CHECK(f.ask("PUT", path, "").status == 400);
  CHECK(f.ask("PUT", path + "?tim=@5", "x").status == 400);
  CHECK(f.ask("PUT", path + "?time=@5&purpose=x", "x").status == 400);
  CHECK(f.ask("GET", path + "?tim=@5").status == 400);
  CHECK(f.ask("PUT", "/api/v1/blob/_own/b/c", "x").status == 403);
}

TEST_CASE("http: a type that would be more than one line of an answer is not stored") {
  ServerFixture f;
  const std::string blob = R"({"device":"d","sensor":"s","value":"aGk=","type":"bytes",)"
                           R"("content_type":"text/html\r\nX-Evil: 1"})";
  CHECK(f.ask("POST", "/api/v1/readings", blob).status == 400);
  // The library would decode what is percent-encoded in a header.
  const std::string header = "Content-Type: text/x%0d%0aX-Evil: 1\r\n";
  CHECK(f.ask("PUT", "/api/v1/blob/default/d/s", "hi", header).status == 201);
  const Answer answer = f.ask("GET", "/api/v1/blob/default/d/s");
  CHECK(answer.header("content-type") == "text/x%0d%0aX-Evil: 1");
  CHECK(answer.header("x-evil").empty());
}

TEST_CASE("http: queries") {
  ServerFixture f;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    lines += "m,device=d" + std::to_string(i % 2) + " value=" + std::to_string(i) + " " +
             std::to_string(i) + "\n";
  }
  REQUIRE(f.ask("POST", "/write?precision=s", lines).status == 204);
  Answer answer = f.ask("GET", "/api/v1/query?select=d1");
  CHECK(answer.status == 200);
  CHECK(answer.complete);
  CHECK(answer.header("transfer-encoding") == "chunked");
  CHECK(std::count(answer.body.begin(), answer.body.end(), '\n') == 10'000);
  answer = f.ask("GET", "/api/v1/query?select=d?/m&from=@100&to=@104&format=csv");
  CHECK(answer.header("content-type").find("text/csv") == 0);
  CHECK(answer.body ==
        "namespace,device,sensor,time,value,type\n"
        "default,d0,m,1970-01-01T00:01:40.000000000Z,100,float\n"
        "default,d0,m,1970-01-01T00:01:42.000000000Z,102,float\n"
        "default,d1,m,1970-01-01T00:01:41.000000000Z,101,float\n"
        "default,d1,m,1970-01-01T00:01:43.000000000Z,103,float\n");
  answer = f.ask("GET", "/api/v1/query?select=d1/m&limit=1&desc=1");
  CHECK(json_of(answer)["value"] == 19'999.0);
  answer = f.ask("GET", "/api/v1/query?select=d0/m&every=1h&agg=count&limit=1");
  CHECK(json_of(answer)["value"] == 1'800);
  CHECK(f.ask("GET", "/api/v1/last?select=*").body.find("19998") != std::string::npos);
  for (const char* bad :
       {"limit=x", "limit=-1", "every=5", "every=0s", "agg=middle", "format=xml",
        "from=yesterdayish", "desc=maybe", "select=a/b/c", "selct=a", "from=@5&to=@4"}) {
    CAPTURE(bad);
    answer = f.ask("GET", std::string("/api/v1/query?") + bad);
    CHECK(answer.status == 400);
    CHECK(json_of(answer)["error"]["code"] == "invalid_argument");
  }
  CHECK(f.ask("GET", "/api/v1/query?select=no/such").status == 404);
  CHECK(f.ask("GET", "/api/v1/query?ns=_catalog").status == 403);
}

TEST_CASE("http: with explain a query tells what it is made of, in place of rows") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write", "cpu,host=a v=1 1\ncpu,host=a v=2 2\ncpu,host=a v=3 3").status ==
          204);
  const Answer windows = f.ask("GET", "/api/v1/query?agg=mean&every=1m&explain=true");
  CHECK(windows.status == 200);
  // The engine in memory has no groups.
  CHECK(windows.body ==
        "{\"rows\":1,\"groups_from_metadata\":0,\"readings_from_metadata\":0,"
        "\"readings_decoded\":3,\"groups_decoded\":0,\"metadata_bytes\":0,\"values_bytes\":0}\n");
  CHECK(f.ask("GET", "/api/v1/query?explain=1").body.find("\"rows\":3,") != std::string::npos);
  CHECK(f.ask("GET", "/api/v1/query?explain=0").body.find("\"rows\"") == std::string::npos);
  CHECK(f.ask("GET", "/api/v1/query?explain=maybe").status == 400);
}

TEST_CASE("http: a query that fails midway never looks complete") {
  ServerFixture f;
  std::string lines;
  for (int i = 0; i < 30'000; ++i) lines += "m value=1 " + std::to_string(i) + "\n";
  REQUIRE(f.ask("POST", "/write", lines).status == 204);
  f.engine.fail_next_read(unavailable("the drive is gone"));
  const Answer answer = f.ask("GET", "/api/v1/query?select=m");
  CHECK(answer.status == 503);
  CHECK(answer.header("retry-after") == "1");
  // HTTP/1.0 has no chunks; the end of the connection is the end of the answer.
  Client old = f.connect();
  old.send("GET /api/v1/query?select=m HTTP/1.0\r\n\r\n");
  const Answer whole = old.receive();
  CHECK(whole.status == 200);
  CHECK(std::count(whole.body.begin(), whole.body.end(), '\n') == 30'000);
}

TEST_CASE("http: what is stored") {
  ServerFixture f;
  REQUIRE(
      f.ask("POST", "/write?db=x", "m,device=a v=1 1000000000\nm,device=a v=2 3000000000").status ==
      204);
  nlohmann::json series = json_of(f.ask("GET", "/api/v1/series?ns=*"))["series"];
  REQUIRE(series.size() == 1);
  CHECK(series[0]["namespace"] == "x");
  CHECK(series[0]["device"] == "a");
  CHECK(series[0]["sensor"] == "m.v");
  CHECK(series[0]["count"] == 2);
  CHECK(series[0]["first"] == "1970-01-01T00:00:01.000000000Z");
  CHECK(series[0]["last"] == "1970-01-01T00:00:03.000000000Z");
  CHECK(series[0]["rate"] == 0.5);
  CHECK(json_of(f.ask("GET", "/api/v1/devices?ns=x"))["devices"][0]["series"] == 1);
  CHECK(json_of(f.ask("GET", "/api/v1/series"))["series"].empty());
  CHECK(f.ask("POST", "/api/v1/namespaces?name=y").status == 201);
  CHECK(f.ask("POST", "/api/v1/namespaces?name=y").status == 200);
  CHECK(f.ask("POST", "/api/v1/namespaces?name=").status == 400);
  CHECK(f.ask("POST", "/api/v1/namespaces?name=_y").status == 403);
  CHECK(f.ask("POST", "/api/v1/namespaces?name=z").status == 201);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=z").status == 200);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=z").status == 404);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=_rejected").status == 403);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=").status == 404);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=y&all=1").status == 400);
  const nlohmann::json names = json_of(f.ask("GET", "/api/v1/namespaces"))["namespaces"];
  CHECK(std::find(names.begin(), names.end(), "y") != names.end());
}

TEST_CASE("http: health, status, metrics and the page") {
  ServerFixture f;
  CHECK(f.ask("GET", "/healthz").body == "ok\n");
  CHECK(f.ask("GET", "/readyz").status == 200);
  REQUIRE(f.ask("POST", "/write", "m value=1").status == 204);
  const nlohmann::json status = json_of(f.ask("GET", "/api/v1/status"));
  CHECK(status["version"].is_string());
  CHECK(status["ready"] == true);
  CHECK(status["clock"]["trusted"] == true);
  CHECK(status["drives"]["metadata"]["total_bytes"].get<std::uint64_t>() > 0);
  CHECK(status["drives"]["values"]["degraded"].is_null());
  CHECK(status["rates"]["readings"] == 1);
  CHECK(status["rates"]["device_limit"].is_null());
  CHECK(status["http"]["acknowledged_means"] == "2xx: durable on the drive");
  CHECK(status["reads"]["gets"].is_number());
  CHECK(status["reads"]["level_hits"].size() == 7);
  CHECK(status["amplification"]["write"].get<double>() >= 0);
  CHECK(status["amplification"]["space"] == 1.0);
  CHECK(status["mqtt"]["connected"] == true);
  CHECK(status["memory"]["resident_bytes"].get<std::uint64_t>() > 0);
  const std::string metrics = f.ask("GET", "/metrics").body;
  CHECK(metrics.find("edgecase_ingest_readings_total 1") != std::string::npos);
  CHECK(metrics.find("edgecase_reads_level_hits_total{level=\"6\"} 0") != std::string::npos);
  CHECK(metrics.find("edgecase_http_answers_total{status=\"2xx\"}") != std::string::npos);
  const Answer page = f.ask("GET", "/");
  CHECK(page.status == 200);
  CHECK(page.header("content-security-policy").find("default-src 'none'") == 0);
  CHECK(page.header("content-type") == "text/html; charset=utf-8");
  CHECK(page.body.find("https://") == std::string::npos);
  CHECK(json_of(f.ask("POST", "/api/v1/mqtt/test?topic=a/b", "21.5")) ==
        nlohmann::json{{"topic", "a/b"}, {"payload", "21.5"}});
  CHECK(f.ask("POST", "/api/v1/mqtt/test", "21.5").status == 400);
}

TEST_CASE("http: what cannot be taken now is 503 with Retry-After") {
  ServerFixture f;
  for (const Status& status :
       {busy("full"), out_of_space("full"), io_error("bad"), unavailable("gone")}) {
    for (const char* target : {"/write", "/api/v2/write", "/api/v1/readings"}) {
      f.engine.fail_next_write(status);
      const bool json = std::string_view(target) == "/api/v1/readings";
      const Answer answer =
          f.ask("POST", target, json ? R"({"device":"d","sensor":"s","value":1})" : "m value=1");
      CHECK(answer.status == 503);
      CHECK(answer.header("retry-after") == "1");
    }
  }
  CHECK(f.ask("POST", "/write", "m value=1 1").status == 204);
}

TEST_CASE("http: a device over its rate is 503 until it has paid, others are taken") {
  ServerFixture f([](config::Settings& settings) {
    settings.limits.device_rate = 10;
    settings.limits.device_burst = 5;
  });
  std::string many;
  for (int i = 0; i < 26; ++i) many += "m,device=d v=1 " + std::to_string(i) + "\n";
  CHECK(f.ask("POST", "/write", many).status == 204);  // more than a bucket holds: it owes 21
  const char* const kJson = R"({"device":"d","sensor":"s","value":1})";
  for (const char* target : {"/write", "/api/v2/write", "/api/v1/readings"}) {
    const bool json = std::string_view(target) == "/api/v1/readings";
    const Answer answer = f.ask("POST", target, json ? kJson : "m,device=d w=1 99");
    CHECK(answer.status == 503);
    CHECK(answer.header("retry-after") == "3");
    CHECK(answer.body.find("limits.device-rate = 10 readings a second") != std::string::npos);
  }
  CHECK(f.ask("PUT", "/api/v1/blob/default/d/picture", "x").status == 503);
  CHECK(f.ask("POST", "/write", "m,device=e v=1 1").status == 204);
  CHECK(f.stored().find("m.w") == std::string::npos);
  const nlohmann::json limit = json_of(f.ask("GET", "/api/v1/status"))["rates"]["device_limit"];
  CHECK(limit["refused"] == 4);
  CHECK(limit["readings_per_second"] == 10);
  CHECK(f.ask("GET", "/metrics").body.find("\nedgecase_ingest_device_rate_refused_total 4\n") !=
        std::string::npos);
  f.clock.advance(2'200'000'000);
  CHECK(f.ask("POST", "/write", "m,device=d w=1 99").status == 204);
}

TEST_CASE("http: readings and keys of one request have limits of their own") {
  ServerFixture f([](config::Settings& settings) {
    settings.limits.points_per_batch = 3;
    settings.limits.json_keys = 8;
  });
  CHECK(f.ask("POST", "/write", "m a=1,b=2,c=3 1").status == 204);
  const std::string one = R"({"device":"d","sensor":"s","value":1},)";
  for (const auto& [target, body] :
       {std::pair<const char*, std::string>{"/write", "n a=1,b=2,c=3,d=4 1"},
        {"/api/v1/readings", "[" + one + one + one + one.substr(0, one.size() - 1) + "]"}}) {
    const Answer answer = f.ask("POST", target, body);
    CHECK(answer.status == 413);
    CHECK(answer.body.find("limits.points-per-batch = 3") != std::string::npos);
  }
  // A long array is counted before any of its slices is stored.
  CHECK(f.ask("POST", "/api/v1/readings",
              "[" + one + one + one + std::string(1u << 20, ' ') + one.substr(0, one.size() - 1) +
                  "]")
            .status == 413);
  CHECK(f.stored().find("n/") == std::string::npos);
  CHECK(f.stored().find("d/s") == std::string::npos);
  const std::string column =
      R"({"device":"d","sensor":"s","time":1,"values":[1,2,3,4],"steps":[1,1,1]})";
  CHECK(f.ask("POST", "/api/v1/readings", column).status == 413);
  CHECK(f.stored().find("d/s") == std::string::npos);
  std::string keys;
  for (int i = 0; i < 9; ++i) keys += ",\"k" + std::to_string(i) + "\":1";
  for (const std::string& object :
       {"{" + keys.substr(1) + "}",
        R"({"device":"d","sensor":"s","value":{)" + keys.substr(1) + "}}"}) {
    const Answer answer = f.ask("POST", "/api/v1/readings", object);
    CHECK(answer.status == 400);
    CHECK(answer.body.find("limits.json-keys = 8") != std::string::npos);
  }
}

TEST_CASE("http: columns are stored as they come, and counted one by one") {
  ServerFixture f;
  constexpr int kValues = 10'000;
  constexpr int kColumns = 5;
  std::string body;
  for (int column = 0; column < kColumns; ++column) {
    body += R"({"device":"d","sensor":"s","time":)" + std::to_string(1 + column * kValues) +
            R"(,"values":[0)";
    for (int i = 1; i < kValues; ++i) body += ",1";
    body += R"(],"steps":[1)";
    for (int i = 2; i < kValues; ++i) body += ",1";
    body += "]}\n";
  }
  const Answer answer = f.ask("POST", "/api/v1/readings", body + "{\"device\":\"d\"}\n");
  CHECK(answer.status == 400);
  CHECK(json_of(answer)["stored"] == kColumns * kValues);
  CHECK(json_of(answer)["rejected"] == 1);
}

TEST_CASE("http: wrong paths and methods") {
  ServerFixture f;
  CHECK(f.ask("GET", "/nothing").status == 404);
  CHECK(json_of(f.ask("GET", "/nothing"))["error"]["code"] == "not_found");
  const Answer wrong = f.ask("GET", "/write");
  CHECK(wrong.status == 405);
  CHECK(wrong.header("allow") == "OPTIONS, POST");
  CHECK(json_of(wrong)["error"].is_string());
  const Answer options = f.ask("OPTIONS", "/api/v1/query");
  CHECK(options.status == 204);
  CHECK(options.header("allow") == "OPTIONS, GET, HEAD");
  CHECK(f.ask("DELETE", "/api/v1/series").status == 405);
  const Answer head = f.ask("HEAD", "/api/v1/status");
  CHECK(head.status == 200);
  CHECK(!head.header("content-length").empty());
}

TEST_CASE("http: the Unix socket is the group's, and stale files make room") {
  ServerFixture f;
  Client client = Client::over_unix(f.settings.http.socket);
  REQUIRE(client.connected());
  CHECK(client.ask("POST", "/write", "m value=1").status == 204);
  // Somebody answers there: a second server must not take its place.
  config::Settings second = f.settings;
  second.http.listen = "";
  const auto refused = HttpServer::start(
      {second, f.engine, posix_file_system(), f.clock, *f.catalog, *f.devices, *f.pipeline,
       *f.queries, *f.retention, *f.erase, *f.authenticator, f.metrics, f.logger});
  CHECK(refused.status().code() == StatusCode::AlreadyExists);
  CHECK(client.ask("GET", "/healthz").status == 200);
  f.server.reset();
  CHECK(net::inode_of(f.settings.http.socket) == 0);
  {
    // Left by a daemon that was killed.
    const auto stale = net::listen_on_unix_socket(f.settings.http.socket);
    REQUIRE(stale.ok());
  }
  CHECK(net::inode_of(f.settings.http.socket) != 0);
  const auto third = HttpServer::start({second, f.engine, posix_file_system(), f.clock, *f.catalog,
                                        *f.devices, *f.pipeline, *f.queries, *f.retention, *f.erase,
                                        *f.authenticator, f.metrics, f.logger});
  CHECK(third.ok());
  second.http.socket = f.directory / "file";
  REQUIRE(posix_file_system().create_directory(second.http.socket).ok());
  CHECK(HttpServer::start({second, f.engine, posix_file_system(), f.clock, *f.catalog, *f.devices,
                           *f.pipeline, *f.queries, *f.retention, *f.erase, *f.authenticator,
                           f.metrics, f.logger})
            .status()
            .code() == StatusCode::AlreadyExists);
}

TEST_CASE("http: answers say the date while the clock is trusted") {
  ServerFixture f;
  f.clock.set_wall_ns(784'111'777 * kSecondNs);
  for (const char* target : {"/healthz", "/api/v1/series", "/nowhere"}) {
    CAPTURE(target);
    CHECK(f.ask("GET", target).header("date") == "Sun, 06 Nov 1994 08:49:37 GMT");
  }
  Client refused = f.connect();
  refused.send("nothing\r\n\r\n");
  CHECK(refused.receive().header("date") == "Sun, 06 Nov 1994 08:49:37 GMT");
  f.clock.set_trust(ClockTrust::Untrusted);
  CHECK(f.ask("GET", "/healthz").header("date") == "");
}

TEST_CASE("http: pages of other sites change nothing") {
  ServerFixture f;
  struct Case {
    const char* headers;
    int status;
  };
  for (const Case& c :
       {Case{"Origin: http://localhost\r\n", 204}, Case{"Origin: http://evil.example\r\n", 403},
        Case{"Origin: null\r\n", 403}, Case{"Sec-Fetch-Site: cross-site\r\n", 403},
        Case{"Sec-Fetch-Site: same-origin\r\n", 204}, Case{"User-Agent: Mozilla/5.0\r\n", 204}}) {
    CAPTURE(c.headers);
    CHECK(f.ask("POST", "/write", "m value=1 1", c.headers).status == c.status);
  }
  CHECK(f.ask("GET", "/query?q=CREATE+DATABASE+x", "", "Sec-Fetch-Site: cross-site\r\n").status ==
        403);
  CHECK(f.ask("GET", "/api/v1/status", "", "Sec-Fetch-Site: cross-site\r\n").status == 200);
  // A name that was made to mean this machine.
  Client rebound = f.connect();
  rebound.send(
      "GET /api/v1/series HTTP/1.1\r\nHost: evil.example\r\nUser-Agent: Mozilla/5.0\r\n\r\n");
  CHECK(rebound.receive().status == 403);
  Client tool = f.connect();
  tool.send(
      "GET /api/v1/series HTTP/1.1\r\nHost: gateway.lan\r\nUser-Agent: Telegraf/1.30\r\n\r\n");
  CHECK(tool.receive().status == 200);
}

}  // namespace edgecase::http::test
