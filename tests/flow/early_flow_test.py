#!/usr/bin/env python3
"""A real daemon whose clock is not right yet: what it takes without a time gets its own once the clock is."""
import calendar
import json
import os
import signal
import struct
import time
import unittest

from daemon_process import Daemon, Place, until

LIBRARY = os.environ["EDGECASE_SHIFTED_CLOCK"]
SECOND_NS = 10**9
UNDATED = "2225-01-01"
BLOB = "/api/v1/blob/default/board/blob"
BOOTS = ("a" * 32, "b" * 32)


class EarlyFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.place.write_config(storage='retention = "1d"')
        self.clock = os.path.join(self.place.path, "clock")
        # Started a minute ago: longer than the retention would be the end of what came before it.
        self.boot_ns = 60 * SECOND_NS - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.set_clock(-time.time_ns())
        self.start(BOOTS[0])
        self.addCleanup(lambda: self.daemon.stop())

    def start(self, boot):
        self.daemon = Daemon(self.place, environment={"LD_PRELOAD": LIBRARY, "EDGECASE_TEST_CLOCK": self.clock,
                                                      "EDGECASE_BOOT_ID": boot})

    def kill(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait()
        self.daemon.stop()

    def set_clock(self, wall_ns):
        # In place: the daemon has it mapped.
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb", buffering=0) as file:
            file.write(struct.pack("=qqq", wall_ns, self.boot_ns, 0))

    def ok(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def status(self):
        return json.loads(self.ok("status", "--json"))["clock"]

    def times(self, selector, *more):
        rows = self.ok("query", selector, "--format", "ndjson", *more).splitlines()
        return [json.loads(row)["time"] for row in rows]

    def send(self, sensor):
        """Stored without a time; between which moments that was."""
        before = time.time_ns()
        self.ok("write", f"board/{sensor}", "1")
        return before, time.time_ns()

    def send_blob(self):
        before = time.time_ns()
        code, answer = self.daemon.request("PUT", BLOB, b"a picture")
        self.assertEqual(code, 201)
        self.told = json.loads(answer)["time"]
        return before, time.time_ns()

    def make_right(self):
        self.set_clock(0)
        until(lambda: self.status()["undated"]["waiting_periods"] == 0, "dated")
        self.assertTrue(self.status()["trusted"])

    def assert_between(self, text, moments):
        whole, rest = text.rstrip("Z").split(".")
        seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
        at_ns = seconds * SECOND_NS + int(rest.ljust(9, "0"))
        self.assertTrue(moments[0] <= at_ns <= moments[1], f"{text}: {at_ns} is not within {moments}")

    def test_dated_once_the_clock_is_right(self):
        self.assertFalse(self.status()["trusted"])
        sent = {"first": self.send("first"), "blob": self.send_blob()}
        self.kill()
        self.start(BOOTS[0])
        sent["second"] = self.send("second")
        for sensor in sent:
            self.assertGreater(self.times(f"board/{sensor}")[0], UNDATED)
        self.assertEqual(self.status()["undated"]["waiting_periods"], 1)
        self.assertEqual(self.daemon.request("GET", f"{BLOB}?time={self.told}"), (200, "a picture"))
        self.make_right()
        self.assertEqual(self.daemon.request("GET", f"{BLOB}?time={self.told}"), (200, "a picture"))
        for sensor, moments in sent.items():
            times = self.times(f"board/{sensor}")
            self.assertEqual(len(times), 1)
            self.assert_between(times[0], moments)
        self.assertEqual(self.status()["undated"]["estimates"], [])
        self.assertEqual(self.status()["undated"]["redated_readings"], len(sent))
        redated = [r for r in json.loads(self.ok("audit", "--json"))["records"] if r["operation"] == "redate"]
        self.assertEqual(len(redated), 1)
        self.kill()
        self.start(BOOTS[0])
        self.assertEqual(len(self.times("board/*")), len(sent))

    def test_rebooted_before_it_was(self):
        self.send("first")
        self.kill()
        self.start(BOOTS[1])
        moments = self.send("second")
        self.make_right()
        self.assert_between(self.times("board/second")[0], moments)
        self.assertEqual(len(self.status()["undated"]["estimates"]), 1)
        self.assertLess(self.times("board/first")[0], self.times("board/second")[0])


if __name__ == "__main__":
    unittest.main()
