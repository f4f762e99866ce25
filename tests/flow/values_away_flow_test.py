#!/usr/bin/env python3
"""The drive of the values is away: windows that need no value are answered, the others say that they cannot be, and
nothing else is missing, by every face."""
import datetime
import glob
import json
import os
import unittest
import urllib.parse

from daemon_process import Daemon, Place

BEGIN = 1_700_000_000 - 1_700_000_000 % 3600  # a full hour
HOURS = 4


def rfc3339(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class ValuesAwayFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.place.write_config(storage='memory-limit = "32MiB"')
        self.daemon = Daemon(self.place)

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def get(self, path, **parameters):
        status, headers, text = self.daemon.exchange("GET", path + "?" + urllib.parse.urlencode(parameters))
        self.assertEqual(status, 200, text)
        return headers, text

    def influx(self, statement):
        _, text = self.get("/query", db="default", epoch="s", q=statement)
        return json.loads(text)["results"][0]

    def test_what_needs_no_value_is_answered(self):
        lines = "".join(f"air,device=d temp={second * 7919 % 1009 / 10} {BEGIN + second}\n"
                        for second in range(HOURS * 3600))
        status, text = self.daemon.request("POST", "/write?precision=s", lines)
        self.assertEqual(status, 204, text)
        # Others write until all of that is on its drive.
        rounds = 0
        while not glob.glob(self.place.path + "/values/*.val"):
            others = "".join(f"noise,device=n{rounds} v={i * 7919 % 100003}.25,w={i} {BEGIN + i}\n"
                             for i in range(20_000))
            self.assertEqual(self.daemon.request("POST", "/write?precision=s", others)[0], 204)
            rounds += 1
            self.assertLess(rounds, 40)
        # From the middle of the first hour on.
        span = {"select": "d/*", "agg": "max", "every": "1h", "from": rfc3339(BEGIN + 1800),
                "to": rfc3339(BEGIN + HOURS * 3600)}
        selected = (f"SELECT max(temp), count(temp) FROM air WHERE time >= {BEGIN + 1800}s AND "
                    f"time < {BEGIN + HOURS * 3600}s GROUP BY time(1h)")
        _, whole = self.get("/api/v1/query", **span, format="csv")
        rows = self.influx(selected)["series"][0]["values"]
        self.assertEqual(len(rows), HOURS)

        self.assertEqual(self.daemon.stop(), 0)
        values, kept = self.place.path + "/values", self.place.path + "/kept"
        os.rename(values, kept)
        os.mkdir(values)
        self.daemon = Daemon(self.place)

        headers, csv = self.get("/api/v1/query", **span, format="csv")
        expected = whole.splitlines()
        first = expected[1].split(",")
        expected[1] = ",".join(first[:4] + ["", "unavailable"])
        self.assertEqual(csv.splitlines(), expected)
        self.assertEqual(json.loads(headers["X-EdgeCase-Left-Out"])[0]["code"], "unavailable")
        _, ndjson = self.get("/api/v1/query", **span)
        told = [json.loads(line) for line in ndjson.splitlines()]
        self.assertEqual((told[0]["value"], told[0]["type"]), (None, "unavailable"))
        self.assertTrue(all(isinstance(row["value"], float) for row in told[1:]))
        _, explained = self.get("/api/v1/query", **{**span, "from": rfc3339(BEGIN)}, explain="true")
        account = json.loads(explained)
        self.assertEqual((account["rows"], account["readings_decoded"], account["values_bytes"]), (HOURS, 0, 0))

        result = self.influx(selected)
        self.assertEqual(result["series"][0]["values"], [[rows[0][0], None, None], *rows[1:]])
        self.assertIn("cannot be read", json.dumps(result["messages"]))

        done = self.place.cli("query", "d/*", "--every", "1h", "--agg", "max", "--from", span["from"], "--to",
                              span["to"], "--format", "csv")
        self.assertEqual(done.stdout.splitlines(), expected)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("left out", done.stderr)
        table = self.place.cli("query", "d/*", "--every", "1h", "--agg", "max", "--from", span["from"], "--to",
                               span["to"], "--format", "table")
        self.assertIn("unavailable", table.stdout)
        good = self.place.cli("query", "d/*", "--every", "1h", "--agg", "max", "--format", "csv")
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertNotIn("left out", good.stderr)
        # What is written now is there, and a reading itself is refused.
        self.assertEqual(self.daemon.request("POST", "/write?precision=s", "air,device=e temp=1 1")[0], 204)
        status, text = self.daemon.request("GET", "/api/v1/query?select=d/*")
        self.assertEqual(status, 503, text)

        os.rmdir(values)
        os.rename(kept, values)
        _, again = self.get("/api/v1/query", **span, format="csv")
        self.assertEqual(again, whole)


if __name__ == "__main__":
    unittest.main()
