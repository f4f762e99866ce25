#!/usr/bin/env python3
"""Half-open ranges of times by every command that takes one, over the ends of a series and of time itself; and the
words and zones that times are written with."""
import csv
import io
import json
import os
import time
import unittest

from daemon_process import Daemon, Place

FIRST, LAST = -(2**63), 2**63 - 1
LINES = "".join(f"m,device=d value={value} {at}\n" for value, at in
                enumerate((FIRST, -10000, 0, 1_000_000_000, LAST), start=1))
# From, to, and the values that lie between.
RANGES = ((None, None, "12345"), (FIRST, None, "12345"), (FIRST + 1, None, "2345"), (None, FIRST + 1, "1"),
          (-10000, 0, "2"), (0, 1_000_000_000, "3"), (0, 1_000_000_001, "34"), (0, 0, ""), ("@1", "@1.000000001", "4"),
          ("1970-01-01", "1970-01-02", "34"), ("1970-01-01T00:00:01Z", None, "45"), (LAST - 1, None, "5"),
          (LAST, None, "5"), (None, LAST, "1234"), (FIRST, LAST, "1234"), (LAST, LAST, ""))


def options(begin, end):
    return [f"--{name}={at}" for name, at in (("from", begin), ("to", end)) if at is not None]


class Ranges(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.daemon = Daemon(self.place)
        self.fill()

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def cli(self, *arguments, code=0, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout

    def fill(self):
        self.cli("import", "-", "--format", "line", input=LINES)

    def values(self, text):
        return "".join(sorted(row["value"] for row in csv.DictReader(io.StringIO(text))))

    def exported(self, directory):
        for root, _, names in os.walk(directory):
            for name in names:
                if name.endswith(".csv"):
                    with open(os.path.join(root, name), encoding="utf-8") as file:
                        yield file.read()

    def test_every_command_takes_from_its_beginning_up_to_its_end(self):
        for begin, end, want in RANGES:
            where = options(begin, end)
            self.assertEqual(self.values(self.cli("query", "d", "--format", "csv", *where)), want, where)
            self.assertEqual(self.values(self.cli("query", "d", "--format", "csv", "--desc", *where)), want, where)
            self.assertEqual(self.values(self.cli("export", "d", *where)), want, where)
            counted = self.cli("query", "d", "--agg", "count", "--format", "csv", *where)
            self.assertEqual(sum(int(row["value"]) for row in csv.DictReader(io.StringIO(counted))), len(want), where)
            directory = os.path.join(self.place.path, f"export{RANGES.index((begin, end, want))}/")
            self.cli("export", "d", "-o", directory, *where)
            self.assertEqual("".join(self.values(text) for text in self.exported(directory)), want, where)
            if begin == end and begin is not None:
                self.cli("erase", "d", "--dry-run", *where, code=2)
            else:
                preview = json.loads(self.cli("erase", "d", "--dry-run", "--json", *where))
                self.assertEqual(preview["readings"], len(want), where)
            self.cli("plot", "d", *where, code=0 if want else 3)

    def test_an_erasure_leaves_what_lies_outside(self):
        for begin, end, want in RANGES[1:]:
            if begin == end:
                continue
            self.cli("erase", "d", "--yes", *options(begin, end))
            left = "".join(value for value in "12345" if value not in want)
            self.assertEqual(self.values(self.cli("query", "d", "--format", "csv")), left, (begin, end))
            self.cli("namespace", "drop", "default", "--yes")
            self.tearDown()
            self.setUp()

    def test_words_and_zones(self):
        now = time.time()
        self.cli("write", "w/now", "1")
        for begin in ("today", "yesterday", "1h", "-1h", "now-1h", "1y", "yesterday-1d"):
            self.assertEqual(self.values(self.cli("query", "w", "--format", "csv", "--from", begin)), "1", begin)
        self.assertEqual(self.values(self.cli("query", "w", "--format", "csv", "--from", "now+1h")), "")
        self.cli("audit", "--from", "today", "--to", "now+1h")
        self.cli("query", "w", "--from", "tomorrow", code=2)
        self.cli("query", "w", "--from", "2026-11-20T14:00", code=2)
        self.cli("query", "w", "--tz", "Mars/Crater", code=2)
        self.cli("query", "w", "--tz", "UTC", "--local", code=2)
        self.cli("write", "w/then", "2", "--time", "2026-07-20T14:00", "--tz", "Europe/Berlin")
        self.assertIn("2026-07-20T12:00:00.000000000Z", self.cli("query", "w/then", "--format", "csv"))
        self.assertIn("2026-07-20T14:00:00+02:00",
                      self.cli("query", "w/then", "--format", "table", "--tz", "Europe/Berlin"))
        local = {"TZ": "Asia/Tokyo"}
        for command in (["last", "w/then", "--format", "table"], ["series", "w/then"], ["devices", "w"]):
            self.assertIn("+09:00", self.cli(*command, "--local", extra=local), command)
        self.assertIn("T21:00:00+09:00", self.cli("erase", "w/then", "--dry-run", "--local", extra=local))
        value = self.cli("get", "w/then", "--time", "2026-07-20T21:00", "--local", extra=local)
        self.assertEqual(value.strip(), "2")
        self.assertLess(abs(time.time() - now), 600)


if __name__ == "__main__":
    unittest.main(verbosity=2)
