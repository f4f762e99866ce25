#include "erase/erase_service.h"

#include <atomic>
#include <thread>

#include "daemon/erase/erase_room.h"

namespace edgecase::erase {
namespace {

using test::kHour;
using test::kNow;
using test::kSecond;
using test::local;
using test::Room;

// Keeps one record, which goes with whatever is erased.
class KeepingRelay final : public ErasureRelay {
 public:
  explicit KeepingRelay(Engine& engine) : engine_(engine) {
    id_ = engine.create_namespace("_forward", {Placement::Metadata}).value();
    WriteBatch batch;
    batch.put(id_, "Ykept", "canary-receipt");
    REQUIRE(engine_.write(batch, Durability::Sync).ok());
  }
  bool may_hold(const std::string&, const std::string&, const std::string&) const override {
    return false;
  }
  Status tell_kept(const catalog::Catalog&, const EraseTarget&, TimeRange,
                   const catalog::SpanTaker& take) const override {
    return take(catalog::span_of_prefix(id_, "Y"));
  }
  Status plan(const PassedErasure&, const catalog::Catalog&, const EraseTarget&,
              WriteBatch&) override {
    return ok();
  }
  void planned(std::uint64_t) override {}
  Status lift(std::uint64_t) override { return ok(); }

 private:
  Engine& engine_;
  NamespaceId id_ = 0;
};

}  // namespace

TEST_CASE("what is kept for targets of an erased device goes with it") {
  Room room;
  KeepingRelay relay(room.engine);
  room.service->pass_on_by(&relay);
  room.fill("cellar", "temp");
  REQUIRE(room.holds("canary-receipt"));
  REQUIRE(room.erase("cellar").ok());
  CHECK_FALSE(room.holds("canary-receipt"));
  room.service->pass_on_by(nullptr);
}

TEST_CASE("an erased device is gone with every name, and its neighbour stays") {
  Room room;
  room.fill("canary-device", "canary-sensor");
  room.fill("canary-device", "hum");
  room.fill("cellar", "temp");
  REQUIRE(room.devices
              ->set({"default", "canary-device"}, {.owner = "canary-owner",
                                                   .purposes = {"canary-purpose"},
                                                   .objections = {},
                                                   .location = "canary-shed",
                                                   .labels = {{"canary-label", "x"}},
                                                   .consents = {}})
              .ok());
  REQUIRE(room.retention->set({"default", {"canary-device", "*"}, 500 * kHour}).ok());
  REQUIRE(room.retention->set({"default", {"*", "*"}, 900 * kHour}).ok());
  room.reject(R"({"topic":"sensors/canary-device/x","reason":"no number","payload":"?"})");
  room.reject(R"({"topic":"sensors/cellar/x","reason":"no number","payload":"?"})");
  REQUIRE(room.holds("canary"));

  const auto begun = room.erase("canary-device");
  REQUIRE(begun.ok());
  CHECK(begun->state == ErasureState::Pending);
  CHECK(begun->readings == 20);
  CHECK(begun->series == 2);
  CHECK(begun->devices == 1);
  CHECK(begun->rules == 1);
  CHECK(begun->messages == 1);
  CHECK(begun->asked_by == "uid 7");
  CHECK_FALSE(room.holds("canary"));
  CHECK(room.readings() == 10);
  CHECK(room.readings("_rejected") == 1);
  CHECK(room.retention->rules().size() == 1);
  CHECK(room.catalog->series_count() == 2);  // cellar/temp, mqtt/message
  CHECK(room.devices->select("", "*")->empty());
  CHECK(room.erase("canary-device").status().code() == StatusCode::NotFound);

  CHECK(room.service->has_pending());
  room.clock.advance(kSecond);
  REQUIRE(room.service->drain().ok());
  CHECK_FALSE(room.service->has_pending());
  const auto done = room.service->certificate(begun->number);
  REQUIRE(done.ok());
  CHECK(done->state == ErasureState::Done);
  CHECK(done->gone_ns == begun->invisible_ns + kSecond);
  CHECK_FALSE(room.holds("canary"));
  room.restart();
  CHECK_FALSE(room.service->has_pending());
  CHECK(room.readings_of("cellar", "temp") == 10);
}

TEST_CASE("an erased sensor leaves its device, whose other readings stay") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("kitchen", "canary");
  const auto before = room.catalog->find("default", "kitchen", "canary").value();
  const auto begun = room.erase("kitchen/canary");
  REQUIRE(begun.ok());
  CHECK(begun->devices == 0);
  CHECK(begun->series_pseudonyms.size() == 1);
  CHECK_FALSE(room.holds("canary"));
  CHECK(room.readings_of("kitchen", "temp") == 10);
  // The last sensor gone, the device can still be erased.
  REQUIRE(room.erase("kitchen/temp").ok());
  CHECK(room.holds("kitchen"));
  room.restart();
  REQUIRE(room.erase("kitchen").ok());
  CHECK_FALSE(room.holds("kitchen"));
  // Numbers are not used twice, whatever was the highest.
  REQUIRE(room.write("kitchen", "canary", kNow + 2 * kHour));
  const auto after = room.catalog->find("default", "kitchen", "canary").value();
  CHECK(after.id.device > before.id.device);
}

TEST_CASE("numbers of erased devices and sensors are not used again after a restart") {
  Room room;
  room.fill("a", "x");
  room.fill("b", "x");
  room.fill("b", "y");
  const auto erased_device = room.catalog->find("default", "b", "y").value().id.device;
  REQUIRE(room.erase("b").ok());
  room.restart();
  REQUIRE(room.write("c", "x", kNow));
  CHECK(room.catalog->find("default", "c", "x").value().id.device > erased_device);
  REQUIRE(room.write("a", "y", kNow));
  const auto erased_sensor = room.catalog->find("default", "a", "y").value().id.sensor;
  REQUIRE(room.erase("a/y").ok());
  room.restart();
  REQUIRE(room.write("a", "z", kNow));
  CHECK(room.catalog->find("default", "a", "z").value().id.sensor > erased_sensor);
  CHECK(room.readings_of("a", "x") == 10);
}

TEST_CASE("a range of times takes its readings and leaves the names") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("kitchen", "hum");
  EraseRequest request = Room::request("kitchen");
  request.from_ns = kNow - 5 * kHour;
  request.to_ns = kNow - 2 * kHour;
  const auto begun = room.service->erase(local(), request);
  REQUIRE(begun.ok());
  CHECK(begun->readings == 6);
  CHECK_FALSE(begun->with_names);
  CHECK(room.readings_of("kitchen", "temp") == 7);
  CHECK(room.catalog->series_count() == 2);
  request.to_ns = request.from_ns;
  CHECK(room.service->erase(local(), request).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("the name of a device that is erased stays its origin's, also after a start") {
  Room room;
  // What it is called here.
  const auto write = [&](catalog::OriginNumber origin, std::int64_t time_ns) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", "pump", "t", time_ns, wire::Value::of_int64(1)});
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    const std::vector<catalog::OriginNumber> origins{origin};
    REQUIRE(room.pipeline->ingest(*authorized, nullptr, {}, {}, nullptr, {}, origins).ok());
    const auto names = room.catalog->placed_names("default", "pump", origins);
    REQUIRE(names.size() == 1);
    return names.front();
  };
  REQUIRE(write(5, kNow - kHour) == "pump");
  REQUIRE(room.erase("pump").ok());
  SUBCASE("at once") {}
  SUBCASE("after a start") {
    room.restart();
  }
  CHECK(write(6, kNow + kHour).starts_with("pump~"));
  CHECK(write(catalog::kOwnOrigin, kNow + kHour).starts_with("pump~"));
  CHECK(write(5, kNow + kHour) == "pump");
}

TEST_CASE("an owner's devices go in every namespace, and nobody else's") {
  Room room;
  room.fill("a", "x");
  room.fill("b", "x", "plant");
  room.fill("c", "x");
  for (const auto& name : {catalog::DeviceName{"default", "a"}, catalog::DeviceName{"plant", "b"},
                           catalog::DeviceName{"plant", "never-wrote"}}) {
    REQUIRE(room.devices->update(name, [](auto& said) { said.owner = "canary-owner"; }).ok());
  }
  EraseRequest request;
  request.devices.owner = "canary-owner";
  const auto begun = room.service->erase(local(), request);
  REQUIRE(begun.ok());
  CHECK(begun->series == 2);
  CHECK(begun->devices == 3);
  CHECK_FALSE(begun->owner_pseudonym.empty());
  CHECK_FALSE(room.holds("canary-owner"));
  CHECK_FALSE(room.holds("never-wrote"));
  CHECK(room.readings() == 10);
  CHECK(room.readings("plant") == 0);
  CHECK(room.service->erase(local(), request).status().code() == StatusCode::NotFound);
  CHECK(room.service->certificates(std::nullopt, "canary-owner", 10)->size() == 1);
  CHECK(room.service->certificates(std::nullopt, "somebody", 10)->empty());
  CHECK(room.service->certificates(catalog::DeviceName{"plant", "b"}, "", 10)->size() == 1);
  CHECK(room.service->certificates(catalog::DeviceName{"default", "b"}, "", 10)->empty());
}

TEST_CASE("nobody erases more than the token's scope allows") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("kitchen", "hum");
  room.fill("cellar", "temp");
  const auto erase = [&](const std::string& scope, const std::string& selector) {
    return room.service->erase(test::token(scope), Room::request(selector));
  };
  CHECK(erase("", "kitchen").status().code() == StatusCode::NotAllowed);
  CHECK(erase("cellar/*", "kitchen").status().code() == StatusCode::NotAllowed);
  CHECK(erase("ce*/temp", "*/hum").status().code() == StatusCode::NotAllowed);
  CHECK(room.readings() == 30);
  // A token that may not erase every sensor does not erase the device.
  const auto begun = erase("kitchen/temp", "*/*");
  REQUIRE(begun.ok());
  CHECK(begun->devices == 0);
  CHECK(room.readings() == 20);
  CHECK(room.readings_of("kitchen", "hum") == 10);
  CHECK(room.readings_of("cellar", "temp") == 10);
}

TEST_CASE("a preview tells what would go and changes nothing") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("cellar", "temp");
  const auto preview = room.service->preview(local(), Room::request("kitchen"));
  REQUIRE(preview.ok());
  CHECK(preview->series == 1);
  CHECK(preview->amount.readings == 10);
  CHECK(preview->amount.first_ns == kNow - 10 * kHour);
  CHECK(preview->amount.last_ns == kNow - kHour);
  CHECK_FALSE(preview->is_everything);
  CHECK(room.service->preview(local(), Room::request("*"))->is_everything);
  CHECK(room.service->preview(local(), Room::request("nothing")).status().code() ==
        StatusCode::NotFound);
  CHECK(room.readings() == 20);
  CHECK(room.service->fences().size() == 0);
}

TEST_CASE("records are written also with readings that are refused") {
  Room room;
  room.fill("kitchen", "temp");
  REQUIRE(room.erase("kitchen").ok());
  const NamespaceId id = room.engine.create_namespace("records", {}).value();
  wire::ReadingBatch batch;
  batch.readings.push_back({"default", "kitchen", "temp", kNow - kHour, wire::Value::of_int64(1)});
  const auto authorized = auth::authorize_write(local(), batch);
  REQUIRE(authorized.ok());
  const ingest::RecordChange record{ingest::RecordChange::Kind::Put, id, "a", "1"};
  ingest::Outcome outcome;
  REQUIRE(room.pipeline->ingest(*authorized, &outcome, {}, {&record, 1}).ok());
  CHECK(outcome.of(ingest::Loss::Erased) == 1);
  CHECK(room.engine.get(id, "a", {}).ok());
}

TEST_CASE("what was erased does not come back, and what is new does") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("cellar", "temp");
  REQUIRE(room.erase("kitchen").ok());
  EraseRequest hours = Room::request("cellar/temp");
  hours.from_ns = kNow - 5 * kHour;
  hours.to_ns = kNow - 2 * kHour;
  REQUIRE(room.service->erase(local(), hours).ok());
  for (const bool restarted : {false, true}) {
    CAPTURE(restarted);
    if (restarted) room.restart();
    CHECK_FALSE(room.write("kitchen", "temp", kNow - kHour));
    CHECK_FALSE(room.write("kitchen", "another", kNow - 900 * kHour));
    CHECK(room.catalog->devices("default", "kitchen").empty());
    CHECK_FALSE(room.write("cellar", "temp", kNow - 5 * kHour));
    CHECK(room.write("cellar", "temp", kNow - 2 * kHour));
    CHECK(room.write("cellar", "temp", kNow - 6 * kHour));
    CHECK(room.write("cellar", "other", kNow - 4 * kHour));
    CHECK(room.write("attic", "temp", kNow - 4 * kHour));
    CHECK(room.write("kitchen", "temp", kNow - 4 * kHour, "plant"));
  }
  CHECK(room.service->fences().refused_count() == 3);
  room.clock.advance(kSecond);
  CHECK(room.write("kitchen", "temp", kNow + kSecond));
  CHECK(room.readings_of("kitchen", "temp") == 1);
}

TEST_CASE("a device whose clock is ahead by less than an hour does not bring back what it wrote") {
  Room room;
  REQUIRE(room.write("near", "x", kNow + kHour / 2));
  REQUIRE(room.write("far", "x", kNow + 50 * kHour));
  REQUIRE(room.erase("near").ok());
  REQUIRE(room.erase("far").ok());
  CHECK_FALSE(room.write("near", "x", kNow + kHour / 2));
  CHECK(room.write("near", "x", kNow + kHour / 2 + 1));
  CHECK_FALSE(room.write("far", "x", kNow + kHour - 1));
  CHECK(room.write("far", "x", kNow + kHour));
}

TEST_CASE("with a clock that is behind nothing that was erased comes back either") {
  Room room;
  room.fill("kitchen", "temp");
  SUBCASE("at 1970: up to the newest that was erased, where nothing else tells the time") {
    room.clock.set_wall_ns(kHour);
    room.clock.set_trust(ClockTrust::Untrusted);
    REQUIRE(room.erase("kitchen").ok());
    CHECK_FALSE(room.write("kitchen", "temp", kNow - 10 * kHour));
    CHECK_FALSE(room.write("kitchen", "temp", kNow - kHour));
    CHECK(room.write("kitchen", "temp", kNow - kHour + 1));
  }
  SUBCASE("days behind: up to the time that the store has known") {
    room.clock.set_wall_ns(kNow - 100 * kHour);
    room.engine.set_expiry_now_ns(kNow);
    REQUIRE(room.erase("kitchen").ok());
    CHECK_FALSE(room.write("kitchen", "temp", kNow - kHour));
    CHECK_FALSE(room.write("kitchen", "temp", kNow - 1));
    CHECK(room.write("kitchen", "temp", kNow));
  }
}

TEST_CASE("bytes that cannot go yet leave the erasure pending, and go when they can") {
  Room room;
  room.fill("kitchen", "temp");
  room.engine.fail_erasures(unavailable("the values drive is away"));
  const auto begun = room.erase("kitchen");
  REQUIRE(begun.ok());
  CHECK(room.service->drain().code() == StatusCode::Unavailable);
  CHECK(room.service->obstacle().code() == StatusCode::Unavailable);
  // Nobody is kept waiting for a drive.
  const auto waited = room.service->wait(begun->number, 3600 * kSecond);
  REQUIRE(waited.ok());
  CHECK(waited->state == ErasureState::Pending);
  CHECK(room.readings() == 0);
  room.restart();
  CHECK(room.service->has_pending());
  CHECK(room.service->drain().code() == StatusCode::Unavailable);
  room.engine.fail_erasures(ok());
  CHECK(room.service->drain().ok());
  CHECK(room.service->certificate(begun->number)->state == ErasureState::Done);
  CHECK(room.service->obstacle().ok());
  CHECK(room.service->certificate(77).status().code() == StatusCode::NotFound);
}

TEST_CASE("an erasure that cannot be made durable has changed nothing") {
  Room room;
  room.fill("kitchen", "temp");
  room.engine.fail_next_write(out_of_space("full"));
  CHECK(room.erase("kitchen").status().code() == StatusCode::OutOfSpace);
  CHECK(room.readings_of("kitchen", "temp") == 10);
  CHECK(room.service->fences().size() == 0);
  CHECK_FALSE(room.service->has_pending());
  CHECK(room.write("kitchen", "temp", kNow - 30 * kHour));
  // The other number may be on the drive all the same.
  const auto again = room.erase("kitchen");
  REQUIRE(again.ok());
  CHECK(again->number == 2);
  CHECK(room.readings() == 0);
}

TEST_CASE("more ranges than a batch holds are erased all or not at all, whichever write fails") {
  // Every second device, so that no ranges are neighbours: three ranges each, and what is said.
  constexpr int kDevices = 400;
  int refusals = 0;
  for (std::uint64_t crash_after = 0;; ++crash_after) {
    CAPTURE(crash_after);
    Room room;
    for (int i = 0; i < kDevices; ++i) {
      const std::string name = (i % 2 == 0 ? "stay" : "canary") + std::to_string(i);
      REQUIRE(room.write(name, "x", kNow - kHour));
    }
    REQUIRE(room.devices->update({"default", "canary1"}, [](auto& s) { s.owner = "o"; }).ok());
    const std::uint64_t before = room.engine.stats().batches;
    room.engine.fail_writes_after(crash_after, io_error("gone"));
    const auto begun = room.erase("canary*");
    const std::uint64_t written = room.engine.stats().batches - before;
    room.engine.fail_writes(ok());
    if (!begun.ok()) {
      // Ranges were written ahead; neither now nor after a restart do they mean anything, nor to
      // another erasure.
      ++refusals;
      const bool is_crash = crash_after % 2 == 0;
      if (is_crash) room.restart();
      CHECK(room.readings() == kDevices);
      // A certificate that may be durable all the same keeps its number until a start knows.
      const auto other = room.erase("stay0");
      REQUIRE(other.ok());
      CHECK(other->number == (is_crash ? 1 : 2));
      CHECK(room.service->drain().ok());
      room.restart();
      CHECK(room.readings() == kDevices - 1);
      CHECK(room.catalog->devices("default", "canary*").size() == kDevices / 2);
      CHECK(room.write("canary1", "x", kNow - 2 * kHour));
      continue;
    }
    CHECK(room.catalog->devices("default", "*").size() == kDevices / 2);
    room.restart();
    CHECK_FALSE(room.holds("canary"));
    CHECK(room.readings() == kDevices / 2);
    CHECK(room.catalog->devices("default", "*").size() == kDevices / 2);
    CHECK(room.service->has_pending());
    CHECK(room.service->drain().ok());
    CHECK_FALSE(room.write("canary1", "x", kNow - kHour));
    CHECK(room.write("stay2", "x", kNow - 2 * kHour));
    if (written < crash_after) break;  // nothing was cut short
    REQUIRE(crash_after < 50);
  }
  CHECK(refusals >= 3);
}

TEST_CASE(
    "readings that are written while their device is erased are gone or are new, never between") {
  Room room;
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::thread writer([&] {
    // doctest's assertions of two threads at once are allowed; a failed REQUIRE would throw here.
    for (int i = 0; !stop; ++i) {
      wire::ReadingBatch batch;
      const std::string sensor = "s" + std::to_string(i % 7);
      batch.readings.push_back(
          {"default", "kitchen", sensor, std::nullopt, wire::Value::of_int64(i)});
      const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
      const auto authorized = auth::authorize_write(principal, batch);
      if (!authorized.ok() || !room.pipeline->ingest(*authorized).ok()) return;
      ++written;
    }
  });
  for (int round = 0; round < 30;) {
    const int before = written;
    while (written < before + 20) std::this_thread::yield();
    if (room.erase("kitchen").ok()) ++round;
    // Every key that is there belongs to a series that is there.
    const Fences::Closed closed = room.service->fences().close();
    std::uint64_t known = 0;
    for (const auto& entry : room.catalog->select("default", {}))
      known += room.readings_of(entry.device, entry.sensor);
    CHECK(known == room.readings());
  }
  stop = true;
  writer.join();
}

TEST_CASE("certificates are listed newest first, and their numbers go on after a restart") {
  Room room;
  for (int i = 0; i < 3; ++i) {
    room.clock.advance(kSecond);
    REQUIRE(room.write("kitchen", "temp", room.clock.wall_ns()));
    REQUIRE(room.erase("kitchen").ok());
    REQUIRE(room.service->drain().ok());
  }
  const auto all = room.service->certificates(std::nullopt, "", 2);
  REQUIRE(all.ok());
  REQUIRE(all->size() == 2);
  CHECK(all->front().number == 3);
  room.restart();
  room.clock.advance(kSecond);
  REQUIRE(room.write("kitchen", "temp", room.clock.wall_ns()));
  CHECK(room.erase("kitchen")->number == 4);
}

}  // namespace edgecase::erase
