#include "check/store_files.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace edgecase::engine {

TEST_CASE("facts: a line each, keys in hexadecimal digits and cut where they are long") {
  std::string out;
  add_fact(out, "kind", "manifest");
  add_fact(out, "records", 12);
  CHECK(out == "kind: manifest\nrecords: 12\n");
  CHECK(shown_key(ByteView("\x00\x7f\xff", 3)) == "007fff");
  CHECK(shown_key({}) == "");
  const std::string long_key = shown_key(Bytes(1000, 'a'));
  CHECK(long_key.size() < 1000);
  CHECK(long_key.substr(long_key.size() - 5) == "61...");
}

TEST_CASE("erasure lines: ranges that wait are told, a few of them, and how many more there are") {
  VersionState state;
  state.version = std::make_shared<Version>();
  std::string out;
  erasure_lines(out, state);
  CHECK(out.find("erased ranges that are pending: 0\n") != std::string::npos);
  CHECK(out.find("  erased") == std::string::npos);
  for (SequenceNumber i = 1; i <= 1'000; ++i)
    state.erasures.push_back({Bytes(1, 'a'), Bytes(1, 'b'), i, true});
  erasure_lines(out, state);
  CHECK(out.find("61 to before 62, sequences below 1") != std::string::npos);
  CHECK(out.find("sequences below 1000") == std::string::npos);
  CHECK(out.find("and more") != std::string::npos);
}

}  // namespace edgecase::engine
