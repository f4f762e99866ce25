#include "answers.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace edgecase::cli {
namespace {

using Json = nlohmann::ordered_json;

// As a daemon without anything wrong answers.
Json healthy() {
  return Json::parse(R"({
    "version": "0.1.0", "uptime_seconds": 3725.5, "ready": true, "reason": null,
    "clock": {"now": "2025-11-20T14:00:00Z", "trusted": true, "synchronised": true},
    "drives": {
      "metadata": {"path": "/nvme", "total_bytes": 2147483648, "free_bytes": 1073741824,
                   "live_bytes": 1024, "file_system": "ext4", "degraded": null},
      "values": {"path": "/ssd", "total_bytes": 0, "free_bytes": 0, "live_bytes": 2048,
                 "file_system": "xfs", "degraded": null}},
    "erasure": {"level": "physical", "level_why": null},
    "rates": {"readings_per_second": 1.25, "readings": 1234567,
              "not_stored": {"expired": 0, "replaced": 0, "erased": 0, "evicted": 0}},
    "wal": {"bytes": 0, "limit_bytes": 268435456},
    "memory": {"resident_bytes": 13631488, "limit_bytes": 67108864},
    "expiry": {"default": "90d", "rules": 1},
    "eviction": {"on_full": "reject", "blocked": null},
    "scrub": {"damaged": []},
    "catalog": {"namespaces": 1, "devices": 2, "series": 3},
    "mqtt": {"broker": "", "connected": false},
    "audit": {"failure": null, "lost": 0}})");
}

Json with(const char* path, Json value) {
  Json status = healthy();
  status[Json::json_pointer(path)] = std::move(value);
  return status;
}

bool tells(const std::vector<std::string>& problems, const std::string& words) {
  return std::any_of(problems.begin(), problems.end(), [&](const std::string& each) {
    return each.find(words) != std::string::npos;
  });
}

TEST_CASE("a daemon of which nothing is wrong is told in ten lines") {
  CHECK(status_problems(healthy()).empty());
  CHECK(status_summary(healthy()) ==
        "EdgeCase 0.1.0, up 1h, ready, all is well\n"
        "stored    3 series of 2 devices in 1 namespace\n"
        "taken in  1.25/s, 1,234,567 readings since the start\n"
        "metadata  /nvme: 1 GiB free of 2 GiB, 1 KiB in use, ext4\n"
        "values    /ssd, 2 KiB in use, xfs\n"
        "memory    13 MiB of 64 MiB; log 0 B of 256 MiB\n"
        "kept      90d, 1 rule; when full: reject\n"
        "erasing   physical\n"
        "mqtt      no broker, no listener\n"
        "clock     2025-11-20T14:00:00Z, synchronised\n");
}

TEST_CASE("each thing that is wrong is a sentence") {
  struct Wrong {
    const char* path;
    Json value;
    const char* words;
  };
  const Wrong rows[] = {
      {"/ready", false, "takes no writes"},
      {"/drives/metadata/degraded", "full", "metadata drive is degraded: full"},
      {"/drives/values/degraded", "away", "values drive is degraded: away"},
      {"/audit/failure", "no space", "audit log fails: no space"},
      {"/audit/lost", 2u, "2 records of the audit log"},
      {"/eviction/blocked", "a reader", "no room can be made: a reader"},
      {"/clock/trusted", false, "clock is not trusted"},
      {"/clock/expiry_waits", "jump", "clock leapt"},
      {"/mqtt",
       {{"broker", "mqtt://x"}, {"connected", false}, {"last_error", "refused"}},
       "not connected to the broker mqtt://x: refused"},
      {"/mqtt/subscriptions_refused", 1u, "refuses 1 subscription:"},
      {"/mqtt/rejected", 1u, "1 message was not understood"},
      {"/mqtt/listener", {{"rejected", 3u}}, "3 messages were not understood"},
      {"/scrub/damaged",
       Json::parse(R"([{"path": "/ssd/7.val", "problem": "checksum", "lost_more": true,
                        "lost": [{"device": "d", "sensor": "s", "from": "A", "to": "B"}]}])"),
       "damaged: /ssd/7.val: checksum; lost d/s from A to B and others"},
  };
  for (const Wrong& row : rows) {
    CAPTURE(row.path);
    const auto problems = status_problems(with(row.path, row.value));
    CHECK(problems.size() == 1);
    CHECK(tells(problems, row.words));
    CHECK(status_summary(with(row.path, row.value)).find("all is well") == std::string::npos);
  }
}

TEST_CASE("the page keeps to its lines, however much is wrong, and none holds an escape") {
  Json status = healthy();
  status["ready"] = false;
  status["reason"] = "a\x1b[2J\nb";
  for (const char* const drive : {"metadata", "values"})
    status["drives"][drive]["degraded"] = "full";
  for (int i = 0; i < 100; ++i) {
    status["scrub"]["damaged"].push_back({{"path", std::to_string(i)}, {"problem", "gone"}});
  }
  const std::string page = status_summary(status);
  CHECK(static_cast<std::size_t>(std::count(page.begin(), page.end(), '\n')) == kSummaryLinesMax);
  CHECK(page.find('\x1b') == std::string::npos);
  CHECK(page.find("! and 100 more: edgecase status -v\n") != std::string::npos);
}

TEST_CASE("a document that holds nothing, or other kinds, is no reason to end") {
  CHECK(status_problems(Json::object()).empty());
  CHECK_FALSE(status_summary(Json::object()).empty());
  Json odd = healthy();
  for (auto& [name, value] : odd.items())
    value = name == "scrub" ? Json{{"damaged", {1, "x"}}} : Json(7);
  CHECK(status_problems(odd).empty());
  CHECK_FALSE(status_summary(odd).empty());
}

}  // namespace
}  // namespace edgecase::cli
