#!/usr/bin/env python3
"""storage.on-full: drives that are filled several times over, and go on taking readings. The oldest are evicted, or
become windows of their tiers."""
import json
import os
import random
import re
import signal
import time
import unittest

from daemon_process import Daemon, Place, until
from residue import Image

IMAGE_MIB = 96
# Where every step costs ten times as much, just so often that something has to go.
TIMES_FILLED = 3 if int(os.environ.get("EDGECASE_TEST_SHARE", "100")) == 100 else 1.3
DEVICES = 4
READINGS = 200          # a batch, over all devices
TEXT_BYTES = 1 << 10    # of each, in random digits
LONGEST_REFUSAL_SECONDS = 20
KEPT_NEWEST = 5         # batches that must be there whole at any time
SECOND_NS = 1_000_000_000


class Filled(unittest.TestCase):
    STORAGE = ""

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.image = Image(IMAGE_MIB)
        self.addCleanup(self.image.remove)
        if self.image.reason:
            self.skipTest(self.image.reason)
        self.place.write_config(storage=self.STORAGE + '\nmemory-limit = "32MiB"\nwal-limit = "16MiB"')
        self.daemon = None
        self.addCleanup(lambda: self.daemon and self.daemon.stop(signal.SIGKILL))
        self.random = random.Random(int(os.environ.get("EDGECASE_TEST_SEED", "1")))
        # Some way back, so that no reading is newer than the clock.
        self.begin_s = int(time.time()) - 1_000_000

    def post(self, body):
        code, answer = self.daemon.request("POST", "/api/v1/readings", body)
        return code, json.loads(answer)

    def batch(self, number):
        """READINGS lines; the batches follow each other in time, a second a reading of each device."""
        lines = []
        for i in range(READINGS):
            second = self.begin_s + number * (READINGS // DEVICES) + i // DEVICES
            text = self.random.getrandbits(TEXT_BYTES * 4)
            lines.append(json.dumps({"device": f"d{i % DEVICES}", "sensor": "text",
                                     "time": second * SECOND_NS, "value": f"{text:0{TEXT_BYTES}x}"}))
        return "\n".join(lines)

    def status(self):
        return json.loads(self.place.cli("status", "--json").stdout)

    def is_taken(self, body):
        """Whether all of it was; else it may come again."""
        code, answer = self.post(body)
        self.assertIn(code, (200, 503), answer)
        if code == 200:
            self.assertEqual(answer["stored"], READINGS)
        return code == 200

    def fill(self, first, megabytes):
        """Batches from `first` on, so many bytes; the number of the next, and the longest time until one was taken."""
        longest, number = 0.0, first
        while (number - first) * READINGS * TEXT_BYTES < megabytes << 20:
            began, body = time.monotonic(), self.batch(number)
            until(lambda body=body: self.is_taken(body), "a batch is taken", LONGEST_REFUSAL_SECONDS)
            longest = max(longest, time.monotonic() - began)
            number += 1
        return number, longest


class EvictFlow(Filled):
    STORAGE = 'on-full = "evict-oldest"'

    def check_what_is_there(self, written):
        """The newest are whole, the oldest gone, and nothing is missing in between."""
        # More may be evicted while it is read: then what an answer began with is gone when it ends.
        evicted, answers = None, []
        while evicted is None or evicted != self.status()["eviction"]:
            evicted = self.status()["eviction"]
            answers = [self.place.cli("query", f"d{device}/text", "--format", "ndjson") for device in range(DEVICES)]
        self.assertGreater(evicted["evictions"] + (evicted["before"] is not None), 0)
        counts = []
        for answer in answers:
            self.assertEqual(answer.returncode, 0, answer.stderr)
            times = [json.loads(line)["time"] for line in answer.stdout.splitlines()]
            counts.append(len(times))
            self.assertTrue(all(each >= evicted["before"] for each in times))
            each_s = [int(time.mktime(time.strptime(t[:19], "%Y-%m-%dT%H:%M:%S"))) for t in times]
            self.assertEqual(each_s, list(range(each_s[0], each_s[0] + len(each_s))))
            newest = self.begin_s + written * (READINGS // DEVICES) - 1
            self.assertEqual(each_s[-1] - each_s[0] + 1, len(each_s))
            self.assertEqual(each_s[-1] - int(time.mktime(time.gmtime(newest))), 0)
            self.assertGreaterEqual(len(times), KEPT_NEWEST * READINGS // DEVICES)
            self.assertLess(len(times), written * READINGS // DEVICES)
        return counts

    def fill_and_check(self):
        self.daemon = Daemon(self.place)
        written, longest = self.fill(0, int(IMAGE_MIB * TIMES_FILLED))
        print(f"{written} batches, each taken within {longest:.1f} s", flush=True)
        self.check_what_is_there(written)
        status = self.status()["eviction"]
        self.assertGreater(status["readings"], 0)
        self.assertGreater(status["bytes"], 0)
        self.assertIsNone(status["blocked"])
        self.assertRegex(self.daemon.log(), r"evict: gave up \d+ readings from before ")
        _, metrics = self.daemon.request("GET", "/metrics")
        told = int(float(re.search(r"^edgecase_evicted_readings_total (\S+)$", metrics, re.M).group(1)))
        self.assertGreaterEqual(told, status["readings"])
        self.assertGreater(len(re.findall("evict: gave up", self.daemon.log())), 1)
        audit = json.loads(self.place.cli("audit", "--json").stdout)["records"]
        audited = [(each["result"], each["count"]) for each in audit if each["operation"] == "evict"]
        self.assertEqual({result for result, _ in audited}, {"begun", "ok"})
        self.assertEqual(sum(count for result, count in audited if result == "ok"), told)

        # Old readings that come again are told apart, and refused.
        code, answer = self.post(self.batch(0))
        self.assertEqual(code, 200, answer)
        self.assertEqual((answer["stored"], answer["evicted"]), (0, READINGS))

        # Killed and started again, nothing comes back, and it goes on.
        before = self.check_what_is_there(written)
        self.daemon.kill_after(0)
        self.daemon = Daemon(self.place)
        after = self.check_what_is_there(written)
        for count_before, count_after in zip(before, after):
            self.assertLessEqual(count_after, count_before)
        written, _ = self.fill(written, 8)
        self.check_what_is_there(written)
        self.assertEqual(self.daemon.stop(), 0)
        checked = self.place.cli("check", "--config", self.place.config)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_small_values_drive_takes_readings_for_ever(self):
        self.image.hold(self.place, "values")
        self.fill_and_check()

    def test_so_does_one_drive_for_everything(self):
        self.image.hold(self.place)
        self.fill_and_check()


class ThinFlow(Filled):
    STORAGE = 'on-full = "thin-oldest"\nretention = "30d then 1m:90d then 10m:forever"'

    def counted(self, every="10m"):
        """Readings of each device, as windows count them."""
        counts = []
        for device in range(DEVICES):
            arguments = ("query", f"d{device}/text", "--every", every, "--agg", "count", "--format", "ndjson")
            # Where room is short, what has become windows goes before an answer of it ends: that is cut then.
            for _ in range(10):
                answer = self.place.cli(*arguments)
                if answer.returncode == 0:
                    break
            self.assertEqual(answer.returncode, 0, answer.stderr)
            counts.append(sum(json.loads(line)["value"] for line in answer.stdout.splitlines()))
        return counts

    def test_the_oldest_become_windows_and_none_is_missing(self):
        self.image.hold(self.place, "values")
        self.daemon = Daemon(self.place)
        written, longest = self.fill(0, int(IMAGE_MIB * TIMES_FILLED))
        print(f"{written} batches, each taken within {longest:.1f} s", flush=True)
        every = [written * READINGS // DEVICES] * DEVICES
        self.assertEqual(self.counted(), every)
        status = self.status()["eviction"]
        self.assertEqual((status["evictions"], status["blocked"]), (0, None))
        self.assertGreater(status["thinned_readings"], 0)
        self.assertRegex(self.daemon.log(), r"evict: \d+ readings from before .* became \d+ windows .* short of room")
        _, metrics = self.daemon.request("GET", "/metrics")
        self.assertRegex(metrics, r"edgecase_thinned_for_room_readings_total [1-9]")
        audit = json.loads(self.place.cli("audit", "--json").stdout)["records"]
        self.assertGreater(sum(each["count"] for each in audit if each["operation"] == "thin"), 0)
        _, answer = self.post(self.batch(0))
        self.assertEqual((answer["stored"], answer["expired"]), (0, READINGS))

        self.daemon.kill_after(0)
        self.daemon = Daemon(self.place)
        self.assertEqual(self.counted(), every)
        self.assertEqual(self.counted("1m"), every)
        self.assertEqual(self.daemon.stop(), 0)
        checked = self.place.cli("check", "--config", self.place.config)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_without_tiers_writes_are_refused_until_there_are_some(self):
        self.image.hold(self.place, "values")
        self.place.write_config(storage=self.STORAGE.split("\n", maxsplit=1)[0] +
                                '\nmemory-limit = "32MiB"\nwal-limit = "16MiB"')
        self.daemon = Daemon(self.place)
        self.assertIn("no rule of retention has tiers", self.daemon.log())
        written = 0
        while self.is_taken(self.batch(written)):
            written += 1
        until(lambda: self.status()["eviction"]["blocked"], "the status to say so")
        self.assertIn("no rule of retention has tiers", self.status()["eviction"]["blocked"])
        self.assertIn("no room can be made", self.place.cli("status").stdout)
        self.assertEqual(self.counted(), [written * READINGS // DEVICES] * DEVICES)
        answer = self.place.cli("retention", "set", "*", "30d", "--then", "1m:forever", "--yes")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        until(lambda: self.is_taken(self.batch(written)), "readings to be taken again", 60)
        self.assertEqual(self.counted(), [(written + 1) * READINGS // DEVICES] * DEVICES)
        self.assertIsNone(self.status()["eviction"]["blocked"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
