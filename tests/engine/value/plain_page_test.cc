#include "value/group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "edgecase/machine.h"
#include "support/vector_cursor.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::views_of;

constexpr NamespaceId kPageNamespace = 0x01020304;

Bytes random_page_key(SeededRandom& random) {
  Bytes key;
  for (std::uint64_t i = random.below(40); i > 0; --i)
    key.push_back(static_cast<char>('a' + random.below(2)));
  return make_full_key(kPageNamespace, key);
}

std::vector<OwnedEntry> random_page_entries(SeededRandom& random) {
  std::map<Bytes, OwnedEntry> entries;
  for (std::uint64_t i = 1 + random.below(60); i > 0; --i) {
    const bool is_delete = random.below(5) == 0;
    const Bytes value(is_delete ? 0 : static_cast<std::size_t>(random.below(50)), 'v');
    const Bytes key = random_page_key(random);
    entries[key] = {key, 1 + random.below(1000), is_delete ? EntryKind::Delete : EntryKind::Put,
                    value};
  }
  std::vector<OwnedEntry> sorted;
  for (const auto& [key, entry] : entries) sorted.push_back(entry);
  return sorted;
}

void check_equal(const EntryView& got, const OwnedEntry& want) {
  REQUIRE(got.full_key == want.full_key);
  REQUIRE(got.kind == want.kind);
  REQUIRE(got.sequence == want.sequence);
  REQUIRE(got.value == want.value);
}

// Tells its size before it is there.
void append_whole_page(Bytes& out, std::span<const EntryView> entries, SequenceNumber largest,
                       SequenceColumn sequences) {
  const std::size_t before = out.size();
  Bytes heads("what stands there");
  const std::size_t begin = heads.size();
  const std::size_t bytes = append_page_heads(heads, entries, largest, sequences);
  append_page(out, ByteView(heads).substr(begin), entries, sequences);
  CHECK(out.size() - before == bytes);
}

}  // namespace

TEST_CASE("a page read from a key on has what lies there, stretch by stretch") {
  constexpr std::uint64_t kSeed = 20261124;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  PlainPageReader reader;  // one for all: what it keeps of a page must not show in the next
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const std::vector<OwnedEntry> entries = random_page_entries(random);
    Bytes page;
    append_whole_page(page, views_of(entries), 1000, SequenceColumn::Written);
    const Bytes prefix = make_full_key(kPageNamespace, {});
    REQUIRE(reader.open(page, prefix, 1000));
    CHECK_FALSE(reader.has_more());
    REQUIRE(reader.entries().size() == entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) check_equal(reader.entries()[i], entries[i]);

    for (int i = 0; i < 20; ++i) {
      const Bytes key =
          i % 2 == 0 ? entries[random.below(entries.size())].full_key : random_page_key(random);
      const auto there = std::ranges::lower_bound(entries, key, {}, &OwnedEntry::full_key);
      auto at = static_cast<std::size_t>(there - entries.begin());
      REQUIRE(reader.open_from(page, prefix, 1000, key));
      for (bool more = true; more;) {
        for (const EntryView& entry : reader.entries()) check_equal(entry, entries[at++]);
        more = reader.has_more();
        if (more) REQUIRE(reader.decode_more());
      }
      CHECK(at == entries.size());
    }
    CHECK(reader.lower_bound(prefix) == 0);
  }
}

TEST_CASE("a page read from a key on is refused or read within its bounds when it is damaged") {
  SeededRandom random(11);
  const std::vector<OwnedEntry> entries = random_page_entries(random);
  Bytes whole;
  append_whole_page(whole, views_of(entries), 1000, SequenceColumn::Written);
  const Bytes prefix = make_full_key(kPageNamespace, {});
  std::size_t refused = 0;
  const auto read = [&](const Bytes& bytes) {
    const std::vector<char> page(bytes.begin(), bytes.end());  // where a read too far is noticed
    PlainPageReader reader;
    const ByteView view(page.data(), page.size());
    bool fits = reader.open_from(view, prefix, 1000, entries[entries.size() / 2].full_key);
    while (fits && reader.has_more()) fits = reader.decode_more();
    if (!fits) CHECK(reader.entries().empty());
    if (!fits) ++refused;
  };
  for (std::size_t size = 0; size < whole.size(); ++size) read(whole.substr(0, size));
  CHECK(refused == whole.size());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    read(damaged);
  }
}

}  // namespace edgecase::engine
