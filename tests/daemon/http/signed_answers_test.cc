#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "auth/hashing.h"
#include "daemon/http/http_fixture.h"
#include "report/compliance_report.h"
#include "sign/signature.h"

namespace edgecase::http::test {
namespace {

using Json = nlohmann::json;

struct ReportRoom : ServerFixture {
  explicit ReportRoom(void (*adjust)(config::Settings&) = nullptr) : ServerFixture(adjust) {
    CHECK(ask("POST", "/write",
              "m,device=meter value=1 1\nm,device=meter value=2 5\nm,device=lamp value=2 1\n"
              "m,device=tv value=3 1")
              .status == 204);
    set("meter", "owner=alice&purpose=billing,heating&object=marketing&label=kind=meter");
    set("tv", "owner=alice&location=attic");
    set("later", "owner=carol");
  }
  void set(const std::string& device, const std::string& parameters) const {
    CHECK(ask("POST", "/api/v1/device?device=" + device + "&" + parameters).status == 200);
  }
  // Over the Unix socket, as whoever administers does.
  Answer administer(std::string_view method, std::string_view target) const {
    return Client::over_unix(settings.http.socket).ask(method, target);
  }
  Json report(const std::string& parameters = "") const {
    const Answer answer = administer("GET", "/api/v1/report" + parameters);
    CHECK(answer.status == 200);
    return Json::parse(answer.body, nullptr, false);
  }
};

Json feature_of(const Json& report, const std::string& name) {
  for (const Json& feature : report["features"]) {
    if (feature["feature"] == name) return feature;
  }
  return {};
}

}  // namespace

TEST_CASE("report: what is stored of whom") {
  ReportRoom f;
  const Json report = f.report();
  CHECK(report["stored"]["devices"] == 3);
  CHECK(report["stored"]["readings"] == 4);
  CHECK(report["stored"]["oldest"] == "1970-01-01T00:00:00.000000001Z");
  CHECK(report["stored"]["newest"] == "1970-01-01T00:00:00.000000005Z");
  CHECK(report["stored"]["owners"] == 1);
  CHECK(report["stored"]["devices_without_owner"] == 1);
  REQUIRE(report["owners"].size() == 1);
  CHECK(report["owners"][0]["owner"] == "alice");
  CHECK(report["owners"][0]["devices"] == 2);
  CHECK(report["owners"][0]["readings"] == 3);
  CHECK(report["features"].size() == 6);
  CHECK(report["erasures"].empty());
  CHECK(f.administer("POST", "/api/v1/erase?owner=alice").status / 100 == 2);
  CHECK(f.report()["erasures"].size() == 1);
  CHECK(f.report()["erasures"][0]["series"] == 2);
  CHECK(f.report()["stored"]["devices"] == 1);
  CHECK(f.administer("GET", "/api/v1/report?owner=alice").status == 404);
}

TEST_CASE("report: degrees follow what is configured and said") {
  ReportRoom f;
  CHECK(feature_of(f.report(), "timely deletion")["capability"] == "partial");
  CHECK(feature_of(f.report(), "timely deletion")["response"] == "eventual");
  CHECK(f.ask("POST", "/api/v1/retention?ns=*&select=*/*&keep=36500d&yes=true").status == 200);
  CHECK(feature_of(f.report(), "timely deletion")["capability"] == "full");
  CHECK(f.report()["retention"] ==
        Json::array({{{"namespace", "*"}, {"select", "*/*"}, {"keep", "36500d"}}}));

  CHECK(feature_of(f.report(), "indexing via metadata")["capability"] == "partial");
  f.set("lamp", "owner=bob&location=hall");
  CHECK(feature_of(f.report(), "indexing via metadata")["capability"] == "full");
  CHECK(feature_of(f.report(), "managing data location")["capability"] == "partial");
  f.set("meter", "location=cellar");
  CHECK(feature_of(f.report(), "managing data location")["missing"].get<std::string>().starts_with(
      "where the drives are"));

  CHECK(feature_of(f.report(), "access control")["capability"] == "partial");
  CHECK(f.administer("POST", "/api/v1/tokens?read=*/*").status == 201);
  CHECK(feature_of(f.report(), "access control")["capability"] == "full");
  CHECK(feature_of(f.report(), "encryption")["capability"] == "partial");
}

TEST_CASE("report: it is known where drives are and data may be, and no backup goes elsewhere") {
  ReportRoom f([](config::Settings& settings) {
    settings.storage.metadata_location = "de";
    settings.storage.values_location = "fr";
    settings.storage.locations = "de,fr";
  });
  f.set("lamp", "location=hall");
  f.set("meter", "location=cellar");
  const Json report = f.report();
  CHECK(feature_of(report, "managing data location")["capability"] == "full");
  CHECK(report["settings"]["storage.locations"] == "de,fr");
  CHECK(f.administer("POST", "/api/v1/backups").status == 403);
  CHECK(f.administer("POST", "/api/v1/backups?location=us").status == 403);
  CHECK(f.administer("POST", "/api/v1/backups?location=fr").status == 201);
}

TEST_CASE("report: it is signed, with the head of the audit log, and says so there") {
  ReportRoom f([](config::Settings& settings) { settings.audit.mode = "strict"; });
  for (const char* parameters : {"", "?owner=alice"}) {
    CAPTURE(parameters);
    Json report = f.report(parameters);
    const auto signer = sign::check_signature(report);
    REQUIRE(signer.ok());
    CHECK(signer->public_key ==
          json_of(f.administer("GET", "/api/v1/report/key"))["public_key"].get<std::string>());
    const std::string head = "sequence=" + std::to_string(report["audit"]["sequence"].get<int>()) +
                             "&head=" + report["audit"]["head"].get<std::string>();
    Json verified = json_of(f.administer("GET", "/api/v1/audit/verify?" + head));
    CHECK(verified["intact"] == true);
    CHECK_FALSE(verified.contains("unchecked"));
    const Json told = json_of(f.administer("GET", "/api/v1/audit"))["records"];
    const std::string text = sign::signed_text(report);
    const std::string hash = auth::hex_text(auth::view_of(auth::sha256(text)));
    CHECK(told.dump().find(hash) != std::string::npos);
    CHECK(told.dump().find("fingerprint " + signer->fingerprint) != std::string::npos);
    report["made"] = "2020-01-01T00:00:00Z";
    CHECK(sign::check_signature(report).status().code() == StatusCode::Corruption);
  }
  CHECK(json_of(f.administer("GET", "/api/v1/audit/verify?sequence=1&head=" +
                                        std::string(64, '0')))["intact"] == false);
  CHECK(json_of(f.administer("GET", "/api/v1/audit/verify?sequence=999&head=" +
                                        std::string(64, '0')))["intact"] == false);
  const Json cut =
      json_of(f.administer("GET", "/api/v1/audit/verify?sequence=0&head=" + std::string(64, '0')));
  CHECK(cut["intact"] == true);
  CHECK(cut["unchecked"].get<std::string>().starts_with("record 0 is not kept any more"));
  CHECK(f.administer("GET", "/api/v1/audit/verify?sequence=1").status == 400);
  CHECK(
      f.administer("GET", "/api/v1/audit/verify?sequence=x&head=" + std::string(64, '0')).status ==
      400);
}

TEST_CASE("report: what a full drive lets nobody sign is told all the same, and says why") {
  ReportRoom f;
  f.engine.fail_writes(out_of_space("full"));
  Json report = f.report();
  CHECK(report["stored"]["readings"] == 4);
  CHECK(report["unsigned"].get<std::string>().find("full") != std::string::npos);
  CHECK(sign::check_signature(report).status().code() == StatusCode::InvalidArgument);
  CHECK(f.administer("GET", "/api/v1/report/key").status == 503);
  f.engine.fail_writes(ok());
  report = f.report();
  CHECK(sign::check_signature(report).ok());
  CHECK_FALSE(report.contains("unsigned"));
}

TEST_CASE("report of an owner: more devices than are held at once, signed as a whole") {
  ReportRoom f;
  constexpr std::size_t kDevices = 1'100;
  std::string lines, described;
  for (std::size_t i = 0; i < kDevices; ++i) {
    const std::string device = "d" + std::to_string(10'000 + i);
    lines += "m,device=" + device + " value=1 1\n";
    described += R"({"device":")" + device + R"(","owner":"bob"})" + "\n";
  }
  REQUIRE(f.ask("POST", "/write", lines).status == 204);
  REQUIRE(f.ask("POST", "/api/v1/devices", described).status == 200);
  const Json report = f.report("?owner=bob");
  CHECK(sign::check_signature(report).ok());
  REQUIRE(report["devices"].size() == kDevices);
  for (std::size_t i = 0; i < kDevices; ++i) {
    const Json& device = report["devices"][i];
    CHECK(device["device"] == "d" + std::to_string(10'000 + i));
    REQUIRE(device["series"].size() == 1);
    CHECK(device["series"][0]["readings"] == 1);
  }
}

TEST_CASE("report of an owner: it ends before its signature where what it tells has changed") {
  ReportRoom f;
  const report::ReportParts parts{f.settings, f.engine,     f.clock,   *f.catalog, *f.devices,
                                  *f.queries, *f.retention, *f.tokens, *f.erase};
  const auto report = std::make_shared<const report::OwnerReport>(
      report::ComplianceReport(parts).of_owner("alice", [](const catalog::DeviceName&) {}).value());
  const auto write = [](report::OwnerReportText& text) -> Status {
    std::string written;
    while (true) {
      const Result<bool> has_more = text.fill(written);
      if (!has_more.ok()) return has_more.status();
      if (!*has_more) return ok();
    }
  };
  report::OwnerReportText sorted(parts, report, report::MemberOrder::Sorted);
  REQUIRE(write(sorted).ok());
  const auto told_again = [&] {
    report::OwnerReportText text(parts, report, report::MemberOrder::AsTold);
    text.expect_devices(sorted.devices_digest());
    return write(text).code();
  };
  CHECK(told_again() == StatusCode::Ok);
  f.set("tv", "location=hall");
  CHECK(told_again() == StatusCode::Busy);
  f.set("tv", "location=attic");
  CHECK(told_again() == StatusCode::Ok);
  f.set("tv", "owner=bob");
  CHECK(told_again() == StatusCode::Busy);
}

TEST_CASE("report of an owner: who said when what readings may be used for") {
  ReportRoom f;
  f.clock.advance(1'000'000'000);
  f.set("meter", "purpose=billing");
  f.set("meter", "location=attic");
  const Json report = f.report("?owner=alice");
  const Json& consents = report["devices"][0]["consents"];
  REQUIRE(consents.size() == 2);
  CHECK(consents[0]["purposes"] == Json{"billing", "heating"});
  CHECK(consents[0]["objections"] == Json::array({"marketing"}));
  CHECK(consents[1]["purposes"] == Json::array({"billing"}));
  CHECK(consents[1]["by"] == net::loopback_host());
  CHECK(consents[0]["since"].get<std::string>() < consents[1]["since"].get<std::string>());
  // The next owner is not told what was said before.
  f.set("meter", "owner=bob");
  CHECK(f.report("?owner=bob")["devices"][0]["consents"].size() == 1);
}

TEST_CASE("report: exact expiry is real-time, a network without TLS is no encryption") {
  ReportRoom f([](config::Settings& settings) {
    settings.storage.expiry = "exact";
    settings.mqtt.broker = "mqtt://192.0.2.1:1883";
  });
  CHECK(feature_of(f.report(), "timely deletion")["response"] == "real-time");
  const Json encryption = feature_of(f.report(), "encryption");
  CHECK(encryption["capability"] == "none");
  CHECK(encryption["missing"].get<std::string>().ends_with("mqtt.broker"));
}

TEST_CASE("report of an owner: devices, purposes, retention, and who may read it") {
  ReportRoom f;
  CHECK(f.administer("POST", "/api/v1/retention?select=meter/*&keep=36500d").status == 200);
  const Answer made = f.administer("POST", "/api/v1/tokens?read=meter/*&purpose=billing");
  CHECK(f.administer("POST", "/api/v1/tokens?read=lamp/*").status == 201);
  const Json report = f.report("?owner=alice");
  CHECK(report["stored"]["readings"] == 3);
  REQUIRE(report["devices"].size() == 2);
  const Json& meter = report["devices"][0];
  CHECK(meter["device"] == "meter");
  CHECK(meter["purposes"] == Json{"billing", "heating"});
  CHECK(meter["objections"] == Json::array({"marketing"}));
  CHECK(meter["labels"] == Json{{"kind", "meter"}});
  REQUIRE(meter["series"].size() == 1);
  CHECK(meter["series"][0]["readings"] == 2);
  CHECK(meter["series"][0]["keep"] == "36500d");
  CHECK(report["devices"][1]["series"][0]["keep"] == "forever");
  REQUIRE(report["recipients"].size() == 1);
  CHECK(report["recipients"][0]["token"] == Json::parse(made.body)["id"]);
  CHECK(report["recipients"][0]["purpose"] == "billing");
  CHECK(report["automated_decisions"] == false);
  CHECK(f.administer("POST", "/api/v1/device?device=tv&label=automated-decisions=yes").status ==
        200);
  CHECK(f.report("?owner=alice")["automated_decisions"] == true);
  // Known, though nothing was ever stored.
  CHECK(f.report("?owner=carol")["stored"]["readings"] == 0);
  CHECK(f.administer("GET", "/api/v1/report?owner=nobody").status == 404);
  CHECK(f.administer("GET", "/api/v1/report?owner=").status == 400);
  CHECK(f.administer("GET", "/api/v1/report?who=alice").status == 400);
}

TEST_CASE("export of an owner: all of it whatever the purposes, for administrators alone") {
  ReportRoom f;
  const std::string path = "/api/v1/query?ns=*&format=line&owner=alice";
  const std::string head = "# DML\n# CONTEXT-DATABASE: default\n";
  CHECK(f.administer("GET", path).body ==
        head + "m,device=meter value=1 1\nm,device=meter value=2 5\nm,device=tv value=3 1\n");
  CHECK(f.administer("GET", path + "&select=tv").body == head + "m,device=tv value=3 1\n");
  CHECK(f.administer("GET", "/api/v1/query?owner=nobody").status == 404);
  CHECK(f.administer("GET", "/api/v1/query?owner=").status == 400);
  const Answer made = f.administer("POST", "/api/v1/tokens?read=*/*&export=*/*");
  const std::string shown = bearer(json_of(made).value("token", ""));
  CHECK(f.ask("GET", path, {}, shown).status == 403);
  CHECK(f.ask("GET", "/api/v1/report", {}, shown).status == 403);
}

}  // namespace edgecase::http::test
