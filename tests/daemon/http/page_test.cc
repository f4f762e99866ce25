#include <doctest/doctest.h>

#include <set>
#include <string>

#include "daemon/http/http_fixture.h"
#include "http/http_routes.h"

namespace edgecase::http::test {
namespace {

std::string path_of(const PageFile& file) {
  return "/page/" + std::string(file.name);
}

}  // namespace

TEST_CASE("page: it is served without a token, plain or as gzip, and says what it may load") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/api/v1/tokens?admin=true").status == 201);
  REQUIRE(f.ask("GET", "/api/v1/status").status == 401);
  const Answer start = f.ask("GET", "/");
  CHECK(start.status == 200);
  CHECK(start.header("content-type") == "text/html; charset=utf-8");
  for (const PageFile& file : page_files()) {
    CAPTURE(file.name);
    const Answer plain = f.ask("GET", path_of(file));
    REQUIRE(plain.status == 200);
    CHECK(plain.body.size() == file.bytes);
    CHECK(plain.header("content-encoding").empty());
    CHECK(plain.header("content-type") != "application/octet-stream");
    CHECK(plain.header("x-content-type-options") == "nosniff");
    const std::string policy = plain.header("content-security-policy");
    CHECK(policy.find("unsafe") == std::string::npos);
    CHECK(policy.find("style-src 'sha256-") != std::string::npos);
    CHECK(policy.find("default-src 'none'") != std::string::npos);
    CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
    const Answer zipped =
        f.ask("GET", path_of(file), {}, "Accept-Encoding: br, gzip;q=0.8, deflate\r\n");
    CHECK(zipped.header("content-encoding") == "gzip");
    CHECK(zipped.body.size() == file.gzip_bytes);
    CHECK(zipped.header("vary") == "Accept-Encoding");
  }
  for (const char* refused : {"gzip;q=0", "gzip ; q=0.000", "gzipped", "br", ""}) {
    CAPTURE(refused);
    const std::string header = std::string("Accept-Encoding: ") + refused + "\r\n";
    CHECK(f.ask("GET", "/page/words.js", {}, header).header("content-encoding").empty());
  }
}

TEST_CASE("page: what the client has is not sent again") {
  ServerFixture f;
  const std::string tag = f.ask("GET", "/page/main.js").header("etag");
  REQUIRE(!tag.empty());
  CHECK(f.ask("GET", "/page/words.js").header("etag") != tag);
  Client client = f.connect();
  for (const std::string& known : {tag, "\"other\", " + tag}) {
    const Answer again = client.ask("GET", "/page/main.js", {}, "If-None-Match: " + known + "\r\n");
    CHECK(again.status == 304);
    CHECK(again.body.empty());
    CHECK(again.header("etag") == tag);
  }
  CHECK(client.ask("GET", "/page/main.js", {}, "If-None-Match: \"other\"\r\n").status == 200);
  CHECK(client.ask("HEAD", "/page/main.js").status == 200);
}

TEST_CASE("page: there is nothing but its files, and few bytes of them") {
  ServerFixture f;
  for (const char* path : {"/page/", "/page/none.js", "/page/../page.cc", "/page/%2e%2e/x",
                           "/page/main.js/", "/page/main.js%00", "/page"}) {
    CAPTURE(path);
    CHECK(f.ask("GET", path).status == 404);
  }
  CHECK(f.ask("POST", "/page/main.js").status == 405);
  std::size_t bytes = 0;
  for (const PageFile& file : page_files()) bytes += file.gzip_bytes;
  CHECK(bytes <= 150u << 10);
}

TEST_CASE("page: each of its modules is named at its start, and has no markup of its own") {
  ServerFixture f;
  const std::string start = f.ask("GET", "/").body;
  CHECK(start.find("<script>") == std::string::npos);
  CHECK(start.find("style=") == std::string::npos);
  for (const PageFile& file : page_files()) {
    CAPTURE(file.name);
    if (file.name != "index.html") CHECK(start.find(path_of(file)) != std::string::npos);
    if (!file.name.ends_with(".js")) continue;
    const std::string text = f.ask("GET", path_of(file)).body;
    for (const char* risk : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                             "eval(", "new Function", "http://", "document.cookie"}) {
      CAPTURE(risk);
      CHECK(text.find(risk) == std::string::npos);
    }
  }
}

}  // namespace edgecase::http::test
