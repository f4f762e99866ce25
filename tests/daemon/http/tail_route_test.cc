#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

struct Tail : ServerFixture {
  // Asks from `cursor` on, and moves it.
  Answer follow(std::string& cursor, const std::string& parameters = "") const {
    const Answer answer =
        ask("GET", "/api/v1/tail?" + parameters + (cursor.empty() ? "" : "&cursor=" + cursor));
    if (answer.status == 200) cursor = answer.header("x-edgecase-cursor");
    return answer;
  }
  void write(const std::string& lines) const { CHECK(ask("POST", "/write", lines).status == 204); }
};

}  // namespace

TEST_CASE("tail over HTTP: what is stored after the first question, whatever its time") {
  Tail f;
  f.write("m,device=a value=1 1");
  std::string cursor;
  CHECK(f.follow(cursor, "format=csv").body == "namespace,device,sensor,time,value,type\n");
  CHECK(f.follow(cursor, "format=csv").body.empty());
  f.write("m,device=a value=2 5\nm,device=b value=3 4");
  f.write("m,device=a value=4 2");
  const Answer answer = f.follow(cursor, "format=line&select=a");
  CHECK(answer.body == "m,device=a value=2 5\nm,device=a value=4 2\n");
  CHECK(answer.header("x-edgecase-readings") == "2");
  CHECK(answer.header("x-edgecase-missed-readings").empty());
  CHECK(f.follow(cursor, "select=a").body.empty());
}

TEST_CASE("tail over HTTP: a limit ends an answer, and the next goes on there") {
  Tail f;
  std::string cursor;
  f.follow(cursor);
  f.write("m,device=a value=1 1\nm,device=a value=2 2\nm,device=a value=3 3");
  CHECK(f.follow(cursor, "format=line&limit=2").body ==
        "m,device=a value=1 1\nm,device=a value=2 2\n");
  CHECK(f.follow(cursor, "format=line").body == "m,device=a value=3 3\n");
}

TEST_CASE("tail over HTTP: a text of a megabyte comes in pieces, and nothing after it") {
  Tail f;
  std::string cursor;
  f.follow(cursor);
  std::string text;
  while (text.size() < 1u << 20) text += "0123456789 \\\" \\n";
  const auto reading = [](int time, const std::string& value) {
    return R"({"namespace":"default","device":"a","sensor":"m","time":"1970-01-01T00:00:00.)" +
           std::string("00000000") + std::to_string(time) + R"(Z","value":")" + value + "\"}\n";
  };
  CHECK(f.ask("POST", "/api/v1/readings", reading(1, "small") + reading(2, text)).status == 200);
  f.write("m,device=a value=3 3");
  const Answer answer = f.follow(cursor);
  CHECK((answer.body == reading(1, "small") + reading(2, text)));
  CHECK(answer.header("x-edgecase-readings") == "2");
  CHECK(f.follow(cursor, "format=line").body == "m,device=a value=3 3\n");
}

TEST_CASE("tail over HTTP: tokens, purposes and namespaces hold as for queries") {
  Tail f;
  f.write("m,device=a value=0 1");
  CHECK(f.ask("POST", "/api/v1/device?device=meter&purpose=billing").status == 200);
  std::string cursor;
  std::string all;
  f.follow(cursor);
  f.follow(all, "ns=*");
  const std::string begun = cursor;
  f.write("m,device=meter value=1 1\nm,device=lamp value=2 1");
  CHECK(f.ask("POST", "/write?db=other", "m,device=lamp value=3 1").status == 204);
  CHECK(f.follow(cursor, "format=line").body == "m,device=lamp value=2 1\n");
  cursor = begun;
  CHECK(f.follow(cursor, "format=line&purpose=billing").body ==
        "m,device=meter value=1 1\nm,device=lamp value=2 1\n");
  CHECK(f.follow(all, "ns=*&format=line").body ==
        "# CONTEXT-DATABASE: default\nm,device=lamp value=2 1\n"
        "# CONTEXT-DATABASE: other\nm,device=lamp value=3 1\n");
  CHECK(f.follow(cursor, "select=meter").status == 403);

  const Answer made =
      Client::over_unix(f.settings.http.socket).ask("POST", "/api/v1/tokens?read=lamp/*");
  const std::string shown = bearer(json_of(made).value("token", ""));
  CHECK(f.ask("GET", "/api/v1/tail").status == 401);
  CHECK(f.ask("GET", "/api/v1/tail?select=garage", {}, shown).status == 403);
  CHECK(f.ask("GET", "/api/v1/tail?format=line&ns=*&purpose=billing&cursor=" + begun, {}, shown)
            .body == "# CONTEXT-DATABASE: default\nm,device=lamp value=2 1\n");
}

TEST_CASE("tail over HTTP: what was erased is not told") {
  Tail f;
  std::string cursor;
  f.follow(cursor);
  f.write("m,device=a value=1 1\nm,device=b value=2 1");
  CHECK(f.ask("POST", "/api/v1/erase?select=a").status / 100 == 2);
  const Answer answer = f.follow(cursor);
  CHECK(answer.body.empty());
  CHECK(answer.header("x-edgecase-missed-readings") == "2");
}

TEST_CASE("backups over HTTP: a moment is read until it is released, or something is erased") {
  Tail f;
  f.write("m,device=a value=1 1\nm,device=b value=2 1");
  const auto pin = [&f] {
    return nlohmann::json::parse(f.ask("POST", "/api/v1/backups").body)
        .at("moment")
        .get<std::string>();
  };
  const std::string moment = pin();
  f.write("m,device=a value=9 1\nm,device=c value=3 1");
  CHECK(f.ask("GET", "/api/v1/query?format=line&moment=" + moment).body ==
        "m,device=a value=1 1\nm,device=b value=2 1\n");
  const auto series = nlohmann::json::parse(f.ask("GET", "/api/v1/series?moment=" + moment).body);
  CHECK(series["series"].size() == 2);
  CHECK(f.ask("DELETE", "/api/v1/backups?moment=" + moment).status == 200);
  CHECK(f.ask("GET", "/api/v1/query?moment=" + moment).status == 404);
  const std::string other = pin();
  CHECK(f.ask("POST", "/api/v1/erase?select=a").status / 100 == 2);
  CHECK(f.ask("GET", "/api/v1/query?moment=" + other).status == 404);
}

TEST_CASE("tail over HTTP: what makes no sense is refused") {
  Tail f;
  for (const char* wrong : {"cursor=x", "cursor=1", "cursor=1-", "cursor=-1", "format=json",
                            "limit=x", "from=now", "select=a/b/c"}) {
    CAPTURE(wrong);
    CHECK(f.ask("GET", std::string("/api/v1/tail?") + wrong).status == 400);
  }
  CHECK(f.ask("GET", "/api/v1/tail?ns=_tokens").status == 403);
  CHECK(f.ask("GET", "/api/v1/tail?cursor=1-1").header("x-edgecase-missed-readings") == "unknown");
}

}  // namespace edgecase::http::test
