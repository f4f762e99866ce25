// Any bytes as the records that a store keeps of its targets: what they are owed as windows, what
// went, of erasures and the names of one. What is read is written and reads back the same.
//
// The first byte says which record the rest is: 0 'W', 1 'X' of a series, 2 'X' of a target, 3 'Y',
// 4 'E', else a chunk of names, which is sealed.
#include <memory>
#include <string>
#include <string_view>

#include "auth/hashing.h"
#include "forward/erasures.h"
#include "forward/thinned.h"
#include "fuzz/fuzz_targets.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"

namespace edgecase::forward {
namespace {

using test::demand;

constexpr catalog::SeriesId kSeries{.namespace_id = 3, .device = 4, .sensor = 5};
constexpr char kErasure[] =
    R"({"version":2,"asked":1,"all":true,"from":0,"copies":false,"chunks":1,"targets":)"
    R"([{"name":"hub","step":"waiting","why":"","certificates":[],"answered":0}]})";

struct Kept {
  void put(const Bytes& key, ByteView value) {
    WriteBatch batch;
    batch.put(records->made_id().value(), key, value);
    demand(engine.write(batch, Durability::Sync).ok());
  }
  Bytes series_key(char kind) const {
    return Bytes(1, kind) + Bytes("hub\0\0\0\0\x03\0\0\0\x04\0\0\0\x05", 16);
  }

  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random{1};
  std::unique_ptr<Records> records = Records::open(engine).value();
  Thinned thinned{engine, *records};
};

void take_owed(Kept& kept, ByteView value) {
  kept.put(kept.series_key('W'), value);
  const auto owed = kept.thinned.owed("hub", kSeries);
  const auto some = kept.thinned.owed("hub", std::nullopt, 2);
  demand(owed.ok() == some.ok());
  if (owed.ok()) demand(*owed && (*owed)->from_ns <= (*owed)->to_ns && some->size() == 1);
  // A record that is none keeps no readings from becoming windows; one of a newer version does.
  WriteBatch batch;
  const Status owes = kept.thinned.owe("hub", kSeries, 5, 7, 1, batch);
  demand(owes.ok() || owes.code() == StatusCode::Unsupported);
  if (!owes.ok()) return;
  demand(kept.engine.write(batch, Durability::Sync).ok());
  const auto next = kept.thinned.owed("hub", kSeries);
  demand(next.ok() && *next && (*next)->from_ns <= 5 && (*next)->to_ns >= 7);
}

void take_sent(Kept& kept, ByteView value) {
  kept.put(kept.series_key('X'), value);
  auto sent = kept.thinned.sent("hub", kSeries);
  if (!sent.ok()) return;
  demand(sent->spans.size() <= SentWindows::kSpansMax);
  for (const std::int64_t every_ns : {60, 7, 300})
    sent->note({4'200, 4'200 + every_ns, every_ns, kAllWindowColumns});
  demand(sent->spans.size() <= SentWindows::kSpansMax && sent->find(4'200) != nullptr);
  demand(kept.thinned.write("hub", {{kSeries, *sent}}, 1).ok());
  const auto again = kept.thinned.sent("hub", kSeries);
  demand(again.ok() && *again == *sent);
}

void take_target(Kept& kept, char kind, ByteView value) {
  const Bytes hash(16, 'h');
  kept.put(Bytes(1, kind) + Bytes("hub\0", 4) + (kind == 'Y' ? hash : Bytes()), value);
  const auto readings = kept.thinned.sent_readings("hub");
  const auto gone = kept.thinned.find_gone("hub", hash);
  if (!readings.ok() || !gone.ok()) return;
  demand(kept.thinned.write("hub", {}, 7).ok());
  demand(kept.thinned.sent_readings("hub").value() == 7);
  demand(kept.thinned.find_gone("hub", hash).value().knows_all == gone->knows_all);
}

void take_erasure(Kept& kept, ByteView value, ByteView names) {
  const Bytes number("\0\0\0\0\0\0\0\x01", 8), key = auth::make_seal_key(kept.random);
  kept.put("E" + number, value);
  kept.put("K" + number, key);
  kept.put("N" + number + Bytes(4, '\0'), auth::seal(key, 0, names));
  const auto erasures = Erasures::open(kept.engine, *kept.records, kept.random, kept.clock);
  if (!erasures.ok()) return;
  const auto order = (*erasures)->next("hub");
  if (!order) return;
  demand(order->number == 1);
  const auto named = (*erasures)->names(*order, 0);
  if (named.ok()) demand(named->size() <= names.size());
  TargetErasure answer{.target = "hub", .step = ErasureStep::Confirmed};
  demand((*erasures)->note(1, answer).ok());
  demand(Erasures::open(kept.engine, *kept.records, kept.random, kept.clock).ok());
}

}  // namespace
}  // namespace edgecase::forward

namespace edgecase::test {

void take_forward_records(std::string_view bytes) {
  if (bytes.empty()) return;
  forward::Kept kept;
  const ByteView rest = bytes.substr(1);
  switch (bytes[0]) {
    case 0: return take_owed(kept, rest);
    case 1: return take_sent(kept, rest);
    case 2: return take_target(kept, 'X', rest);
    case 3: return take_target(kept, 'Y', rest);
    case 4: return take_erasure(kept, rest, {});
    default: return take_erasure(kept, forward::kErasure, rest);
  }
}

}  // namespace edgecase::test
