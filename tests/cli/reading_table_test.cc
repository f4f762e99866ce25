#include "reading_output.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

namespace edgecase::cli {
namespace {

struct Stream {
  ~Stream() { std::fclose(file); }
  std::string text() const {
    std::rewind(file);
    std::string all(65536, '\0');
    all.resize(std::fread(all.data(), 1, all.size(), file));
    return all;
  }
  std::FILE* file = std::tmpfile();
};

constexpr char kTwoReadings[] =
    "{\"namespace\":\"default\",\"device\":\"a\",\"sensor\":\"b\","
    "\"time\":\"2025-11-20T14:00:00.000000000Z\",\"value\":21.5}\n"
    "{\"namespace\":\"default\",\"device\":\"a\",\"sensor\":\"c\","
    "\"time\":\"2025-11-20T14:00:01.000000000Z\",\"value\":7,\"type\":\"int\"}\n";

TEST_CASE("readings come in pieces of any size and leave as rows") {
  const std::string whole(kTwoReadings);
  for (std::size_t piece = 1; piece <= whole.size(); piece += 7) {
    Stream stream;
    ReadingTable table(NamespaceColumn::Hidden, std::nullopt, std::nullopt, stream.file);
    for (std::size_t at = 0; at < whole.size(); at += piece) {
      CHECK(table.push(std::string_view(whole).substr(at, piece)));
    }
    CHECK(table.finish().ok());
    CHECK(stream.text() ==
          "SERIES  TIME                  VALUE\n"
          "a/b     2025-11-20T14:00:00Z   21.5\n"
          "a/c     2025-11-20T14:00:01Z      7\n");
  }
}

TEST_CASE("namespace and age are shown where they are asked for") {
  Stream stream;
  ReadingTable table(NamespaceColumn::Shown, std::nullopt, 1'763'647'205'000'000'000, stream.file);
  CHECK(table.push(kTwoReadings));
  CHECK(table.finish().ok());
  CHECK(stream.text() ==
        "NAMESPACE  SERIES  TIME                  VALUE  AGE\n"
        "default    a/b     2025-11-20T14:00:00Z   21.5   5s\n"
        "default    a/c     2025-11-20T14:00:01Z      7   4s\n");
}

TEST_CASE("the row limit stops the stream") {
  Stream stream;
  ReadingTable table(NamespaceColumn::Hidden, 1, std::nullopt, stream.file);
  CHECK_FALSE(table.push(kTwoReadings));
  CHECK(table.limit_reached());
  CHECK(table.finish().ok());
  CHECK(table.rows() == 1);
}

TEST_CASE("values are shown safely") {
  struct Case {
    const char* value;
    const char* shown;
  };
  for (const Case& c :
       {Case{"true", "true"}, Case{"\"a\\u001bb\"", "a\\x1bb"}, Case{"-0.0", "-0.0"},
        Case{"1e300", "1e+300"}, Case{"\"AAAA\",\"type\":\"bytes\"", "(3 B)"},
        Case{"\"AAA=\",\"type\":\"bytes\",\"content_type\":\"image/png\"", "(2 B, image/png)"}}) {
    CAPTURE(c.value);
    Stream stream;
    ReadingTable table(NamespaceColumn::Hidden, std::nullopt, std::nullopt, stream.file);
    CHECK(
        table.push("{\"device\":\"a\",\"sensor\":\"b\",\"time\":\"2025-11-20T14:00:00Z\","
                   "\"value\":" +
                   std::string(c.value) + "}\n"));
    CHECK(table.finish().ok());
    CHECK_MESSAGE(stream.text().find(std::string(c.shown) + "\n") != std::string::npos,
                  stream.text());
  }
}

TEST_CASE("what is no reading and what breaks off is told") {
  Stream stream;
  ReadingTable garbage(NamespaceColumn::Hidden, std::nullopt, std::nullopt, stream.file);
  CHECK_FALSE(garbage.push("nonsense\n"));
  CHECK(garbage.finish().code() == StatusCode::IoError);
  ReadingTable half(NamespaceColumn::Hidden, std::nullopt, std::nullopt, stream.file);
  CHECK(half.push("{\"device\":"));
  CHECK(half.finish().code() == StatusCode::IoError);
  ReadingTable odd(NamespaceColumn::Hidden, std::nullopt, std::nullopt, stream.file);
  CHECK(odd.push("{\"device\":5,\"sensor\":[],\"time\":{},\"value\":null}\n"));
  CHECK(odd.finish().ok());
}

}  // namespace
}  // namespace edgecase::cli
