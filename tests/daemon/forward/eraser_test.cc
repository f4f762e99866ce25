#include "forward/eraser.h"

#include <doctest/doctest.h>

#include <set>

#include "forward/http_client.h"

namespace edgecase::forward {
namespace {

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return out;
}

// A target by rules: the first whose words are in the path answers.
struct ScriptedErasing final : Asked {
  struct Rule {
    std::string words;
    int status = 200;
    std::string body = {};
    std::string left_out = {};
  };
  std::string influx_version;
  std::vector<Rule> rules;
  std::vector<std::string> asked;  // paths, decoded

  Answer ask(const std::string& method, const std::string& path, HttpAnswer& http) override {
    const std::string text = method + " " + decoded(path);
    asked.push_back(text);
    http = {};
    http.influx_version = influx_version;
    http.status = 404;
    for (const Rule& each : rules) {
      if (text.find(each.words) == std::string::npos) continue;
      http.status = each.status;
      http.body = each.body;
      http.left_out = each.left_out;
      break;
    }
    if (http.status >= 500) return {.verdict = Verdict::Later, .status = http.status};
    return {.status = http.status};
  }
  bool was_asked(const std::string& words) const {
    for (const std::string& each : asked)
      if (each.find(words) != std::string::npos) return true;
    return false;
  }
};

struct EraserBench {
  explicit EraserBench(const char* to, const char* select = "*:*/*") {
    settings.name = "t";
    settings.to = to;
    settings.select = {select};
    eraser.emplace(scripted, settings, config::parse_forward(settings).value());
  }
  Answer erase(const std::vector<ErasedName>& names) {
    return eraser->erase(
        order, names, [](const auto&) { return ok(); }, result);
  }

  ScriptedErasing scripted;
  config::ForwardSettings settings;
  std::optional<Eraser> eraser;
  ErasureOrder order{.number = 1, .has_all_times = true, .fence_to_ns = 5'000'000'000};
  TargetErasure result;
};

ErasedName device(const char* name) {
  return {.is_device = true, .namespace_name = "default", .device = name};
}

ErasedName series(const char* of, const char* measurement, const char* field,
                  wire::Identity::Tags tags = {}) {
  if (tags.empty()) tags = {{"host", of}};
  return {.namespace_name = "default",
          .device = of,
          .sensor = std::string(measurement) + "." + field,
          .identity = wire::encode_identity({measurement, std::move(tags), field})};
}

constexpr char kEdgeCase[] = "edgecase+http://127.0.0.1:1";
constexpr char kInflux[] = "influx+http://127.0.0.1:1";
constexpr char kNotFound[] = R"({"error":{"code":"not_found","message":"m"}})";

TEST_CASE("eraser: what has gone here is asked of an EdgeCase, and is not possible elsewhere") {
  ErasedName gone = device("a");
  gone.is_gone = true;
  EraserBench whole(kEdgeCase);
  whole.scripted.rules = {{"/api/v1/erase?", 404, kNotFound}};
  REQUIRE(whole.erase({gone}).verdict == Verdict::Taken);
  CHECK(whole.scripted.was_asked("select=a&"));
  CHECK(whole.result.step == ErasureStep::Confirmed);
  EraserBench part(kEdgeCase, "*:*/temp");
  REQUIRE(part.erase({gone}).verdict == Verdict::Taken);
  CHECK(part.scripted.asked.empty());
  CHECK(part.result.step == ErasureStep::NotPossible);
  EraserBench influx(kInflux);
  influx.scripted.influx_version = "1.8.10";
  REQUIRE(influx.erase({gone}).verdict == Verdict::Taken);
  CHECK_FALSE(influx.scripted.was_asked("DROP"));
  CHECK(influx.result.step == ErasureStep::NotPossible);
}

TEST_CASE("eraser: an EdgeCase is asked by the same names, and for the same fence") {
  EraserBench bench(kEdgeCase);
  bench.scripted.rules = {{"/api/v1/erase?", 202, R"({"id":7,"state":"pending"})"},
                          {"/api/v1/erasures?id=7", 200, R"({"state":"pending"})"}};
  ErasedName whole = series("a*", "m", "f");
  whole.is_of_device = true;
  REQUIRE(bench.erase({device("a*"), whole, series("b", "m", "f")}).verdict == Verdict::Taken);
  REQUIRE(bench.scripted.asked.size() == 1);
  CHECK(bench.scripted.asked[0] ==
        "POST /api/v1/erase?ns=default&select=a\\*&select=b/m.f"
        "&fence_to=1970-01-01T00:00:05.000000000Z&wait=1s");
  CHECK(bench.result.step == ErasureStep::Requested);
  CHECK(bench.result.certificates == std::vector<std::uint64_t>{7});
  CHECK(bench.eraser->look(bench.result).verdict == Verdict::Later);
  bench.scripted.rules[1].body = R"({"state":"done"})";
  CHECK(bench.eraser->look(bench.result).verdict == Verdict::Taken);
  CHECK(bench.result.step == ErasureStep::Confirmed);
}

TEST_CASE("eraser: what an EdgeCase answers decides") {
  struct Case {
    int status;
    const char* body;
    const char* left_out;
    Verdict verdict;
    ErasureStep step;
  };
  for (const Case& c :
       {Case{200, R"({"id":7,"state":"done"})", "", Verdict::Taken, ErasureStep::Confirmed},
        Case{404, kNotFound, "", Verdict::Taken, ErasureStep::Confirmed},
        Case{404, "<html>", "", Verdict::Later, ErasureStep::Waiting},
        Case{403, "{}", "", Verdict::Taken, ErasureStep::NotPossible},
        Case{503, "{}", "", Verdict::Later, ErasureStep::Waiting},
        Case{200, "{}", "", Verdict::Later, ErasureStep::Waiting},
        Case{200, R"({"id":7})", R"([{"code":"not_found"}])", Verdict::Taken,
             ErasureStep::Confirmed},
        Case{200, R"({"id":7})", R"([{"code":"not_allowed"}])", Verdict::Taken,
             ErasureStep::NotPossible},
        Case{200, R"({"id":7})", R"([{"more":3,"code":"not_found"}])", Verdict::Taken,
             ErasureStep::NotPossible}}) {
    CAPTURE(c.status);
    CAPTURE(c.body);
    CAPTURE(c.left_out);
    EraserBench bench(kEdgeCase);
    bench.scripted.rules = {{"/api/v1/erase?", c.status, c.body, c.left_out}};
    CHECK(bench.erase({device("a")}).verdict == c.verdict);
    CHECK(bench.result.step == c.step);
  }
}

TEST_CASE("eraser: a target that takes a sensor alone loses that sensor") {
  EraserBench bench(kEdgeCase, "*/m.f");
  bench.scripted.rules = {{"/api/v1/erase?", 200, R"({"id":7,"state":"done"})"}};
  ErasedName one = series("a", "m", "f"), other = series("a", "m", "g");
  one.is_of_device = other.is_of_device = true;
  REQUIRE(bench.erase({device("a"), one, other}).verdict == Verdict::Taken);
  CHECK(bench.scripted.was_asked("select=a/m.f&"));
  CHECK_FALSE(bench.scripted.was_asked("select=a&"));
  CHECK_FALSE(bench.scripted.was_asked("m.g"));
}

constexpr char kDatabases[] =
    R"({"results":[{"series":[{"columns":["name"],"values":[["default"]]}]}]})";
constexpr char kTagKeys[] =
    R"({"results":[{"series":[{"columns":["tagKey"],"values":[["host"],["room"]]}]}]})";
constexpr char kNothing[] = R"({"results":[{}]})";

std::string counts(const char* columns, const char* values) {
  return std::string(R"({"results":[{"series":[{"columns":["time",)") + columns +
         R"(],"values":[[0,)" + values + "]]}]}]}";
}

TEST_CASE("eraser: InfluxDB is asked for one series, whatever others have in common with it") {
  EraserBench bench(kInflux);
  bench.scripted.influx_version = "1.8.10";
  // As if nothing were left at the second look.
  bench.scripted.rules = {{"/ping", 204},
                          {"SHOW DATABASES", 200, kDatabases},
                          {"SHOW TAG KEYS", 200, kTagKeys},
                          {"SELECT COUNT", 200, counts("\"count_f\",\"count_g\"", "3,null")},
                          {"DROP SERIES", 200, kNothing}};
  CHECK(bench.erase({series("it's", "m", "f")}).verdict == Verdict::Later);
  CHECK(bench.scripted.was_asked(R"(DROP SERIES FROM "m" WHERE "host" = 'it\'s' AND "room" = '')"));
  CHECK(bench.result.step == ErasureStep::Waiting);
  // A range of times.
  bench.order.has_all_times = false;
  bench.order.range = {5, 9};
  CHECK(bench.erase({series("a", "m", "f")}).verdict == Verdict::Later);
  CHECK(bench.scripted.was_asked(R"(AND "room" = '' AND time >= 5 AND time < 9)"));
  // Nothing is there.
  bench.scripted.rules[3].body = kNothing;
  CHECK(bench.erase({series("a", "m", "f")}).verdict == Verdict::Taken);
  CHECK(bench.result.step == ErasureStep::Confirmed);
}

TEST_CASE("eraser: InfluxDB is not asked for a field whose rows hold others that stay") {
  EraserBench bench(kInflux);
  bench.scripted.influx_version = "1.6.7";
  bench.scripted.rules = {{"/ping", 204},
                          {"SHOW DATABASES", 200, kDatabases},
                          {"SHOW TAG KEYS", 200, kTagKeys},
                          {"SELECT COUNT", 200, counts("\"count_f\",\"count_g\"", "3,3")}};
  CHECK(bench.erase({series("a", "m", "f")}).verdict == Verdict::Taken);
  CHECK(bench.result.step == ErasureStep::NotPossible);
  CHECK_FALSE(bench.scripted.was_asked("DROP"));
  CHECK_FALSE(bench.scripted.was_asked("DELETE"));
}

TEST_CASE("eraser: what is no InfluxDB 1 and no VictoriaMetrics is not asked to erase") {
  for (const char* version : {"v2.7.1", "3.0.0", ""}) {
    CAPTURE(version);
    EraserBench bench(kInflux);
    bench.scripted.influx_version = version;
    bench.scripted.rules = {{"/ping", 204}};
    CHECK(bench.erase({series("a", "m", "f")}).verdict == Verdict::Taken);
    CHECK(bench.result.step == ErasureStep::NotPossible);
    CHECK_FALSE(bench.eraser->cannot().empty());
  }
  EraserBench cluster("influx+http://127.0.0.1:1/insert/0/influx");
  CHECK(cluster.erase({series("a", "m", "f")}).verdict == Verdict::Taken);
  CHECK(cluster.result.step == ErasureStep::NotPossible);
  CHECK(cluster.scripted.asked.empty());
}

TEST_CASE("eraser: VictoriaMetrics loses the series itself, and no range of it") {
  EraserBench bench(kInflux);
  bench.scripted.rules = {{"/ping", 204},
                          {"buildinfo", 200, R"({"status":"success","data":{"version":"2.24.0"}})"},
                          {"/api/v1/series", 200,
                           R"({"data":[{"__name__":"m_f","db":"default","host":"a"},
                   {"__name__":"m_f","db":"default","host":"a","room":"x"}]})"},
                          {"delete_series", 204}};
  CHECK(bench.erase({series("a", "m", "f")}).verdict == Verdict::Taken);
  CHECK(bench.result.step == ErasureStep::NotProvable);
  CHECK(bench.scripted.was_asked(
      R"(delete_series?match[]={__name__="m_f",db="default",host="a",room=""})"));
  bench.order.has_all_times = false;
  CHECK(bench.erase({series("a", "m", "f")}).verdict == Verdict::Taken);
  CHECK(bench.result.step == ErasureStep::NotPossible);
}

TEST_CASE("eraser: of a thinned target all columns go, by whole windows") {
  EraserBench bench(kEdgeCase, "*:*/m.f");
  bench.settings.every = "1m";
  Eraser eraser(bench.scripted, bench.settings, config::parse_forward(bench.settings).value(),
                {.every_ns = 60'000'000'000, .salt = {}});
  bench.scripted.rules = {{"/api/v1/erase?", 200, R"({"id":7,"state":"done"})"}};
  bench.order.has_all_times = false;
  bench.order.range = {61'000'000'000, 121'000'000'000};
  bench.order.fence_to_ns.reset();
  const auto erased = eraser.erase(
      bench.order, {series("a", "m", "f"), series("a", "m", "g")}, [](const auto&) { return ok(); },
      bench.result);
  REQUIRE(erased.verdict == Verdict::Taken);
  REQUIRE(bench.scripted.asked.size() == 1);
  CHECK(bench.scripted.asked[0] ==
        "POST /api/v1/erase?ns=default&select=a/m.f_count&select=a/m.f_min&select=a/m.f_max"
        "&select=a/m.f_sum&select=a/m.f_mean&select=a/m.f_first&select=a/m.f_last"
        "&from=1970-01-01T00:01:00.000000000Z&to=1970-01-01T00:03:00.000000000Z&wait=1s");
}

TEST_CASE("eraser: a target of pseudonyms is asked by these") {
  EraserBench bench(kEdgeCase);
  const Shape shape{.every_ns = 0, .salt = Bytes(32, 's')};
  Eraser eraser(bench.scripted, bench.settings, config::parse_forward(bench.settings).value(),
                shape);
  bench.scripted.rules = {{"/api/v1/erase?", 200, R"({"id":7,"state":"done"})"}};
  const auto erased = eraser.erase(
      bench.order, {device("truck"), series("van", "m", "f")}, [](const auto&) { return ok(); },
      bench.result);
  REQUIRE(erased.verdict == Verdict::Taken);
  const Pseudonyms pseudonyms(shape.salt);
  CHECK(bench.scripted.was_asked("select=" + pseudonyms.of("default", "truck") + "&"));
  CHECK(bench.scripted.was_asked("select=" + pseudonyms.of("default", "van") + "/m.f"));
  CHECK(!bench.scripted.was_asked("truck"));
  CHECK(!bench.scripted.was_asked("van"));
}

TEST_CASE("eraser: fences of all certificates are lifted, or it is said why not") {
  EraserBench bench(kEdgeCase);
  const TargetErasure erased{.target = "t", .step = ErasureStep::Confirmed, .certificates = {7, 8}};
  const auto lifted_with = [&](int status) {
    bench.scripted.rules = {{"fences?id=7", 200}, {"fences?id=8", status}};
    std::string why;
    const Answer answer = bench.eraser->lift(erased, why);
    return std::pair(answer.verdict, why);
  };
  CHECK(lifted_with(200) == std::pair(Verdict::Taken, std::string()));
  CHECK(bench.scripted.was_asked("DELETE /api/v1/fences?id=8"));
  CHECK(lifted_with(404) == std::pair(Verdict::Taken, std::string()));
  CHECK(lifted_with(403) ==
        std::pair(Verdict::Taken, std::string("the token may not lift fences there")));
  CHECK(lifted_with(500).first == Verdict::Later);
  CHECK(lifted_with(302).first == Verdict::Later);
}

constexpr std::int64_t kWindowNs = 60'000'000'000;

// Windows of a minute, from 10 minutes to 20, went of the series of that number.
struct SomeWindows final : WindowsThere {
  std::set<std::string> series;  // sensors that there are here
  bool is_damaged = false, knows_all = true;

  Result<SentWindows> of(const catalog::SeriesId& id) const override {
    if (is_damaged) return corruption("damaged");
    SentWindows sent;
    if (id.sensor == 7) sent.note({10 * kWindowNs, 20 * kWindowNs, kWindowNs, kAllWindowColumns});
    if (id.sensor == 9)
      sent.note({10 * kWindowNs, 20 * kWindowNs, kWindowNs, kAllWindowColumns | kSeveralLengths});
    return sent;
  }
  Result<Thinned::Gone> find_gone(const std::string&, const std::string&,
                                  const std::string& sensor) const override {
    Thinned::Gone gone{.id = {}, .knows_all = knows_all};
    if (sensor == "t{room=x}" || sensor == "joined")
      gone.id =
          catalog::SeriesId{.namespace_id = 1, .device = 1, .sensor = sensor == "joined" ? 9u : 7u};
    return gone;
  }
  Result<bool> has_any() const override { return true; }
  bool is_series(const std::string&, const std::string&, const std::string& sensor) const override {
    return series.contains(sensor);
  }
};

struct ColumnsBench : EraserBench {
  explicit ColumnsBench(const char* to) : EraserBench(to) {
    eraser.emplace(scripted, settings, config::parse_forward(settings).value(), Shape(), &windows);
    scripted.rules = {{"/api/v1/erase?", 404, kNotFound}};
    name = series("a", "cpu", "idle");
    name.id = {.namespace_id = 1, .device = 1, .sensor = 7};
  }
  void erase_range(std::int64_t from_ns, std::int64_t to_ns) {
    order.has_all_times = false;
    order.range = {from_ns, to_ns};
    REQUIRE(erase({name}).verdict == Verdict::Taken);
  }

  SomeWindows windows;
  ErasedName name;
};

TEST_CASE("eraser: columns that went in the place of readings go with them") {
  ColumnsBench whole(kEdgeCase);
  REQUIRE(whole.erase({whole.name}).verdict == Verdict::Taken);
  REQUIRE(whole.scripted.asked.size() == 1);
  CHECK(whole.scripted.was_asked("select=a/cpu.idle&select=a/cpu.idle_count&"));
  CHECK(whole.result.step == ErasureStep::Confirmed);
  ColumnsBench other(kEdgeCase);
  other.name.id.sensor = 8;
  REQUIRE(other.erase({other.name}).verdict == Verdict::Taken);
  CHECK_FALSE(other.scripted.was_asked("idle_count"));
  // Where no window went, a range asks for none.
  ColumnsBench later(kEdgeCase);
  later.erase_range(30 * kWindowNs, 40 * kWindowNs);
  CHECK_FALSE(later.scripted.was_asked("idle_count"));
}

TEST_CASE("eraser: a window that a range cuts goes whole, and nothing beside it") {
  ColumnsBench bench(kEdgeCase);
  bench.erase_range(15 * kWindowNs + 1, 16 * kWindowNs + 1);
  REQUIRE(bench.scripted.asked.size() == 2);
  CHECK(bench.scripted.asked[0].find("select=a/cpu.idle&") != std::string::npos);
  CHECK(bench.scripted.asked[0].find("from=1970-01-01T00:15:00.000000001Z") != std::string::npos);
  CHECK(bench.scripted.asked[0].find("idle_max") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("select=a/cpu.idle&") == std::string::npos);
  CHECK(bench.scripted.asked[1].find("from=1970-01-01T00:15:00.000000000Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("to=1970-01-01T00:15:00.000000001Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("idle_max") != std::string::npos);
  ColumnsBench even(kEdgeCase);
  even.erase_range(15 * kWindowNs, 16 * kWindowNs + 1);
  CHECK(even.scripted.asked.size() == 1);
}

TEST_CASE("eraser: columns of a name that a series here has now stay, and that is told") {
  ColumnsBench bench(kEdgeCase);
  bench.windows.series = {"cpu.idle_min"};
  REQUIRE(bench.erase({bench.name}).verdict == Verdict::Taken);
  CHECK(bench.scripted.was_asked("idle_max"));
  CHECK_FALSE(bench.scripted.was_asked("idle_min"));
  CHECK(bench.result.step == ErasureStep::NotPossible);
  ColumnsBench damaged(kEdgeCase);
  damaged.windows.is_damaged = true;
  REQUIRE(damaged.erase({damaged.name}).verdict == Verdict::Taken);
  CHECK(damaged.scripted.was_asked("select=a/cpu.idle&"));
  CHECK(damaged.result.step == ErasureStep::NotPossible);
}

struct GoneBench : ColumnsBench {
  explicit GoneBench(const char* sensor) : ColumnsBench(kEdgeCase) {
    name.id = {};
    name.is_gone = true;
    name.identity.clear();
    name.sensor = sensor;
  }
};

TEST_CASE("eraser: of what has gone here columns are asked for by all names that they may have") {
  for (const char* sensor : {"t{room=x}", "u{room=x}"}) {
    GoneBench bench(sensor);
    const std::string stem(sensor, 1);
    REQUIRE(bench.erase({bench.name}).verdict == Verdict::Taken);
    CHECK(bench.scripted.was_asked(stem + "_min{room=x}"));
    CHECK(bench.scripted.was_asked(stem + ".value_min{room=x}"));
    CHECK(bench.result.step == ErasureStep::Confirmed);
  }
}

TEST_CASE("eraser: of what has gone here a range takes the windows that it holds and cuts") {
  GoneBench bench("t{room=x}");
  bench.erase_range(15 * kWindowNs + 1, 16 * kWindowNs + 1);
  CHECK(bench.result.step == ErasureStep::Confirmed);
  REQUIRE(bench.scripted.asked.size() == 2);
  CHECK(bench.scripted.asked[0].find("t_min{room=x}") != std::string::npos);
  CHECK(bench.scripted.asked[0].find("from=1970-01-01T00:15:00.000000001Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("select=a/t{room=x}") == std::string::npos);
  CHECK(bench.scripted.asked[1].find("t.value_min{room=x}") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("from=1970-01-01T00:15:00.000000000Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("to=1970-01-01T00:15:00.000000001Z") != std::string::npos);
  // Windows that the range neither holds nor cuts are not asked for.
  GoneBench later("t{room=x}");
  later.erase_range(30 * kWindowNs, 40 * kWindowNs);
  CHECK_FALSE(later.scripted.was_asked("t_min"));
  CHECK(later.result.step == ErasureStep::Confirmed);
  GoneBench never("u");
  never.erase_range(15 * kWindowNs + 1, 16 * kWindowNs + 1);
  CHECK(never.scripted.asked.size() == 1);
  CHECK(never.result.step == ErasureStep::Confirmed);
  // Where names were not always kept.
  GoneBench unknown("u");
  unknown.windows.knows_all = false;
  unknown.erase_range(15 * kWindowNs + 1, 16 * kWindowNs + 1);
  CHECK(unknown.result.step == ErasureStep::NotPossible);
}

TEST_CASE("eraser: a range that cuts windows of which nobody knows the length is not possible") {
  for (const std::int64_t from_ns : {15 * kWindowNs + 1, 10 * kWindowNs, 20 * kWindowNs}) {
    CAPTURE(from_ns);
    ColumnsBench bench(kEdgeCase);
    bench.name.id.sensor = 9;
    bench.erase_range(from_ns, 40 * kWindowNs);
    const bool cuts = from_ns == 15 * kWindowNs + 1;
    CHECK(bench.scripted.asked.size() == 1);
    CHECK(bench.scripted.was_asked("idle_min") == (from_ns < 20 * kWindowNs));
    CHECK((bench.result.step == ErasureStep::NotPossible) == cuts);
  }
}

TEST_CASE("eraser: of a thinned target a range takes longer windows whole") {
  ColumnsBench bench(kEdgeCase);
  bench.settings.every = "1s";
  bench.eraser.emplace(bench.scripted, bench.settings,
                       config::parse_forward(bench.settings).value(),
                       Shape{.every_ns = kWindowNs / 60, .salt = {}}, &bench.windows);
  bench.erase_range(15 * kWindowNs + 1, 16 * kWindowNs);
  REQUIRE(bench.scripted.asked.size() == 1);
  bench.scripted.asked.clear();
  bench.erase_range(15 * kWindowNs + kWindowNs / 2, 16 * kWindowNs);
  REQUIRE(bench.scripted.asked.size() == 2);
  CHECK(bench.scripted.asked[0].find("from=1970-01-01T00:15:30.000000000Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("from=1970-01-01T00:15:00.000000000Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("to=1970-01-01T00:15:00.000000001Z") != std::string::npos);
  CHECK(bench.scripted.asked[1].find("select=a/cpu.idle&") == std::string::npos);
}

}  // namespace
}  // namespace edgecase::forward
