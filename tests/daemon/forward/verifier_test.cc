#include "forward/forwarding.h"

#include <doctest/doctest.h>

#include <functional>

#include "forward/http_client.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::forward {
namespace {

// A target that answers every question by one function of its path.
struct AnsweringTarget final : Asked {
  std::function<std::pair<int, std::string>(const std::string& path)> answer;
  std::size_t most_bytes = SIZE_MAX;  // of an answer that is taken
  std::size_t asked = 0;

  Answer ask(const std::string&, const std::string& path, HttpAnswer& http) override {
    ++asked;
    const auto [status, body] = answer(path);
    http = {};
    http.status = status;
    http.body = body.substr(0, most_bytes);
    http.is_cut = body.size() > most_bytes;
    if (status >= 500) return {.verdict = Verdict::Later, .status = status, .why = "busy"};
    return {.status = status};
  }
};

struct VerifierBench {
  VerifierBench() : catalog(std::move(catalog::Catalog::open(engine, {})).value()) {
    settings.name = "hub";
    settings.to = "edgecase+http://127.0.0.1:1";
    settings.select = {"*/*"};
    request.is_refused = [](const Place&) -> Result<bool> { return false; };
    request.upto = UINT64_MAX;
  }
  void store(const char* device, const char* sensor, std::int64_t time_ns, std::string text = "") {
    wire::Reading reading{.namespace_name = "default",
                          .device = device,
                          .sensor = sensor,
                          .time_ns = time_ns,
                          .value = wire::Value::of_float64(1.5)};
    if (!text.empty()) reading.value = wire::Value::of_text(text);
    std::vector<catalog::SeriesId> ids;
    catalog::CatalogAdditions additions;
    REQUIRE(catalog->resolve({&reading, 1}, ids, additions).ok());
    WriteBatch batch;
    additions.append_to(batch);
    Bytes value;
    wire::append_value(reading.value, value);
    batch.put(ids[0].namespace_id, wire::make_reading_key({ids[0].device, ids[0].sensor, time_ns}),
              value);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    catalog->confirm(additions);
  }
  Result<VerifyPage> verify() {
    Verifier verifier(engine, *catalog, clock, target, settings,
                      config::parse_forward(settings).value(), shape);
    return verifier.page(request);
  }

  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog;
  AnsweringTarget target;
  config::ForwardSettings settings;
  VerifyRequest request;
  Shape shape;
};

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kHourNs = 3600 * kSecondNs;

// As an EdgeCase answers it.
std::string line(std::int64_t time_ns) {
  std::string text;
  wire::ReadingFormatter(wire::ReadingFormat::Ndjson)
      .reading({.namespace_name = "default",
                .device = "a",
                .sensor = "x",
                .time_ns = time_ns,
                .value = wire::Value::of_float64(1.5)},
               text);
  return text;
}

TEST_CASE("verifier: what the target does not answer is missing, by hours") {
  VerifierBench bench;
  bench.store("a", "x", kSecondNs);
  bench.store("a", "x", kHourNs + 1);
  bench.store("a", "x", kHourNs + 2);
  bench.target.answer = [](const std::string&) {
    return std::pair(200, line(kSecondNs) + line(9 * kSecondNs));
  };
  const auto page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == 3);
  CHECK(page->missing == 2);
  REQUIRE(page->hours.size() == 1);
  CHECK(page->hours[0].device == "a");
  CHECK(page->hours[0].begin_ns == kHourNs);
  CHECK(page->hours[0].here == 2);
  CHECK(page->hours[0].missing == 2);
  CHECK(page->again.size() == 2);
  CHECK(is_missing(page->again[0]));
  CHECK(page->next.empty());
}

TEST_CASE("verifier: another value of the same time is missing") {
  VerifierBench bench;
  bench.store("a", "x", kSecondNs);
  bench.target.answer = [](const std::string&) { return std::pair(200, line(kSecondNs)); };
  CHECK(bench.verify()->missing == 0);
  bench.store("a", "x", kSecondNs, "corrected");
  CHECK(bench.verify()->missing == 1);
}

TEST_CASE("verifier: what may not be shown yet is missing once it has settled") {
  VerifierBench bench;
  bench.store("a", "x", kSecondNs);
  bench.request.shown = bench.engine.committed();
  bench.store("a", "x", 2 * kSecondNs);
  int looks = 0;
  bench.request.wait = [&](std::int64_t duration_ns) {
    ++looks;
    bench.clock.advance(duration_ns);
    return true;
  };
  int shown_after = 3;
  bench.target.answer = [&](const std::string&) {
    return std::pair(200,
                     looks < shown_after ? line(kSecondNs) : line(kSecondNs) + line(2 * kSecondNs));
  };
  auto page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == 2);
  CHECK(page->missing == 0);
  CHECK(looks == 3);
  // The page ends, and the next one begins with it.
  shown_after = 1'000'000;
  page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == 0);
  CHECK(page->missing == 0);
  REQUIRE(!page->next.empty());
  bench.request.behind = page->next;
  bench.request.shown = bench.engine.committed();
  page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == 2);
  CHECK(page->missing == 1);
  CHECK(page->next.empty());
  bench.request.behind.clear();
  bench.request.shown = 0;
  bench.request.wait = [](std::int64_t) { return false; };
  CHECK(bench.verify().status().code() == StatusCode::Unavailable);
}

TEST_CASE("verifier: an answer that is longer than is taken is asked for in parts") {
  VerifierBench bench;
  constexpr int kReadings = 64;
  for (int i = 0; i < kReadings; ++i) bench.store("a", "x", i * kSecondNs);
  // As many lines as the range has seconds; one second has very many.
  const auto answer = [&](std::size_t of_second_5) {
    return [of_second_5](const std::string& path) {
      const auto second_at = [&path](const char* key) {
        const std::size_t at = path.find(key) + std::string_view(key).size();
        return std::stoi(path.substr(at + std::string_view("1970-01-01T00%3A").size(), 2)) * 60 +
               std::stoi(path.substr(at + std::string_view("1970-01-01T00%3A00%3A").size(), 2));
      };
      std::string body;
      for (int i = second_at("&from="); i <= second_at("&to="); ++i)
        for (std::size_t n = 0; n < (i == 5 ? of_second_5 : 1); ++n) body += line(i * kSecondNs);
      return std::pair(200, body);
    };
  };
  bench.target.most_bytes = 10 * line(0).size();
  bench.target.answer = answer(1);
  auto page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == kReadings);
  CHECK(page->missing == 0);
  CHECK(bench.target.asked > 7);
  bench.target.answer = answer(50);
  page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == kReadings - 1);
  CHECK(page->missing == 0);
  CHECK(page->unchecked == 1);
}

TEST_CASE("verifier: what is not to be there is not asked for") {
  VerifierBench bench;
  bench.store("a", "x", kSecondNs);
  bench.request.after = bench.engine.committed();
  bench.store("a", "y", kSecondNs);
  bench.request.upto = bench.engine.committed();
  bench.store("a", "z", kSecondNs);
  std::vector<std::string> paths;
  bench.target.answer = [&](const std::string& path) {
    paths.push_back(path);
    return std::pair(404, std::string("{}"));
  };
  const auto page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == 1);
  REQUIRE(paths.size() == 1);
  CHECK(paths[0].find("select=a%2Fy") != std::string::npos);
  bench.request.is_refused = [](const Place&) -> Result<bool> { return true; };
  const auto refused = bench.verify();
  CHECK(refused->missing == 0);
  CHECK(refused->refused == 1);
  CHECK(refused->again.empty());
}

TEST_CASE("verifier: pages go on where one ended, and new series come behind") {
  VerifierBench bench;
  bench.store("b", "x", kSecondNs);
  bench.store("b", "y", kSecondNs);
  bench.target.answer = [&](const std::string&) {
    bench.clock.advance(2 * Verifier::kPageNs);
    return std::pair(200, std::string());
  };
  auto page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->missing == 1);
  REQUIRE(!page->next.empty());
  bench.store("a", "new", kSecondNs);  // before the others by name
  std::size_t missing = page->missing;
  while (!page->next.empty()) {
    bench.request.behind = page->next;
    page = bench.verify();
    REQUIRE(page.ok());
    missing += page->missing;
  }
  CHECK(missing == 3);
  for (const char* bad : {":", "x", "1", "1:", "1:x", "-1:1", "99999999999:1"}) {
    bench.request.behind = bad;
    CHECK(bench.verify().status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("verifier: a target that cannot be asked is told in a word") {
  VerifierBench bench;
  bench.store("a", "x", kSecondNs);
  const auto answer_with = [&](int status) {
    bench.target.answer = [status](const std::string&) {
      return std::pair(status, std::string("<html>"));
    };
    return bench.verify().status().code();
  };
  CHECK(answer_with(403) == StatusCode::NotAllowed);
  CHECK(answer_with(503) == StatusCode::Unavailable);
  CHECK(answer_with(302) == StatusCode::Unavailable);
  bench.settings.to = "influx+http://127.0.0.1:1";
  bench.settings.bucket = "b";
  bench.settings.org = "o";
  CHECK(answer_with(200) == StatusCode::Unsupported);
}

TEST_CASE("verifier: a thinned target is asked for columns of windows that went whole") {
  VerifierBench bench;
  bench.shape.every_ns = kSecondNs;
  bench.store("a", "x", 1);
  bench.store("a", "x", kSecondNs + 1);
  bench.request.upto = bench.engine.committed();
  bench.store("a", "x", kSecondNs + 2);  // not sent yet, so of that window nothing is known
  std::vector<std::string> paths;
  bench.target.answer = [&](const std::string& path) {
    paths.push_back(path);
    return std::pair(200, std::string());
  };
  const auto page = bench.verify();
  REQUIRE(page.ok());
  CHECK(page->readings == 7);
  CHECK(page->missing == 7);
  CHECK(paths.size() == 7);
  CHECK(paths[0].find("select=a%2Fx.value_count") != std::string::npos);
  bench.shape.salt = Bytes(32, 's');
  paths.clear();
  REQUIRE(bench.verify().ok());
  CHECK(paths[0].find("select=" + Pseudonyms(bench.shape.salt).of("default", "a")) !=
        std::string::npos);
}

}  // namespace
}  // namespace edgecase::forward
