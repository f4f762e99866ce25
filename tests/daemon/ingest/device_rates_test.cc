#include "ingest/device_rates.h"

#include <doctest/doctest.h>

#include <vector>

using namespace edgecase;
using namespace edgecase::ingest;

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kFirstNs = 60 * kSecondNs;

std::vector<catalog::SeriesId> readings(std::uint32_t device, std::size_t count) {
  return std::vector<catalog::SeriesId>(count, {.namespace_id = 1, .device = device, .sensor = 1});
}

}  // namespace

TEST_CASE("device rates: without a limit nothing is counted and nothing is kept") {
  DeviceRates rates({.per_second = 0, .burst = 1, .devices_max = 10});
  Pacing pacing;
  rates.charge(readings(1, 1'000'000), kFirstNs);
  CHECK(rates.owed_ns(readings(1, 1), kFirstNs) == 0);
  CHECK(rates.admit(readings(1, 1), kFirstNs, pacing));
  CHECK(rates.held() == 0);
}

TEST_CASE("device rates: on the average a device gets its rate, whatever comes at once" *
          doctest::test_suite("bulk")) {
  for (const std::size_t batch : {1u, 7u, 100u, 5'000u}) {
    CAPTURE(batch);
    DeviceRates rates({.per_second = 100, .burst = 50, .devices_max = 10});
    std::size_t taken = 0;
    std::int64_t now = kFirstNs;
    // Tries 250 times a second for a minute.
    for (; now < kFirstNs + 60 * kSecondNs; now += kSecondNs / 250) {
      Pacing pacing;
      if (!rates.admit(readings(1, batch), now, pacing)) continue;
      rates.charge(readings(1, batch), now);
      taken += batch;
    }
    CHECK(taken <= 60 * 100 + 50 + batch);
    CHECK(taken >= 60 * 100);
    CHECK(rates.refused() > 0);
  }
}

TEST_CASE("device rates: one that owes is told how long, and others owe nothing") {
  DeviceRates rates({.per_second = 10, .burst = 20, .devices_max = 10});
  rates.charge(readings(1, 20), kFirstNs);
  CHECK(rates.owed_ns(readings(1, 1), kFirstNs) == 0);
  rates.charge(readings(1, 30), kFirstNs);
  CHECK(rates.owed_ns(readings(1, 1), kFirstNs) == 3 * kSecondNs);
  CHECK(rates.owed_ns(readings(2, 1), kFirstNs) == 0);
  CHECK(rates.owed_ns(readings(1, 1), kFirstNs + 2 * kSecondNs) == kSecondNs);
  CHECK(rates.owed_ns(readings(1, 1), kFirstNs + 3 * kSecondNs) == 0);
  Pacing pacing;
  std::vector<catalog::SeriesId> both = readings(2, 1);
  both.push_back(readings(1, 1).front());
  CHECK_FALSE(rates.admit(both, kFirstNs, pacing));
  CHECK(pacing.owed_ns == 3 * kSecondNs);
}

TEST_CASE("device rates: a request in pieces is taken to its end, but no device that owes joins") {
  DeviceRates rates({.per_second = 10, .burst = 10, .devices_max = 10});
  rates.charge(readings(2, 100), kFirstNs);
  Pacing pacing;
  for (int piece = 0; piece < 5; ++piece) {
    CHECK(rates.admit(readings(1, 100), kFirstNs, pacing));
    rates.charge(readings(1, 100), kFirstNs);
  }
  CHECK_FALSE(rates.admit(readings(2, 1), kFirstNs, pacing));
  Pacing next;
  CHECK_FALSE(rates.admit(readings(1, 1), kFirstNs, next));
}

TEST_CASE("device rates: memory is that of so many devices, however many come") {
  constexpr std::uint32_t kDevices = 100;
  DeviceRates rates({.per_second = 1, .burst = 1, .devices_max = kDevices});
  for (std::uint32_t device = 1; device <= 10 * kDevices; ++device) {
    rates.charge(readings(device, 10), kFirstNs);
    CHECK(rates.held() <= kDevices);
  }
  // Devices for which there was no room share a bucket: a limit that is not kept would be none.
  CHECK(rates.owed_ns(readings(10 * kDevices, 1), kFirstNs) > 0);
  // Once the others have paid there is room, and nobody pays for strangers.
  const std::int64_t later = kFirstNs + 11 * kSecondNs;
  CHECK(rates.owed_ns(readings(10 * kDevices, 1), later) == 0);
  rates.charge(readings(10 * kDevices, 1), later);
  CHECK(rates.held() == 1);
}
