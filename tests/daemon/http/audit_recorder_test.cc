// What the audit log has of requests, of each by whom, of whom and with what outcome.
#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "audit/audit_log.h"
#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

struct AuditRoom : ServerFixture {
  AuditRoom() : ServerFixture([](config::Settings& s) { s.audit.mode = "strict"; }) {}

  Answer administer(std::string_view method, std::string_view target) const {
    return Client::over_unix(settings.http.socket).ask(method, target);
  }
  nlohmann::json records(const std::string& parameters = "") const {
    const Answer answer = administer("GET", "/api/v1/audit" + parameters);
    CHECK(answer.status == 200);
    return json_of(answer)["records"];
  }
  nlohmann::json last_record() const { return records("?desc=true&limit=1")[0]; }
};

constexpr char kReading[] = R"({"device":"kitchen","sensor":"temp","value":71717.25,"time":5})";

}  // namespace

TEST_CASE("audit over HTTP: who stored, read and changed what, and what became of it") {
  AuditRoom f;
  CHECK(f.ask("POST", "/api/v1/readings", kReading).status == 200);
  nlohmann::json last = f.last_record();
  CHECK(last["operation"] == "ingest");
  CHECK(last["actor"] == net::loopback_host());
  CHECK(last["result"] == "ok");
  CHECK(last["namespace"] == "default");
  CHECK(last["count"] == 1);
  REQUIRE(last["devices"].size() == 1);
  CHECK(last["devices"][0]["device"] == "kitchen");
  struct Case {
    const char* method;
    const char* target;
    int status;
    const char* operation;
    const char* result;
  };
  for (const Case& c :
       {Case{"GET", "/api/v1/query?select=kitchen/temp", 200, "query", "ok"},
        Case{"GET", "/api/v1/query?select=kitchen/temp&export=true", 200, "export", "ok"},
        Case{"GET", "/api/v1/query?select=shed/temp", 404, "query", "not_found"},
        Case{"GET", "/api/v1/last", 200, "last", "ok"},
        Case{"GET", "/api/v1/blob/default/kitchen/temp", 200, "get", "ok"},
        Case{"GET", "/api/v1/series", 200, "series", "ok"},
        Case{"POST", "/api/v1/device?device=kitchen&owner=alice", 200, "device.set", "ok"},
        Case{"POST", "/api/v1/namespaces?name=other", 201, "namespace.create", "ok"},
        Case{"POST", "/api/v1/namespaces?name=_own", 403, "namespace.create", "denied"},
        Case{"POST", "/api/v1/retention?select=kitchen&keep=99999d", 200, "retention.set", "ok"},
        Case{"DELETE", "/api/v1/retention?select=nothing", 404, "retention.clear", "not_found"},
        Case{"POST", "/api/v1/tokens?read=*/*", 201, "token.create", "ok"},
        Case{"GET", "/api/v1/retention", 200, "retention.list", "ok"},
        Case{"GET", "/api/v1/retention/preview?select=kitchen", 200, "retention.preview", "ok"},
        Case{"GET", "/api/v1/where?select=kitchen", 200, "where", "ok"},
        Case{"GET", "/api/v1/where?select=shed", 404, "where", "not_found"},
        Case{"GET", "/api/v1/erase/preview?select=kitchen", 200, "erase.preview", "ok"},
        Case{"GET", "/api/v1/erasures", 200, "erase.list", "ok"},
        Case{"GET", "/api/v1/audit/verify", 200, "audit.verify", "ok"}}) {
    CAPTURE(c.target);
    CHECK(f.administer(c.method, c.target).status == c.status);
    last = f.last_record();
    // What reads the log is in it too, behind what it read.
    if (last["operation"] == "audit.read") last = f.records("?desc=true&limit=3")[2];
    CHECK(last["operation"] == c.operation);
    CHECK(last["result"] == c.result);
  }
  const nlohmann::json verification = json_of(f.administer("GET", "/api/v1/audit/verify"));
  CHECK(verification["intact"] == true);
  CHECK(verification["records"].get<int>() > 20);
  const nlohmann::json status = json_of(f.administer("GET", "/api/v1/status"))["audit"];
  CHECK(status["acknowledged_means"] == "the record is durable before the answer");
  CHECK(status["mode"] == "strict");
  CHECK(status["sequence"].get<int>() > 20);
}

TEST_CASE("audit over HTTP: a change is recorded before it is made, and again with its result") {
  AuditRoom f;
  CHECK(f.administer("POST", "/api/v1/namespaces?name=other").status == 201);
  const nlohmann::json records = f.records();
  REQUIRE(records.size() == 2);
  CHECK(records[0]["result"] == "begun");
  CHECK(records[1]["result"] == "ok");
}

TEST_CASE("audit over HTTP: denials say who was denied what") {
  AuditRoom f;
  const nlohmann::json made = json_of(f.administer("POST", "/api/v1/tokens?read=kitchen/*"));
  const std::string token = made["token"], id = made["id"];
  CHECK(f.ask("GET", "/api/v1/last").status == 401);
  CHECK(f.last_record()["result"] == "denied");
  CHECK(f.last_record()["actor"] != net::loopback_host());  // who reads the log, over the socket
  CHECK(f.ask("POST", "/api/v1/readings", kReading, bearer(token)).status == 403);
  CHECK(f.ask("GET", "/api/v1/audit", {}, bearer(token)).status == 403);
  CHECK(f.ask("GET", "/api/v1/audit/verify", {}, bearer(token)).status == 403);
  CHECK(f.ask("GET", "/api/v1/last?select=shed/*", {}, bearer(token)).status == 403);
  std::vector<std::string> denied;
  for (const nlohmann::json& record : f.records()) {
    if (record["result"] != "denied") continue;
    denied.push_back(record["operation"].get<std::string>() + " " +
                     record["token"].get<std::string>());
  }
  CHECK(denied == std::vector<std::string>{"last ", "ingest " + id, "audit.read " + id,
                                           "audit.verify " + id, "last " + id});
}

TEST_CASE("audit over HTTP: no value, name of a device, owner, or secret is in the log") {
  AuditRoom f;
  const nlohmann::json made = json_of(f.administer("POST", "/api/v1/tokens?admin=true"));
  const std::string token = made["token"];
  const std::string header = bearer(token);
  CHECK(f.ask("POST", "/api/v1/readings", kReading, header).status == 200);
  CHECK(f.ask("POST", "/write", "needle-m,device=needle-d needle-f=\"needle-v\"", header).status ==
        204);
  CHECK(f.ask("PUT", "/api/v1/blob/default/needle-d/needle-s", "needle-v", header).status == 201);
  for (const char* target :
       {"/api/v1/query?select=needle-d/needle-s", "/api/v1/last?select=needle-*/*",
        "/api/v1/blob/default/needle-d/needle-s", "/api/v1/device?device=needle-d",
        "/api/v1/devices?owner=needle-o&label=needle-l=needle-l", "/query?q=SHOW+needle-q",
        "/api/v1/audit?device=needle-d", "/api/v1/query?select=needle-x&purpose=needle-p%20p"}) {
    CHECK(f.ask("GET", target, {}, header).status != 401);
  }
  for (const char* target :
       {"/api/v1/device?device=needle-d&owner=needle-o&label=needle-l=x&location=needle-l",
        "/api/v1/retention?select=needle-d/needle-s&keep=99999d",
        "/api/v1/retention?select=needle-d/needle-s&keep=needle-k%20k"}) {
    CHECK(f.ask("POST", target, {}, header).status != 401);
  }
  REQUIRE(f.audit->flush().ok());
  const auto all = f.engine.scan(f.audit->records(), {}, {});
  REQUIRE(all.ok());
  int entries = 0;
  for (; (*all)->valid(); (*all)->next(), ++entries) {
    const std::string bytes = std::string((*all)->key()) + std::string((*all)->value());
    for (const std::string& needle :
         {std::string("needle"), std::string("kitchen"), std::string("71717"), token.substr(15)}) {
      CHECK(bytes.find(needle) == std::string::npos);
    }
  }
  CHECK(entries > 15);
  // A device's records are found all the same by who knows its name.
  CHECK(f.records("?device=needle-d").size() >= 6);
}

TEST_CASE("audit over HTTP: strict, nothing is answered that was not recorded") {
  AuditRoom f;
  CHECK(f.ask("POST", "/api/v1/readings", kReading).status == 200);
  f.engine.fail_writes(io_error("gone"));
  CHECK(f.ask("GET", "/api/v1/last").status == 503);
  CHECK(f.ask("GET", "/api/v1/last").body.find("71717") == std::string::npos);
  CHECK(f.ask("POST", "/api/v1/namespaces?name=other").status == 503);
  CHECK_FALSE(f.catalog->has_namespace("other"));
  CHECK(f.ask("GET", "/api/v1/status").status == 200);
  f.engine.fail_writes(ok());
  CHECK(f.ask("GET", "/api/v1/last").status == 200);
}

TEST_CASE(
    "audit over HTTP: strict, a read that was refused after its record was made says so there") {
  AuditRoom f;
  std::string readings;
  for (int i = 0; i < 3'000; ++i) {
    readings += R"({"device":"kitchen","sensor":"temp","value":71717.25,"time":)" +
                std::to_string(i) + "}\n";
  }
  CHECK(f.ask("POST", "/api/v1/readings", readings).status == 200);
  // The last is too large to be held until its record is durable.
  constexpr std::array kReads = {"/api/v1/last", "/api/v1/query?select=kitchen/temp&limit=2",
                                 "/api/v1/query?select=shed/temp", "/api/v1/query"};
  f.engine.fail_writes(out_of_space("full"));
  for (const char* target : kReads) {
    CAPTURE(target);
    CHECK(f.ask("GET", target).status == 503);
  }
  CHECK(f.ask("POST", "/api/v1/namespaces?name=other").status == 503);
  f.engine.fail_writes(ok());
  CHECK(f.ask("GET", "/api/v1/series").status == 200);
  std::vector<std::string> told;
  for (const nlohmann::json& record : f.records()) {
    told.push_back(record["operation"].get<std::string>() + " " +
                   record["result"].get<std::string>());
  }
  CHECK(told == std::vector<std::string>{"ingest ok", "last unavailable", "query unavailable",
                                         "query unavailable", "query unavailable",
                                         "namespace.create unavailable", "series ok"});
}

TEST_CASE("audit over HTTP: a batch of many devices is in several records") {
  AuditRoom f;
  std::string lines;
  for (int i = 0; i < 150; ++i) {
    lines += "m,device=d" + std::to_string(i) + " a=1,b=2 5\n";
  }
  CHECK(f.ask("POST", "/write", lines).status == 204);
  std::vector<std::size_t> devices;
  int readings = 0;
  for (const nlohmann::json& record : f.records()) {
    if (record["operation"] != "ingest") continue;
    devices.push_back(record["devices"].size());
    readings += record["count"].get<int>();
  }
  CHECK(devices == std::vector<std::size_t>{64, 64, 22});
  CHECK(readings == 300);
}

TEST_CASE("audit over HTTP: a read by glob names the devices that it reached") {
  AuditRoom f;
  std::string lines = "m,device=kitchen a=1 5\nm,device=shed a=1 5\n";
  for (int i = 0; i < 70; ++i) lines += "m,device=d" + std::to_string(10 + i) + " a=1 5\n";
  REQUIRE(f.ask("POST", "/write", lines).status == 204);
  const auto reads_of = [&f](const char* device) {
    std::vector<std::string> selectors;
    for (const nlohmann::json& record : f.records("?device=" + std::string(device))) {
      // What asks here is recorded, too.
      if (record["operation"] == "ingest" || record["operation"] == "audit.read") continue;
      selectors.push_back(record["operation"].get<std::string>());
    }
    return selectors;
  };
  using Operations = std::vector<std::string>;
  CHECK(f.ask("GET", "/api/v1/query?select=kit*/*").status == 200);
  const nlohmann::json one = f.last_record();
  REQUIRE(one["devices"].size() == 1);
  CHECK(one["devices"][0]["device"] == "kitchen");
  CHECK(one["more_devices"] == 0);
  CHECK(reads_of("kitchen") == Operations{"query"});
  CHECK(reads_of("shed").empty());
  CHECK(reads_of("kitten").empty());

  CHECK(f.ask("GET", "/api/v1/series?select=s*/*").status == 200);
  CHECK(f.ask("GET", "/api/v1/devices?select=sh?d/*").status == 200);
  CHECK(f.ask("GET", "/api/v1/last?select=nothing*/*").status == 200);
  CHECK(f.ask("GET", "/api/v1/where?select=s*").status == 200);
  CHECK(f.administer("GET", "/api/v1/erase/preview?select=s*").status == 200);
  CHECK(reads_of("shed") == Operations{"series", "devices", "where", "erase.preview"});
  CHECK(reads_of("kitchen") == Operations{"query"});

  CHECK(f.ask("GET", "/api/v1/last?select=d*/*").status == 200);
  const nlohmann::json many = f.records("?desc=true&limit=1&device=d10")[0];
  CHECK(many["devices"].size() == 64);
  CHECK(many["more_devices"] == 6);
  // The last ones are in no record by name, but may be among those that were reached.
  CHECK(reads_of("d79") == Operations{"last"});
  CHECK(reads_of("shed") == Operations{"series", "devices", "where", "erase.preview", "last"});

  // Without a selector it is all of them.
  CHECK(f.ask("GET", "/api/v1/series").status == 200);
  const nlohmann::json all = f.last_record();
  CHECK(all["devices"].size() == 64);
  CHECK(all["more_devices"] == 8);
  CHECK(reads_of("kitchen") == Operations{"query", "last", "series"});
}

TEST_CASE("audit over HTTP: a batch of descriptions names its devices, in both records") {
  AuditRoom f;
  const auto changes_of = [&f](const char* device) {
    std::size_t changes = 0;
    for (const nlohmann::json& record : f.records("?device=" + std::string(device)))
      changes += record["operation"] == "device.set" ? 1u : 0u;
    return changes;
  };
  const auto described = [](int from, int to) {
    std::string body;
    for (int i = from; i < to; ++i)
      body += R"({"device":"d)" + std::to_string(i) + R"(","owner":"alice"})" + "\n";
    return body;
  };
  REQUIRE(f.ask("POST", "/api/v1/devices", described(10, 12)).status == 200);
  CHECK(changes_of("d10") == 2);
  CHECK(changes_of("d11") == 2);
  CHECK(changes_of("d12") == 0);
  // Beyond the limit they may be anybody.
  REQUIRE(f.ask("POST", "/api/v1/devices", described(100, 170)).status == 200);
  CHECK(changes_of("d100") == 2);
  CHECK(changes_of("d169") == 2);
  CHECK(changes_of("d12") == 2);
  // Nobody knows whom a body meant that is no description.
  REQUIRE(f.ask("POST", "/api/v1/devices", "{\"device\":").status == 400);
  CHECK(changes_of("d12") == 4);
}

TEST_CASE("audit over HTTP: who follows is told with the devices that were followed") {
  AuditRoom f;
  const Answer first = f.ask("GET", "/api/v1/tail?select=*/*");
  REQUIRE(first.status == 200);
  CHECK(f.ask("POST", "/api/v1/readings", kReading).status == 200);
  CHECK(
      f.ask("GET", "/api/v1/tail?select=*/*&cursor=" + first.header("x-edgecase-cursor")).status ==
      200);
  const nlohmann::json told = f.last_record();
  CHECK(told["operation"] == "tail");
  CHECK(told["count"] == 1);
  REQUIRE(told["devices"].size() == 1);
  CHECK(told["devices"][0]["device"] == "kitchen");
}

TEST_CASE(
    "audit over HTTP: what is asked again is told again, by whom and with what became of it") {
  AuditRoom f;
  for (int i = 0; i < 3; ++i)
    CHECK(f.ask("GET", "/api/v1/query?select=kitchen/temp").status == 404);
  CHECK(f.ask("POST", "/api/v1/readings", kReading).status == 200);
  CHECK(f.ask("GET", "/api/v1/query?select=kitchen/temp").status == 200);
  CHECK(f.administer("GET", "/api/v1/query?select=kitchen/temp").status == 200);
  std::vector<std::string> told;
  for (const nlohmann::json& record : f.records()) {
    if (record["operation"] != "query") continue;
    told.push_back(record["result"].get<std::string>() + " " +
                   record["actor"].get<std::string>().substr(0, 3));
  }
  CHECK(told == std::vector<std::string>{"not_found 127", "not_found 127", "not_found 127",
                                         "ok 127", "ok uid"});
}

TEST_CASE("audit over HTTP: whoever acts on a group by what is said is told with its devices") {
  AuditRoom f;
  REQUIRE(f.ask("POST", "/write", "m,device=meter a=1 5\nm,device=tv a=1 5\nm,device=shed a=1 5")
              .status == 204);
  for (const char* said : {"meter&owner=alice&label=floor=1", "tv&owner=alice", "shed&owner=bob"})
    REQUIRE(f.administer("POST", std::string("/api/v1/device?device=") + said).status == 200);
  struct Case {
    const char* method;
    const char* target;
    const char* operation;
    std::vector<std::string> devices;
  };
  for (const Case& c :
       {Case{"POST", "/api/v1/device?of_owner=alice&object=sale", "device.set", {"meter", "tv"}},
        Case{"POST", "/api/v1/retention?label=floor=1&keep=99999d", "retention.set", {"meter"}},
        Case{"DELETE", "/api/v1/retention?label=floor=1", "retention.clear", {"meter"}},
        Case{"GET", "/api/v1/erase/preview?object=sale", "erase.preview", {"meter", "tv"}},
        Case{"GET", "/api/v1/query?owner=bob&export=true", "export", {"shed"}}}) {
    CAPTURE(c.target);
    REQUIRE(f.administer(c.method, c.target).status == 200);
    const nlohmann::json last = f.last_record();
    CHECK(last["operation"] == c.operation);
    std::vector<std::string> devices;
    for (const nlohmann::json& each : last["devices"]) devices.push_back(each["device"]);
    CHECK(devices == c.devices);
  }
}

TEST_CASE("audit over HTTP: an owner's records are found, also when the devices are erased") {
  AuditRoom f;
  REQUIRE(f.ask("POST", "/write", "m,device=meter a=1 5").status == 204);
  REQUIRE(f.ask("POST", "/write", "m,device=shed a=1 5").status == 204);
  REQUIRE(f.administer("POST", "/api/v1/device?device=meter&owner=alice").status == 200);
  const auto operations_of = [&f](const std::string& owner) {
    std::string text;
    for (const nlohmann::json& record : f.records("?owner=" + owner)) {
      if (record["operation"] == "audit.read") continue;
      text += record["operation"].get<std::string>() + " ";
      for (const nlohmann::json& each : record["devices"])
        CHECK(each.value("owner", "alice") == "alice");
    }
    return text;
  };
  CHECK(operations_of("alice") == "ingest device.set device.set ");
  CHECK(f.records("?device=meter")[0]["devices"][0]["owner"] == "alice");
  CHECK_FALSE(f.records("?device=shed")[0]["devices"][0].contains("owner"));
  CHECK(operations_of("bob").empty());
  REQUIRE(f.administer("POST", "/api/v1/erase?owner=alice").status == 200);
  CHECK(operations_of("alice") == "ingest device.set device.set erase erase ");
  CHECK_FALSE(f.records("?owner=alice")[0]["devices"][0].contains("owner"));
  CHECK(f.administer("GET", "/api/v1/audit?owner=a/b").status == 400);
}

TEST_CASE("audit over HTTP: what is said of a device is told as it is by now, over and over") {
  AuditRoom f;
  REQUIRE(f.ask("POST", "/write?db=home", "m,device=meter a=1 5").status == 204);
  const auto told = [&f] { return f.records("?ns=home")[0]["devices"][0]; };
  for (int i = 0; i < 2; ++i) {
    CHECK(told()["device"] == "meter");
    CHECK_FALSE(told().contains("owner"));
  }
  for (const std::string owner : {"alice", "bob"}) {
    REQUIRE(f.administer("POST", "/api/v1/device?ns=home&device=meter&owner=" + owner).status ==
            200);
    for (int i = 0; i < 2; ++i) CHECK(told()["owner"] == owner);
  }
  SUBCASE("erased") {
    REQUIRE(f.administer("POST", "/api/v1/erase?ns=home&select=meter").status == 200);
  }
  SUBCASE("its namespace dropped") {
    REQUIRE(f.administer("DELETE", "/api/v1/namespaces?name=home").status == 200);
  }
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(told().contains("device"));
    CHECK_FALSE(told().contains("owner"));
  }
}

TEST_CASE("audit over HTTP: a report carries the head of the chain") {
  AuditRoom f;
  REQUIRE(f.ask("POST", "/api/v1/readings", kReading).status == 200);
  REQUIRE(f.administer("POST", "/api/v1/device?device=kitchen&owner=alice").status == 200);
  for (const char* target : {"/api/v1/report", "/api/v1/report?owner=alice"}) {
    const nlohmann::json head = json_of(f.administer("GET", target))["audit"];
    const std::uint64_t sequence = head["sequence"];
    CHECK(sequence > 2);
    REQUIRE(f.ask("GET", "/api/v1/last").status == 200);
    bool is_found = false;
    for (const nlohmann::json& record : f.records()) {
      if (record["sequence"] != sequence) continue;
      is_found = true;
      CHECK(record["hash"] == head["head"]);
    }
    CHECK(is_found);
  }
  CHECK_FALSE(json_of(ServerFixture().ask("GET", "/api/v1/report")).contains("audit"));
}

TEST_CASE("audit over HTTP: what is remembered of whose pseudonyms there are is set aside") {
  AuditRoom f;
  const auto set_aside = [&f] { return f.engine.stats().set_aside_bytes; };
  const auto add_devices = [&f](int first, int last) {
    std::string lines;
    for (int i = first; i < last; ++i) lines += "m,device=d" + std::to_string(i) + " v=1 5\n";
    REQUIRE(f.ask("POST", "/write", lines).status == 204);
  };
  add_devices(0, 19'000);
  const std::uint64_t before = set_aside();
  CHECK(f.records("?limit=1").size() == 1);
  CHECK(set_aside() >= before + 19'000 * 12);
  CHECK(set_aside() <= before + 19'000 * 40);
  // Devices that come later are told of, too.
  add_devices(19'000, 19'003);
  const nlohmann::json last = f.last_record();
  REQUIRE(last["devices"].size() == 3);
  for (const nlohmann::json& device : last["devices"]) CHECK(device.contains("device"));
}

TEST_CASE("audit over HTTP: a view of the page has one record a minute") {
  AuditRoom f;
  REQUIRE(f.ask("POST", "/api/v1/readings", kReading).status == 200);
  REQUIRE(f.ask("POST", "/api/v1/readings",
                R"({"namespace":"other","device":"hall","sensor":"temp","value":1,"time":5})")
              .status == 200);
  REQUIRE(f.ask("POST", "/api/v1/device?device=kitchen&owner=alice").status == 200);
  constexpr std::int64_t kMinuteNs = 60'000'000'000;
  f.clock.advance(kMinuteNs - f.clock.boot_ns() % kMinuteNs);
  const auto view = [&f](const char* page, const char* target) {
    const std::string header = std::string("X-EdgeCase-Page: ") + page + "\r\n";
    return f.ask("GET", target, {}, header).status;
  };
  const auto refresh = [&view](const char* page) {
    CHECK(view(page, "/api/v1/series?ns=*") == 200);
    CHECK(view(page, "/api/v1/query?ns=default&select=kitchen/temp&every=1s&agg=mean") == 200);
    CHECK(view(page, "/api/v1/query?ns=other&select=hall/temp&every=1s&agg=mean") == 200);
  };
  const auto of_page = [&f] {
    nlohmann::json found = nlohmann::json::array();
    for (const nlohmann::json& record : f.records("?limit=100"))
      if (record["operation"] == "page") found.push_back(record);
    return found;
  };
  for (int i = 0; i < 6; ++i) refresh("a");
  REQUIRE(of_page().size() == 1);
  CHECK(of_page()[0]["devices"][0]["device"] == "kitchen");
  CHECK(of_page()[0]["devices"][1]["device"] == "hall");
  refresh("b");
  CHECK(of_page().size() == 2);
  f.clock.advance(kMinuteNs);
  refresh("a");
  CHECK(of_page().size() == 3);
  REQUIRE(
      f.ask("POST", "/api/v1/readings", R"({"device":"new","sensor":"temp","value":1})").status ==
      200);
  for (int i = 0; i < 2; ++i) CHECK(view("a", "/api/v1/query?select=new/temp") == 200);
  CHECK(of_page().size() == 4);
  // What is no view of the page is recorded each time.
  const std::size_t before = f.records("?limit=1000").size();
  for (int i = 0; i < 2; ++i) {
    CHECK(view("a", "/api/v1/query?select=kitchen/temp&export=true") == 200);
    CHECK(view("a", "/api/v1/devices") == 200);
    CHECK(view("", "/api/v1/query?select=kitchen/temp") == 200);
    CHECK(view("a", "/api/v1/query?select=nothing/temp") == 404);
  }
  CHECK(f.records("?limit=1000").size() == before + 8 + 1);  // and that of reading the log
}

}  // namespace edgecase::http::test
