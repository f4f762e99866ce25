#!/usr/bin/env python3
"""Tiers of retention on a real daemon: rules, windows in place of readings, what is told of them, kill -9, erasure."""
import json
import os
import signal
import time
import unittest
import urllib.parse
import urllib.request

import residue
from daemon_process import Daemon, Place, until

HOUR_NS = 3600 * 10**9


class Tiers(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.place.write_config()
        self.daemon = Daemon(self.place)
        self.begin_ns = time.time_ns() // HOUR_NS * HOUR_NS - 5 * HOUR_NS

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def ok(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def post(self, device, times):
        lines = "\n".join(f"temp,device={device} value={i % 50}i {ns}" for i, ns in enumerate(times))
        request = urllib.request.Request(f"http://localhost:{self.daemon.port()}/write?db=default", lines.encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers

    def windows(self, every, aggregate, device="kitchen"):
        result = self.ok("query", device, "--every", every, "--agg", aggregate, "--format", "csv")
        return result.stdout, result.stderr

    def influxql(self, every, late_ns=0):
        span = f"time >= {self.begin_ns + late_ns} AND time < {self.begin_ns + 2 * HOUR_NS}"
        functions = ", ".join(f"{each}(value)" for each in
                              ("count", "min", "max", "sum", "mean", "first", "last", "spread"))
        question = f"SELECT {functions} FROM temp WHERE device = 'kitchen' AND {span} GROUP BY time({every})"
        path = "/query?" + urllib.parse.urlencode({"db": "default", "q": question})
        with urllib.request.urlopen(f"http://localhost:{self.daemon.port()}{path}", timeout=60) as answer:
            return json.load(answer)["results"][0]

    def raw(self, device="kitchen"):
        return len(self.ok("query", device, "--format", "ndjson").stdout.splitlines())

    def check_reports(self):
        """`where` and `report` know of the windows, 120 of a minute and 2 of an hour, beside 720 readings."""
        where = json.loads(self.ok("where", "kitchen", "--json").stdout)
        self.assertGreater(where["window_bytes"], 0)
        self.assertEqual(sum(each["bytes"] for each in where["files"]), where["bytes"])
        self.assertLessEqual(where["window_bytes"], where["bytes"])
        self.assertEqual(json.loads(self.ok("where", "kitchen/temp", "--json").stdout)["window_bytes"],
                         where["window_bytes"])
        self.assertIn("windows of tiers", self.ok("where", "kitchen").stdout)
        self.assertEqual(json.loads(self.ok("where", "attic", "--json").stdout)["window_bytes"], 0)
        stored = json.loads(self.ok("report", "--json").stdout)["stored"]
        self.assertEqual((stored["readings"], stored["windows"]), (720, 122))
        self.assertGreater(stored["window_bytes"], 0)
        text = self.ok("report").stdout
        self.assertIn("122 windows of tiers", text)
        self.assertIn("1h, then 1m:90d,1h:forever", text)
        self.ok("device", "set", "kitchen", "--owner", "anna")
        owner = json.loads(self.ok("report", "--owner", "anna", "--json").stdout)
        self.assertEqual(owner["stored"]["windows"], 122)
        self.assertEqual(owner["devices"][0]["series"][0]["windows"], 122)

    def test_readings_become_windows_and_everything_says_so(self):
        self.post("kitchen", range(self.begin_ns, self.begin_ns + 2 * HOUR_NS, 10**10))
        self.post("attic", range(self.begin_ns, self.begin_ns + 2 * HOUR_NS, 10**10))
        asked = [(every, aggregate) for every in ("1m", "1h") for aggregate in
                 ("count", "min", "max", "sum", "mean", "first", "last")]
        before = {each: self.windows(*each) for each in asked}
        self.assertEqual(before[("1m", "count")][1], "")
        influxql = {every: self.influxql(every) for every in ("1m", "10m", "1h")}
        self.assertEqual([len(each["series"][0]["values"]) for each in influxql.values()], [120, 12, 2])

        for wrong in (("7d", "--then", "1m"), ("7d", "--then", "1h:90d", "--then", "1m:1y"),
                      ("forever", "--then", "1m:90d"), ("7d", "--then", "1m:1d")):
            result = self.place.cli("retention", "set", "kitchen", *wrong)
            self.assertEqual(result.returncode, 2, result)
        rule = ("kitchen", "1h", "--then", "1m:90d", "--then", "1h:forever")
        preview = json.loads(self.ok("retention", "preview", *rule, "--json").stdout)
        self.assertEqual((preview["erased_readings"], preview["thinned_readings"]), (0, 720))
        self.assertEqual([(each["tier"], each["windows"]) for each in preview["tiers"]],
                         [("1m:90d", 120), ("1h:forever", 2)])
        self.assertGreater(preview["tiers"][0]["bytes"], 10 * preview["tiers"][1]["bytes"])
        self.assertEqual(preview["affected"][0]["tiers"], preview["tiers"])
        self.assertRegex(self.ok("retention", "preview", *rule).stdout, r"tier 1m:90d: about 120 windows, \d")
        self.assertEqual(self.place.cli("retention", "set", *rule).returncode, 2)  # asks
        self.ok("retention", "set", *rule, "--yes")
        listed = json.loads(self.ok("retention", "list", "--json").stdout)["rules"]
        self.assertEqual([(r["keep"], r["then"]) for r in listed], [("1h", ["1m:90d", "1h:forever"])])
        self.assertIn("1h, then 1m:90d, then 1h:forever", self.ok("retention", "list").stdout)
        self.assertEqual(json.loads(self.ok("status", "--json").stdout)["expiry"]["rules"], 1)

        until(lambda: self.raw() == 0, "readings to become windows")
        self.assertEqual(self.raw("attic"), 720)
        # What was foretold of bytes is an estimate, of readings in the log: half to twice of what is there, as long as
        # that is in the log, too. A flush may have made less of it.
        foretold = sum(each["bytes"] for each in preview["tiers"])
        where = json.loads(self.ok("where", "kitchen", "--json").stdout)
        self.assertLessEqual(where["window_bytes"], foretold * 2)
        if {file["layer"] for file in where["files"]} == {"log"}:
            self.assertLessEqual(foretold, where["window_bytes"] * 2)
        self.check_reports()
        for each in asked:
            rows, note = self.windows(*each)
            self.assertEqual(rows, before[each][0], each)
            self.assertIn(f"{each[0]} before 20", note)
        for every, answer in influxql.items():
            after = self.influxql(every)
            self.assertEqual(after["series"], answer["series"])
            self.assertIn(" before 20", json.dumps(after))
        self.assertIn("none before 20", json.dumps(self.influxql("90s")))
        self.assertNotIn("cut by the range", json.dumps(self.influxql("1m")))
        self.assertIn("cut by the range, so left out: 1m at 20", json.dumps(self.influxql("1m", 30 * 10**9)))
        rows, note = self.windows("1h", "p95")
        self.assertEqual(rows.count("\n"), 1)
        self.assertIn("none before 20", note)

        headers = self.post("kitchen", [self.begin_ns + 1])
        self.assertEqual(headers["X-EdgeCase-Expired"], "1")
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        self.assertEqual(self.post("kitchen", [self.begin_ns + 1])["X-EdgeCase-Expired"], "1")
        for each in asked:
            self.assertEqual(self.windows(*each)[0], before[each][0], each)

        begin = time.strftime("%Y-%m-%dT%H:%M:30Z", time.gmtime(self.begin_ns / 10**9))
        span = ("kitchen", "--from", begin, "--to", begin[:-4] + ":40Z")
        self.assertIn("those that the range cuts go whole", self.ok("erase", *span, "--dry-run").stdout)
        self.ok("erase", *span, "--yes")
        self.assertEqual(self.windows("1m", "count")[0].count("\n"), 1 + 119)
        self.assertEqual(self.windows("1h", "count")[0].count("\n"), 1 + 1)
        self.assertIn("120 windows of tiers", self.ok("erase", "kitchen", "--yes").stdout)
        certificates = json.loads(self.ok("erase", "--list", "--json").stdout)["erasures"]
        self.assertEqual([each["windows"] for each in sorted(certificates, key=lambda c: c["id"])], [2, 120])
        self.assertEqual(self.windows("1h", "sum")[0].count("\n"), 1)

    def test_a_backup_takes_windows_along_and_a_restore_neither_loses_nor_counts_twice(self):
        old = range(self.begin_ns, self.begin_ns + 2 * HOUR_NS, 10**10)
        young_ns = (time.time_ns() // HOUR_NS - 1) * HOUR_NS + HOUR_NS // 2
        young = range(young_ns, young_ns + 600 * 10**9, 10**10)
        self.post("kitchen", [*old, *young])
        self.post("attic", old)  # of it nothing but windows is left
        rule = ("3h", "--then", "1m:90d,1h:forever", "--yes")
        asked = [(every, each, device) for every in ("1m", "1h") for each in ("count", "sum", "first", "last")
                 for device in ("kitchen", "attic")]
        before = {each: self.windows(*each)[0] for each in asked}
        for device in ("kitchen", "attic"):
            self.ok("retention", "set", device, *rule)
        until(lambda: self.raw() == len(young) and self.raw("attic") == 0, "readings to become windows")
        directory = os.path.join(self.place.path, "saved")
        self.ok("backup", directory)

        source = self.place, self.daemon
        others = []
        try:
            for is_behind in (False, True):
                self.place = Place()
                self.place.write_config()
                self.daemon = Daemon(self.place)
                others.append((self.place, self.daemon))
                if is_behind:  # it has readings where the backup has windows
                    self.post("kitchen", old)
                for _ in range(2):  # what is there already is itself once more
                    result = self.place.cli("restore", directory)
                    self.assertEqual(result.returncode, 6 if is_behind else 0, result.stderr)
                    for each in asked:
                        self.assertEqual(self.windows(*each)[0], before[each], (is_behind, each))
                self.assertEqual(self.raw(), len(young) + (len(old) if is_behind else 0))
                if not is_behind:
                    self.assertEqual(self.post("kitchen", [self.begin_ns + 1])["X-EdgeCase-Expired"], "1")
        finally:
            self.place, self.daemon = source
            for place, daemon in others:
                daemon.stop()
                place.remove()

        # The store's mark is further than the backup's.
        self.ok("retention", "set", "kitchen", "1m", *rule[1:])
        until(lambda: self.raw() == 0, "all readings to become windows")
        self.ok("restore", directory)
        for each in asked:
            self.assertEqual(self.windows(*each)[0], before[each], each)

    def test_the_bytes_of_what_became_windows_go_too(self):
        drives = [os.path.join(self.place.path, each) for each in ("meta", "values")]
        said = residue.canary(residue.seeded())
        line = f'note,device=porch text="{said}" {self.begin_ns}'
        request = urllib.request.Request(f"http://localhost:{self.daemon.port()}/write?db=default", line.encode())
        urllib.request.urlopen(request, timeout=60).close()
        self.assertTrue(residue.search(drives, [said]))
        self.ok("retention", "set", "porch", "1h", "--then", "1m:forever", "--yes")
        until(lambda: self.raw("porch") == 0, "readings to become windows")
        self.assertEqual(self.windows("1m", "count", "porch")[0].count("\n"), 1 + 1)
        # The pass after a start erases what was hidden before.
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        until(lambda: not residue.search(drives, [said]), "the bytes to be gone")
        self.assertEqual(self.windows("1m", "count", "porch")[0].count("\n"), 1 + 1)


if __name__ == "__main__":
    unittest.main()
