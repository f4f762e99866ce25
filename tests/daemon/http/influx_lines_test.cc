// Line protocol, one request after another: what is kept between them shows nowhere.
#include "http/http_routes.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "daemon/http/http_fixture.h"
#include "wire/line_protocol.h"

namespace edgecase::http {
namespace {

using test::ServerFixture;

// The fixture's clock, in whole minutes.
constexpr std::int64_t kMinuteS = edgecase::test::ManualClock::kStartWallNs / 1'000'000'000;

std::string line_at(const std::string& device, int second) {
  return "m,device=" + device + " value=" + std::to_string(second) + " " +
         std::to_string(kMinuteS + second) + "\n";
}

void write_at(ServerFixture& f, int second, const std::string& database = "default") {
  const std::string lines = line_at("kitchen", second) + line_at("cellar", second);
  REQUIRE(f.ask("POST", "/write?precision=s&db=" + database, lines).status == 204);
}

// "device@time " of what is stored.
std::string all_of(const ServerFixture& f, const std::string& database = "default") {
  std::string all;
  const std::string text = f.stored(database);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    all += text.substr(at, text.find('/', at) - at) + "@" +
           text.substr(text.find('@', at) + 18, 2) + " ";
  return all;
}

}  // namespace

TEST_CASE("line spares: what was erased or dropped is stored anew, under numbers of its own") {
  ServerFixture f;
  for (int second = 10; second < 13; ++second) write_at(f, second);
  const catalog::SeriesEntry before = f.catalog->find("default", "kitchen", "m").value();
  f.clock.advance(20'000'000'000);
  REQUIRE(f.ask("POST", "/api/v1/erase?select=kitchen").status == 200);
  CHECK(all_of(f) == "cellar@10 cellar@11 cellar@12 ");
  for (int second = 50; second < 52; ++second) write_at(f, second);
  const catalog::SeriesEntry after = f.catalog->find("default", "kitchen", "m").value();
  CHECK(after.id.device != before.id.device);
  CHECK(all_of(f) == "cellar@10 cellar@11 cellar@12 cellar@50 cellar@51 kitchen@50 kitchen@51 ");

  REQUIRE(f.catalog->drop_namespace("default").ok());
  for (int second = 52; second < 54; ++second) write_at(f, second);
  CHECK(all_of(f) == "cellar@52 cellar@53 kitchen@52 kitchen@53 ");
}

TEST_CASE("line spares: namespaces with the same names are told apart") {
  ServerFixture f;
  for (int second = 10; second < 16; ++second) {
    for (const char* const database : {"one", "two", "six", "ten", "a", "b"})
      write_at(f, second, database);
    write_at(f, second + 20, "one");
  }
  for (const char* const database : {"two", "six", "ten", "a", "b"}) {
    CHECK(all_of(f, database) ==
          "cellar@10 cellar@11 cellar@12 cellar@13 cellar@14 cellar@15 "
          "kitchen@10 kitchen@11 kitchen@12 kitchen@13 kitchen@14 kitchen@15 ");
  }
  CHECK(f.catalog->series_count() == 12);
}

TEST_CASE("line spares: a request that is refused in its midst leaves nothing to the next") {
  ServerFixture f;
  write_at(f, 10);
  write_at(f, 11);
  f.engine.fail_next_write(out_of_space("drive is full"));
  CHECK(f.ask("POST", "/write?precision=s", line_at("kitchen", 12)).status == 503);
  CHECK(f.ask("POST", "/write?precision=s", line_at("kitchen", 13) + "nonsense\n").status == 400);
  write_at(f, 14);
  CHECK(all_of(f) == "cellar@10 cellar@11 cellar@14 kitchen@10 kitchen@11 kitchen@13 kitchen@14 ");
}

TEST_CASE("line spares: lines obey the rules that are told last, names that are remembered too") {
  ServerFixture f;
  const auto write = [&f](int second) {
    const std::string text = "weather,host=pi,station=roof temp=1 " + std::to_string(second) + "\n";
    CHECK(f.ask("POST", "/write?precision=s", text).status == 204);
  };
  const auto tried = [&f] {
    const test::Answer answer = f.ask("POST", "/api/v1/influx/test?precision=s",
                                      "weather,host=pi,station=roof temp=1i 5\nnonsense\n");
    CHECK(answer.status == 200);
    return nlohmann::json::parse(answer.body);
  };
  write(10);
  nlohmann::json document = tried();
  CHECK(document["readings"][0]["device"] == "pi");
  CHECK_FALSE(document["readings"][0].contains("rule"));

  config::Settings fresh = f.settings;
  fresh.influx.rules.push_back({"weather", "{station}", 7});
  REQUIRE(f.server->reload(fresh).ok());
  write(11);
  write(12);
  document = tried();
  const nlohmann::json& reading = document["readings"][0];
  CHECK(reading["device"] == "roof");
  CHECK(reading["sensor"] == "weather.temp{host=pi}");
  CHECK(reading["rule"]["number"] == 1);
  CHECK(reading["rule"]["line"] == 7);
  CHECK(reading["measurement"] == "weather");
  CHECK(reading["tags"]["station"] == "roof");
  CHECK(reading["tags"]["host"] == "pi");
  CHECK(reading["field"] == "temp");
  CHECK(reading["value"] == 1);
  CHECK(reading["type"] == "int");
  CHECK(reading["time"] == "1970-01-01T00:00:05.000000000Z");
  CHECK(document["bad_lines"] == 1);
  CHECK(document["errors"][0]["line"] == 2);
  const auto rules = nlohmann::json::parse(f.ask("GET", "/api/v1/influx/rules").body);
  CHECK(rules["rules"][0]["device"] == "{station}");

  fresh.influx.rules.front().device = "{";
  CHECK(f.server->reload(fresh).code() == StatusCode::InvalidArgument);
  write(13);
  fresh.influx.rules.clear();
  REQUIRE(f.server->reload(fresh).ok());
  write(14);
  CHECK(all_of(f) == "pi@10 pi@14 roof@11 roof@12 roof@13 ");

  // Each reading is asked about by its namespace, after the decoder was made.
  CHECK(f.ask("POST", "/api/v1/influx/test?ns=greenhouse-of-the-southern-garden", "a b=1\na b=2\n")
            .status == 200);
  CHECK(f.ask("POST", "/api/v1/influx/test?ns=%2F", "a b=1").status == 400);
  CHECK(f.ask("POST", "/api/v1/influx/test?precision=y", "a b=1").status == 400);
  std::string many;
  for (int i = 0; i < 1'001; ++i) many += "a b" + std::to_string(i) + "=1\n";
  CHECK(f.ask("POST", "/api/v1/influx/test", many).status == 400);
}

TEST_CASE("line spares: as many names as are remembered outlive the request that taught them") {
  edgecase::test::ModelEngine engine;
  const auto catalog = catalog::Catalog::open(engine, {}).value();
  LineSpares spares(engine, *catalog);
  std::string body;
  for (int i = 0; i < 3'000; ++i) {
    body += "readings,name=truck_" + std::to_string(i) + ",fleet=" + std::string(120, 'f');
    for (int field = 0; field < 10; ++field)
      body += (field == 0 ? " f" : ",f") + std::to_string(field) + "=1";
    body += " 1\n";
  }
  const auto decode = [&body](LineSpare& spare) {
    wire::LineProtocolDecoder decoder(body, {}, spare.names);
    while (decoder.next(spare.batch)) spare.batch.clear_readings();
    CHECK(decoder.good_lines() == 3'000);
    return spare.names.built();
  };
  const LineSpare* first = nullptr;
  {
    LineSpares::Loan loan = spares.take("a");
    first = loan.operator->();
    CHECK(decode(*loan.operator->()) == 3'000);
    CHECK(loan->memory_bytes() < LineSpares::kSparesMaxBytes / 2);
  }
  {
    LineSpares::Loan loan = spares.take("a");
    CHECK(loan.operator->() == first);
    CHECK(decode(*loan.operator->()) == 3'000);  // none was built again
  }
  // Several at once share the memory, and each keeps what it has room for.
  for (int round = 0; round < 3; ++round) {
    LineSpares::Loan loans[] = {spares.take("a"), spares.take("a"), spares.take("a"),
                                spares.take("a")};
    for (LineSpares::Loan& loan : loans) {
      decode(*loan.operator->());
      if (round == 0) continue;  // the first came when it was alone
      CHECK(loan->names_bytes() < LineSpares::kSparesMaxBytes / 6);
      CHECK(loan->memory_bytes() < LineSpares::kSparesMaxBytes / 4);
      CHECK(loan->names.built() < 4U * 3'000);
    }
  }
}

TEST_CASE("line spares: many at once are served, a few are kept, and large ones are not") {
  edgecase::test::ModelEngine engine;
  const auto catalog = catalog::Catalog::open(engine, {}).value();
  LineSpares spares(engine, *catalog);
  LineSpare* first = nullptr;
  {
    LineSpares::Loan loan = spares.take("a");
    first = loan.operator->();
    loan->batch.names.keep("a name");
    {
      LineSpares::Loan other = spares.take("a");
      CHECK(other.operator->() != first);
    }
  }
  const std::uint64_t text_id = first->batch.text_id();
  {
    LineSpares::Loan loan = spares.take("a");
    CHECK(loan.operator->() == first);
    CHECK(loan->batch.text_id() == text_id);
    loan->buffers.gathered.batch.reserve(0, LineSpares::kBuffersMaxBytes);
  }
  {
    LineSpares::Loan loan = spares.take("a");
    CHECK(loan.operator->() == first);
    CHECK(loan->memory_bytes() < LineSpares::kBuffersMaxBytes / 4);
  }
  // What may know a name that was erased is not kept.
  REQUIRE(spares.take("a")->batch.text_id() == text_id);
  catalog->forget({});
  CHECK(spares.take("a")->batch.text_id() != text_id);

  // Nor is one that was lent when all were forgotten.
  std::uint64_t lent_id = 0;
  {
    LineSpares::Loan loan = spares.take("a");
    lent_id = loan->batch.text_id();
    spares.forget();
  }
  CHECK(spares.take("a")->batch.text_id() != lent_id);

  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&spares, i] {
      for (int round = 0; round < 500; ++round) {
        LineSpares::Loan loan = spares.take(std::string(1, static_cast<char>('a' + i)));
        loan->batch.readings.emplace_back();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i)
    CHECK(spares.take(std::string(1, static_cast<char>('a' + i)))->batch.readings.empty());
}

}  // namespace edgecase::http
