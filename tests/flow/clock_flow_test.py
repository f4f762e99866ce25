#!/usr/bin/env python3
"""Clocks that are wrong, on a real daemon: what is hidden, what is kept, what says so; the clock is a library in it."""
import json
import os
import re
import struct
import unittest
import urllib.request

from daemon_process import Daemon, Place, until

LIBRARY = os.environ["EDGECASE_SHIFTED_CLOCK"]
HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
LEAP_NS = 73 * 365 * DAY_NS
BLOBS = 3
BLOB_BYTES = 1 << 20


class ClockFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.place.write_config(storage='expiry = "exact"\nretention = "30d"', more='[audit]\nmode = "strict"\n')
        self.clock = os.path.join(self.place.path, "clock")
        self.wall_ns = self.boot_ns = self.confirmed = 0
        self.set_clock()
        self.start()
        self.addCleanup(lambda: self.daemon.stop())

    def start(self):
        # Looks each second: as often as a watchdog wants to hear of it.
        self.daemon = Daemon(self.place, watchdog_microseconds=1_000_000,
                             environment={"LD_PRELOAD": LIBRARY, "EDGECASE_TEST_CLOCK": self.clock})

    def restart(self):
        self.assertEqual(self.daemon.stop(), 0)
        self.start()

    def set_clock(self):
        # In place: the daemon has it mapped.
        mode = "r+b" if os.path.exists(self.clock) else "wb"
        with open(self.clock, mode, buffering=0) as file:
            file.write(struct.pack("=qqq", self.wall_ns, self.boot_ns, self.confirmed))

    def leap(self, ns):
        """Somebody sets the clock."""
        self.wall_ns += ns
        self.set_clock()

    def confirm(self, confirmed=1):
        self.confirmed = confirmed
        self.set_clock()

    def run_on(self, ns):
        """The machine runs for so long."""
        self.wall_ns += ns
        self.boot_ns += ns
        self.set_clock()

    def ok(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def clock_status(self):
        self.daemon.hear()
        return json.loads(self.ok("status", "--json"))["clock"]

    def metric(self, name):
        code, text = self.daemon.request("GET", "/metrics")
        self.assertEqual(code, 200)
        return int(re.search(rf"^edgecase_expiry_{name} (\d+)$", text, re.MULTILINE).group(1))

    def audited(self):
        records = json.loads(self.ok("audit", "--json"))["records"]
        return [r["operation"] for r in records if r["operation"].startswith("expiry.")]

    def missing(self):
        """What the report says is missing of timely deletion."""
        features = json.loads(self.ok("report", "--json"))["features"]
        return {each["feature"]: each["missing"] for each in features}["timely deletion"]

    def fill(self):
        for i in range(BLOBS):
            request = urllib.request.Request(f"http://localhost:{self.daemon.port()}/api/v1/blob/default/d/x{i}",
                                             os.urandom(BLOB_BYTES), method="PUT")
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.assertEqual(answer.status, 201)
        self.restart()  # which writes what the log holds into tables
        until(lambda: self.value_bytes() > BLOBS * BLOB_BYTES, "flushed")

    def count(self):
        rows = self.ok("query", "d", "--agg", "count", "--format", "ndjson").splitlines()
        return sum(json.loads(row)["value"] for row in rows)

    def value_bytes(self):
        values = os.path.join(self.place.path, "values")
        total = 0
        for name in os.listdir(values):
            try:
                total += os.path.getsize(os.path.join(values, name)) if name.endswith(".val") else 0
            except FileNotFoundError:
                pass  # it went meanwhile
        return total

    def leap_until_followed(self):
        self.leap(LEAP_NS)
        until(lambda: self.clock_status()["expiry_waits"] == "jump", "waited for")
        self.run_on(HOUR_NS)
        return until(lambda: self.clock_status()["held_bytes"], "held")

    def test_what_a_leap_hides_is_kept_and_told_of(self):
        self.fill()
        full_bytes = self.value_bytes()
        at_first = self.clock_status()
        self.assertTrue(at_first["trusted"])
        self.assertFalse(at_first["synchronised"])
        self.assertIsNone(at_first["expiry_waits"])
        self.assertIsNone(self.missing())
        self.assertEqual((at_first["held_bytes"], at_first["held_seconds"]), (0, None))

        self.leap(LEAP_NS)
        until(lambda: self.clock_status()["expiry_waits"] == "jump", "waited for")
        until(lambda: "over an hour ahead" in self.daemon.log(), "logged")
        self.assertEqual(self.metric("waits"), 1)
        self.assertEqual(self.count(), BLOBS)
        self.assertIn("leapt ahead: until", self.missing())

        self.run_on(HOUR_NS)
        held_bytes = until(lambda: self.clock_status()["held_bytes"], "held")
        self.assertGreater(held_bytes, BLOBS * BLOB_BYTES)
        self.assertEqual(self.metric("held_bytes"), held_bytes)
        self.assertEqual(self.metric("waits"), 0)
        self.assertIsNotNone(self.clock_status()["held_seconds"])
        until(lambda: self.audited() == ["expiry.held"], "recorded")
        self.assertIn(f"the clock leapt, and {held_bytes} bytes", self.daemon.log())
        self.assertEqual(self.count(), 0)
        self.assertIn(f"{held_bytes} bytes", self.missing())
        self.assertGreaterEqual(self.value_bytes(), full_bytes)

        self.leap(-LEAP_NS)
        until(lambda: self.clock_status()["held_bytes"] == 0, "set right")
        self.assertEqual(self.count(), BLOBS)
        until(lambda: self.audited() == ["expiry.held", "expiry.released"], "recorded")

        self.leap_until_followed()
        until(lambda: len(self.audited()) == 3, "recorded")
        self.confirm()
        until(lambda: self.value_bytes() < BLOB_BYTES, "gone")
        self.assertEqual(self.count(), 0)
        until(lambda: self.audited() == ["expiry.held", "expiry.released"] * 2, "recorded")
        self.assertEqual(self.metric("held_bytes"), 0)

    def test_a_day_later_what_was_held_goes(self):
        self.fill()
        self.leap_until_followed()
        self.run_on(DAY_NS)
        until(lambda: self.value_bytes() < BLOB_BYTES, "gone")
        self.assertEqual(self.clock_status()["held_bytes"], 0)

    def test_a_clock_behind_what_the_store_has_known_is_not_trusted(self):
        self.fill()
        self.assertTrue(self.clock_status()["trusted"])
        self.leap(-3 * DAY_NS)
        self.restart()
        self.assertFalse(self.clock_status()["trusted"])
        self.assertEqual(self.count(), BLOBS)
        self.confirm()
        self.assertTrue(self.clock_status()["trusted"])
        self.confirm(0)
        self.assertFalse(self.clock_status()["trusted"])
        self.leap(3 * DAY_NS)
        self.assertTrue(self.clock_status()["trusted"])


if __name__ == "__main__":
    unittest.main()
