#!/usr/bin/env python3
"""Retention rules through the command line and HTTP, on a real daemon: unreadable at once, files gone in time."""
import json
import os
import time
import unittest
import urllib.request

from daemon_process import Daemon, Place, until
from residue import Image, canary, search, seeded


class RetentionFlow(unittest.TestCase):
    storage = ""

    def setUp(self):
        self.place = Place()
        self.place.write_config(storage=self.storage)
        self.daemon = Daemon(self.place)

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def ok(self, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def fails(self, code, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        problem = result.stderr.partition("\n  try: edgecase ")[0]
        self.assertEqual(problem.strip().count("\n"), 0, result.stderr)
        return result.stderr

    def post(self, lines):
        request = urllib.request.Request(f"http://localhost:{self.daemon.port()}/write?db=default",
                                         "\n".join(lines).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(answer.status, 204)

    def count(self, selector):
        rows = self.ok("query", selector, "--agg", "count", "--format", "ndjson").splitlines()
        return sum(json.loads(row)["value"] for row in rows)

    def status(self):
        return json.loads(self.ok("status", "--json"))

    def fill(self, device, count, newest_ns, step_ns=1_000_000):
        self.post(f"m,device={device} value={i} {newest_ns - i * step_ns}" for i in range(count))


class Bounded(RetentionFlow):
    def test_rules_hold_for_what_is_stored_and_survive_a_restart(self):
        now_ns = time.time_ns()
        hour_ns = 3600 * 10**9
        newest_ns = now_ns - hour_ns // 2
        self.fill("kitchen", 48, newest_ns, hour_ns)
        self.fill("attic", 48, newest_ns, hour_ns)
        preview = json.loads(self.ok("retention", "preview", "kitchen", "24h", "--json"))
        self.assertEqual((preview["readings"], preview["erased_readings"]), (48, 24))
        self.assertIn("24 of 48 readings", self.ok("retention", "preview", "kitchen", "24h"))
        self.assertEqual(self.count("*/*"), 96)

        self.fails(2, "retention", "set", "kitchen", "24h")
        self.ok("retention", "set", "kitchen", "24h", "--yes")
        self.ok("retention", "set", "*/*", "forever")
        self.assertEqual(self.count("kitchen"), 24)
        self.assertEqual(self.count("attic"), 48)
        self.ok("retention", "set", "kitchen", "40h")
        self.assertEqual(self.count("kitchen"), 24)
        rules = json.loads(self.ok("retention", "list", "--json"))
        self.assertEqual({(r["select"], r["keep"]) for r in rules["rules"]},
                         {("kitchen/*", "1d16h"), ("*/*", "forever")})
        self.assertIn("kitchen/*", self.ok("retention", "list"))
        self.daemon.stop()
        self.daemon = Daemon(self.place)
        self.assertEqual(self.count("kitchen"), 24)
        self.ok("retention", "clear", "kitchen")
        self.assertEqual(self.count("kitchen"), 24)
        # What comes again of what had expired stays gone.
        self.fill("kitchen", 48, newest_ns, hour_ns)
        self.assertEqual(self.count("kitchen"), 24)

    def test_a_rule_that_erases_everything_asks(self):
        self.fill("old", 5, time.time_ns() - 10**12)
        self.assertIn("--yes", self.fails(2, "retention", "set", "old", "1s"))
        self.assertEqual(self.count("old"), 5)
        self.ok("retention", "set", "old", "1s", "--yes")
        self.assertEqual(self.count("old"), 0)
        self.assertEqual(self.status()["expiry"]["rules"], 1)

    def test_what_means_nothing_is_refused_in_one_line(self):
        self.fill("kitchen", 1, time.time_ns())
        self.ok("retention", "set", "garage", "1h")
        self.ok("retention", "clear", "garage")
        self.fails(3, "retention", "clear", "kitchen")
        self.fails(3, "retention", "set", "-n", "nowhere", "*", "1h")
        self.fails(2, "retention", "set", "kitchen", "1 fortnight")
        self.fails(2, "retention", "set", "kitchen", "0s")
        self.fails(2, "retention", "set", "a/b/c", "1h")
        self.assertEqual(json.loads(self.ok("retention", "list", "--json"))["rules"], [])


class Exact(RetentionFlow):
    storage = 'expiry = "exact"\nretention = "1h"'

    def value_bytes(self):
        values = os.path.join(self.place.path, "values")
        contents = b""
        for name in os.listdir(values):
            try:
                with open(os.path.join(values, name), "rb") as file:
                    contents += file.read() if name.endswith(".val") else b""
            except FileNotFoundError:
                pass  # it went meanwhile
        return contents

    def test_bytes_are_gone_soon_after_the_instant(self):
        # The canary expires in a while; what else is there does not. Two blobs larger than a
        # memtable bring it to the values drive.
        for wait in (5, 20, 80):
            expires = time.time() + wait
            self.post([f'm,device=d canary="tweet-tweet" {int((expires - 3600) * 1e9)}',
                       f'm,device=d canary="still here" {time.time_ns()}'])
            for sensor in ("x", "y"):
                self.blob(sensor, os.urandom(8 << 20))
            if until(lambda: b"tweet-tweet" in self.value_bytes() or time.time() > expires, "flushed"):
                if time.time() < expires:
                    break
        self.assertLess(time.time(), expires, "nothing reached the drive in time")
        gone = until(lambda: b"tweet-tweet" not in self.value_bytes() and time.time(), "bytes gone")
        self.assertGreaterEqual(gone, expires)
        print(f"bytes gone {gone - expires:.2f} s after the instant")
        rows = self.ok("query", "d", "--format", "ndjson").splitlines()
        self.assertEqual([json.loads(row)["value"] for row in rows][-1], "still here")
        self.assertNotIn("tweet", "".join(rows))

    def blob(self, sensor, body):
        request = urllib.request.Request(
            f"http://localhost:{self.daemon.port()}/api/v1/blob/default/blob/{sensor}", body, method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(answer.status, 201)


class Residue(RetentionFlow):
    storage = Exact.storage

    def setUp(self):
        self.image = Image()
        self.place = Place()
        if self.image.reason:
            self.place.remove()
            self.image.remove()
            self.skipTest(self.image.reason)
        self.image.hold(self.place)
        self.place.write_config(storage=self.storage)
        self.daemon = Daemon(self.place)

    def tearDown(self):
        super().tearDown()
        self.image.remove()

    def hits(self, canaries):
        self.image.settle()
        return {each for _, each in search([self.image.image], canaries)}

    def test_no_block_of_the_drive_holds_what_has_expired(self):
        source = seeded()
        count = 0
        # One comes into tables, since a start writes what the log holds, the other stays in the log.
        for wait in (12, 40, 120):
            logged, flushed = canary(source), canary(source)
            expires_ns = time.time_ns() + wait * 10**9
            for text in (flushed, logged):
                # Times of their own: what replaces another takes its bytes away before they expire.
                begin_ns = expires_ns - 3600 * 10**9 - (2_000 if text == flushed else 0)
                self.post([f'm,device=d{i % 7} text="{text}-{i}" {begin_ns - i}' for i in range(2_000)] +
                          [f"m,device=d{i % 7} value={i} {time.time_ns() + i}" for i in range(2_000)])
                count += 2_000
                if text == flushed:
                    self.daemon.stop()
                    self.daemon = Daemon(self.place)
            # What is on its way from the log into tables may lie where the search has been already.
            until(lambda: self.hits([logged, flushed]) == {logged, flushed}
                  or time.time_ns() > expires_ns, "both are there")
            if time.time_ns() < expires_ns:
                break
        self.assertLess(time.time_ns(), expires_ns, "too slow to see anything")
        until(lambda: time.time_ns() > expires_ns, "the instant")
        gone = until(lambda: not self.hits([logged, flushed]) and time.time_ns(), "no block holds it")
        print(f"no block holds it {(gone - expires_ns) / 1e9:.2f} s after the instant, the search included")
        self.assertEqual(self.count("*/*"), count)


if __name__ == "__main__":
    unittest.main()
