#include "buffer/cbuffer.h"

#include <doctest/doctest.h>

namespace edgecase::engine {
namespace {

struct Fed {
  Bytes key;
  Bytes value;
  EntryKind kind = EntryKind::Put;
};

// The sizes of the groups that come out.
std::vector<std::size_t> groups_of(CBuffer& buffer, const std::vector<Fed>& fed) {
  std::vector<std::size_t> sizes;
  SequenceNumber sequence = 0;
  for (const Fed& f : fed) {
    const EntryView entry{f.key, ++sequence, f.kind, f.value};
    if (!buffer.takes(entry)) {
      sizes.push_back(buffer.entries().size());
      buffer.clear();
    }
    buffer.add(entry);
  }
  if (!buffer.empty()) sizes.push_back(buffer.entries().size());
  buffer.clear();
  return sizes;
}

TEST_CASE("a group closes when it is full") {
  CBuffer buffer(100, 1000);
  std::vector<Fed> fed;
  for (char c = 'a'; c < 'k'; ++c) fed.push_back({make_full_key(1, Bytes(1, c)), Bytes(24, 'v')});
  // 25 bytes each, the namespace not counted.
  CHECK(groups_of(buffer, fed) == std::vector<std::size_t>{4, 4, 2});
}

TEST_CASE("what is lent makes the same groups, and is not copied") {
  std::vector<Fed> fed;
  for (char c = 'a'; c < 'z'; ++c)
    fed.push_back({make_full_key(c < 'm' ? 1 : 2, Bytes(1, c)), Bytes(24, 'v'),
                   c % 5 == 0 ? EntryKind::Delete : EntryKind::Put});
  CBuffer copied(100, 1000);
  CBuffer lent(100, 1000);
  lent.set_lent(true);
  CHECK(groups_of(lent, fed) == groups_of(copied, fed));
  const EntryView put{fed[1].key, 7, EntryKind::Put, fed[1].value};
  const EntryView gone{fed[2].key, 8, EntryKind::Delete, fed[2].value};
  for (CBuffer* buffer : {&copied, &lent}) {
    buffer->add(put);
    buffer->add(gone);
    const auto entries = buffer->entries();
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].full_key == put.full_key);
    CHECK(entries[0].value == put.value);
    CHECK(entries[0].sequence == 7);
    CHECK(entries[1].kind == EntryKind::Delete);
    CHECK(entries[1].value.empty());
    CHECK((entries[0].value.data() == put.value.data()) == (buffer == &lent));
  }
}

TEST_CASE("a group closes at its number of entries") {
  CBuffer buffer(1000, 3);
  std::vector<Fed> fed;
  for (char c = 'a'; c < 'h'; ++c) fed.push_back({make_full_key(1, Bytes(1, c)), ""});
  CHECK(groups_of(buffer, fed) == std::vector<std::size_t>{3, 3, 1});
}

TEST_CASE("a group holds one scope of one namespace") {
  CBuffer buffer(1000, 1000);
  buffer.set_scope_bytes(2);
  CHECK(groups_of(buffer, {{make_full_key(1, ""), "v"},
                           {make_full_key(1, "a"), "v"},
                           {make_full_key(1, "aa"), "v"},
                           {make_full_key(1, "aab"), "v"},
                           {make_full_key(1, "ab"), "v"},
                           {make_full_key(2, "ab"), "v"}}) ==
        std::vector<std::size_t>{1, 1, 2, 1, 1});
  buffer.set_scope_bytes(0);
  CHECK(groups_of(buffer, {{make_full_key(1, "a"), "v"},
                           {make_full_key(1, "b"), "v"},
                           {make_full_key(2, "a"), "v"}}) == std::vector<std::size_t>{2, 1});
}

TEST_CASE("entries are copied whole, deletes without a value") {
  CBuffer buffer(1000, 1000);
  {
    const Bytes key = make_full_key(1, "key");
    buffer.add({key, 7, EntryKind::Put, "value"});
    buffer.add({make_full_key(1, "key2"), 8, EntryKind::Delete, "ignored"});
  }
  const auto entries = buffer.entries();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].full_key == make_full_key(1, "key"));
  CHECK(entries[0].sequence == 7);
  CHECK(entries[0].value == "value");
  CHECK(entries[1].full_key == make_full_key(1, "key2"));
  CHECK(entries[1].kind == EntryKind::Delete);
  CHECK(entries[1].value.empty());
}

}  // namespace
}  // namespace edgecase::engine
