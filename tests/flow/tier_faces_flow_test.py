#!/usr/bin/env python3
"""What people see of tiers: windows in query, export, import and tail, and as retention policies of InfluxQL."""
import importlib.util
import json
import os
import select
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from daemon_process import PROGRAM, Daemon, Place, clean_environment, until

SECOND_NS = 10**9
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
RULE = ("1h", "--then", "1m:90d", "--then", "1h:forever")
COLUMNS = ("count", "min", "max", "sum", "mean", "first", "last")


class Store:
    def __init__(self, test):
        self.test = test
        self.place = Place()
        test.addCleanup(self.place.remove)
        self.place.write_config()
        self.daemon = Daemon(self.place)
        test.addCleanup(self.daemon.stop)

    def cli(self, *arguments):
        return self.place.cli(*arguments)

    def ok(self, *arguments):
        result = self.cli(*arguments)
        self.test.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return result

    def url(self, path, **parameters):
        return f"http://localhost:{self.daemon.port()}{path}?{urllib.parse.urlencode(parameters, doseq=True)}"

    def post(self, path, body, **parameters):
        """Status, headers and text."""
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url(path, **parameters), body.encode()),
                                        timeout=60) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def influxql(self, question, method="GET", path="/query", **more):
        parameters = {"db": "default", "epoch": "ns", **more}
        if method == "POST":
            return json.loads(self.post(path, urllib.parse.urlencode({"q": question}), **parameters)[2])["results"][0]
        with urllib.request.urlopen(self.url(path, q=question, **parameters), timeout=60) as answer:
            return json.load(answer)["results"][0]

    def export(self, form="ndjson", selector="*/*"):
        return self.ok("export", selector, "--tiers", "--format", form).stdout

    def windows(self, selector="*/*"):
        rows = [json.loads(line) for line in self.export("ndjson", selector).splitlines()]
        return [row for row in rows if "window" in row]

    def fill(self, begin_ns):
        """Two hours of readings that become windows, and some that stay."""
        lines = []
        for i in range(720):
            at = begin_ns + i * 10 * SECOND_NS
            lines.append(f"temp,device=kitchen value={i % 50}i {at}")
            lines.append(f"cpu,host=pi,core=c\\ 0 usage={i / 7},busy={'true' if i % 3 else 'false'} {at}")
            mixed = f'"word {i}"' if i % 5 == 0 else f"{i % 9 - 4}.5"
            lines.append(f"note,device=porch value={mixed} {at}")
        for i in range(5):
            lines.append(f"temp,device=kitchen value={i}i {begin_ns + 5 * HOUR_NS + i * SECOND_NS}")
        self.test.assertEqual(self.post("/write", "\n".join(lines), db="default")[0], 204)

    def set_rule(self, selector="*/*", rule=RULE):
        self.ok("retention", "set", selector, *rule, "--yes")

    def raw(self, selector="*/*"):
        return len(self.ok("query", selector, "--format", "ndjson").stdout.splitlines())


class TierFaces(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.begin_ns = time.time_ns() // HOUR_NS * HOUR_NS - 6 * HOUR_NS
        self.store = Store(self)

    def thinned(self):
        self.store.fill(self.begin_ns)
        self.store.set_rule()
        until(lambda: self.store.raw() == 5, "readings to become windows")
        return self.store

    def file(self, name, text):
        path = os.path.join(self.store.place.path, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def test_windows_come_with_the_readings_and_back_into_another_store(self):
        store = self.thinned()
        self.assertNotIn("window", store.ok("export", "*/*", "--format", "ndjson").stdout)
        exported = store.export()
        rows = [json.loads(line) for line in exported.splitlines()]
        kitchen = [row for row in rows if row["device"] == "kitchen"]
        self.assertEqual([row.get("window") for row in kitchen[:3]], ["1m", "1h", "1m"])
        self.assertEqual([row["value"] for row in kitchen[-5:]], [0, 1, 2, 3, 4])
        first = {name.removeprefix("value_"): value for name, value in kitchen[0].items() if name.startswith("value_")}
        self.assertEqual(first, {"count": 6, "min": 0, "max": 5, "sum": 15, "mean": 2.5, "first": 0, "last": 5})
        cpu = [row for row in rows if row["sensor"].startswith("cpu") and row.get("window") == "1h"]
        self.assertEqual(set(cpu[0]) & {"busy_count", "busy_min"}, {"busy_count", "busy_min"})
        porch = next(row for row in rows if row["device"] == "porch")
        self.assertEqual((porch["value_count"], porch["value_numbers"]), (6, 4))
        self.assertNotIn("value_first", porch)  # it is a text
        self.assertEqual(sum(row["value_count"] for row in rows if row.get("window") == "1h" and "value_count" in row),
                         1440)

        self.check_question(store, rows)
        lines = store.export("line")
        self.assertIn("# CONTEXT-WINDOW: 1h\n", lines)
        for name, text in (("all.ndjson", exported), ("all.line", lines)):
            with self.subTest(name):
                other = Store(self)
                path = self.file(name, text)
                refused = other.cli("import", path)
                self.assertEqual(refused.returncode, 6, refused)  # readings are there, windows have no tier
                self.assertIn("no tier of its rule is of that length", refused.stderr)
                self.assertIn("edgecase retention set", refused.stderr)
                self.assertEqual(other.raw(), 5)
                other.set_rule()
                other.ok("import", path)
                self.assertEqual(other.export(), exported)
                other.ok("import", path)
                self.assertEqual(other.export(), exported)
                for every in ("1m", "1h"):
                    question = ("query", "*/*", "--every", every, "--agg", "mean", "--format", "csv")
                    self.assertEqual(other.ok(*question).stdout, store.ok(*question).stdout)
                late = other.post("/write", f"temp,device=kitchen value=1i {self.begin_ns + 1}", db="default")
                self.assertEqual(late[1]["X-EdgeCase-Expired"], "1")
                other.ok("erase", "kitchen", "--yes")
                again = other.cli("import", path)
                self.assertIn("erased", again.stderr)
                self.assertFalse(other.windows("kitchen/*"))

    def check_question(self, store, rows):
        """Ranges, order, limits."""
        def asked(*more):
            text = store.ok("query", "kitchen", "--tiers", "--format", "ndjson", *more).stdout
            return [json.loads(line) for line in text.splitlines()]

        kitchen = [row for row in rows if row["device"] == "kitchen"]
        self.assertEqual(asked("--desc"), kitchen[::-1])
        self.assertEqual(asked("--limit", "3"), kitchen[:3])
        self.assertEqual(asked("--desc", "--limit", "7"), kitchen[::-1][:7])
        begin, end = self.begin_ns + 30 * SECOND_NS, self.begin_ns + 61 * MINUTE_NS
        span = ("--from", f"@{begin // SECOND_NS}", "--to", f"@{end // SECOND_NS}")
        part = asked(*span)
        self.assertEqual([row["window"] for row in part].count("1m"), 60)
        self.assertEqual([row["window"] for row in part].count("1h"), 1)
        wrong = store.cli("query", "kitchen", "--tiers", "--every", "1h", "--agg", "mean")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("as they are kept", wrong.stderr)

    def test_what_is_no_such_window_is_refused_and_named(self):
        store = self.thinned()
        window = store.windows("kitchen/*")[0]
        hour = next(row for row in store.windows("kitchen/*") if row["window"] == "1h")

        def at(offset_ns):
            seconds = (self.begin_ns + offset_ns) // SECOND_NS
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

        by_line = [
            ({**window, "value_count": -1}, '"value_count" is negative'),
            ({**window, "value_count": 1.5}, '"value_count" is no whole number'),
            ({**window, "value_count": 0}, "without readings"),
            ({**window, "time": at(SECOND_NS)}, "no window of 1m begins at"),
            ({**window, "value_min": 9}, "min is over its max"),
            ({**window, "value_first": 9}, "beyond its min and max"),
            ({**window, "value_mean": 7.5}, "mean is not its sum"),
            ({**window, "value": 3}, '"value" is of readings'),
            ({**window, "window": "soon"}, "duration"),
            ({**window, "temp_max": 3}, '"temp_max" is no column of the field "value"'),
            ({name: value for name, value in window.items() if name != "value_sum"}, "sum is missing"),
            ({name: value for name, value in window.items() if name != "window"}, '"window", which is missing'),
        ]
        by_store = [
            ({**window, "window": "5m", "time": at(0)}, "no tier of its rule is of that length"),
            ({**window, "value_last": 4}, "has another one there"),
            ({**window, "time": at(5 * HOUR_NS)}, "overlaps readings"),
            ({**window, "time": at(1000 * HOUR_NS)}, "not over yet"),
            ({**window, "device": "attic", "time": at(-24 * 366 * HOUR_NS)}, None),  # is kept no more
            ({**window, "device": "hall"}, "those of 1m in it would have 6"),
        ]
        # An hour has counted what its minutes have.
        few = {**hour, "device": "hall", "value_count": 5, "value_sum": 15, "value_mean": 3.0}
        store.ok("import", self.file("few.ndjson", json.dumps(few)))
        lines = [json.dumps(row) for row, _ in by_line + by_store]
        before = store.windows("kitchen/*")
        result = store.cli("import", self.file("wrong.ndjson", "\n".join(lines) + "\n"))
        self.assertEqual(result.returncode, 1, result)  # nothing is stored
        for number, (row, why) in enumerate(by_line, 1):
            self.assertRegex(result.stderr, rf"wrong\.ndjson:{number}: .*" + why.replace("(", r"\("), row)
        for row, why in by_store:
            if why is not None:
                self.assertIn(why, result.stderr, row)
        self.assertEqual(store.windows("kitchen/*"), before)
        self.assertEqual([row["value_count"] for row in store.windows("hall/*")], [5])
        self.assertFalse(store.windows("attic/*"))
        csv = store.cli("import", self.file("windows.csv", store.export("csv")))
        self.assertEqual(csv.returncode, 2, csv)
        self.assertIn("ndjson or line", csv.stderr)

    def test_other_formats_have_columns_for_windows(self):
        store = self.thinned()
        csv = store.export("csv", "kitchen/*").splitlines()
        self.assertEqual(csv[0], "namespace,device,sensor,time,value,type,window,count,min,max,sum,mean,first,last,"
                                 "numbers")
        self.assertTrue(csv[1].startswith("default,kitchen,temp,20"))
        self.assertTrue(csv[1].endswith(",,,1m,6,0,5,15,2.5,0,5,"), csv[1])
        self.assertTrue(csv[-1].endswith(",4,int,,,,,,,,,"), csv[-1])
        wide = store.ok("query", "kitchen", "--tiers", "--layout", "wide", "--format", "csv").stdout.splitlines()
        self.assertEqual(wide[0].split(",")[:3], ["time", "kitchen/temp", "kitchen/temp_count@1m"])
        self.assertIn("kitchen/temp_last@1h", wide[0])
        self.assertEqual(wide[1].split(",")[1:9], ["", "6", "0", "5", "15", "2.5", "0", "5"])
        table = store.ok("query", "kitchen", "--tiers", "--limit", "1", "--format", "table").stdout
        self.assertIn("mean 2.5 of 6 in 1m", table)
        if importlib.util.find_spec("pyarrow"):
            import pyarrow.parquet
            path = os.path.join(store.place.path, "all.parquet")
            store.ok("export", "kitchen", "--tiers", "--format", "parquet", "-o", path)
            rows = pyarrow.parquet.read_table(path).to_pylist()
            self.assertEqual((rows[0]["window"], rows[0]["count"], rows[0]["mean"], rows[0]["type"], rows[0]["value"]),
                             ("1m", 6, 2.5, "window", None))
            self.assertEqual((rows[-1]["window"], rows[-1]["value_int"]), (None, 4))
        directory = os.path.join(store.place.path, "files/")
        store.ok("export", "*/*", "--tiers", "--format", "ndjson", "-o", directory)
        with open(os.path.join(directory, "default/kitchen/temp.ndjson"), encoding="utf-8") as file:
            self.assertEqual(file.read(), store.export("ndjson", "kitchen/*"))

    def test_what_is_somebodys_is_exported_with_its_windows(self):
        store = self.thinned()
        store.ok("device", "set", "kitchen", "--owner", "alice")
        directory = os.path.join(store.place.path, "alice/")
        store.ok("export", "--owner", "alice", "-o", directory)
        with open(os.path.join(directory, "readings.ndjson"), encoding="utf-8") as file:
            self.assertEqual(file.read(), store.export("ndjson", "kitchen/*"))
        with open(os.path.join(directory, "readings.csv"), encoding="utf-8") as file:
            self.assertEqual(file.read(), store.export("csv", "kitchen/*"))
        with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
            self.assertEqual([(each["readings"], each["windows"]) for each in json.load(file)["files"]],
                             [(5, 122), (5, 122)])

    def test_tail_shows_windows_as_they_are_made(self):
        self.store.fill(self.begin_ns)
        arguments = [PROGRAM, "tail", "kitchen", "--tiers", "--format", "ndjson"]
        environment = clean_environment({"EDGECASE_HTTP_SOCKET": self.store.place.socket})
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as tail:
            self.addCleanup(tail.kill)

            def follows():
                self.store.post("/write", "mark,device=kitchen value=1", db="default")
                return select.select([tail.stdout], [], [], 0.3)[0]
            until(follows, "tail to follow")
            self.store.set_rule()
            windows = []
            while len(windows) < 2:
                row = json.loads(tail.stdout.readline())
                if "window" in row:
                    windows.append((row["window"], row["sensor"], row["value_count"]))
            tail.kill()
        self.assertEqual(windows, [("1m", "temp", 6)] * 2)

    def test_policies_of_influxql_are_tiers(self):
        store = self.thinned()
        policies = store.influxql("SHOW RETENTION POLICIES")["series"][0]["values"]
        self.assertEqual([(row[0], row[1], row[4]) for row in policies],
                         [("autogen", "1h0m0s", True), ("1m", "2160h0m0s", False), ("1h", "0s", False)])

        def values(question, **more):
            answer = store.influxql(question, **more)
            return answer["series"][0]["values"] if "series" in answer else answer

        kitchen = [row for row in store.windows("kitchen/*") if row["window"] == "1m"]
        for source in ('"1m".temp', 'default."1m".temp', '"default"."1m"."temp"'):
            rows = values(f"SELECT value_mean, value_count FROM {source}")
            self.assertEqual([row[1:] for row in rows], [[row["value_mean"], row["value_count"]] for row in kitchen])
            self.assertEqual(rows[0][0], self.begin_ns)
        self.assertEqual(values("SELECT value_mean FROM temp", rp="1m"),
                         values('SELECT value_mean FROM "1m".temp'))
        self.assertEqual(values('SELECT sum(value_sum), max(value_max), count(value_min) FROM "1m".temp')[0][1:],
                         [sum(row["value_sum"] for row in kitchen), 49, 120])
        by_hour = values('SELECT sum(value_count) FROM "1m".temp WHERE time >= '
                         f"{self.begin_ns} AND time < {self.begin_ns + 3 * HOUR_NS} GROUP BY time(1h) fill(0)")
        self.assertEqual([row[1] for row in by_hour], [360, 360, 0])
        hours = values('SELECT value_count, value_first FROM "1h".temp ORDER BY time DESC LIMIT 1')
        self.assertEqual(hours, [[self.begin_ns + HOUR_NS, 360, 360 % 50]])
        groups = store.influxql('SELECT max(usage_max) FROM "1h".cpu GROUP BY core')["series"]
        self.assertEqual([(group["tags"], group["values"][0][1]) for group in groups], [({"core": "c 0"}, 719 / 7)])
        self.assertEqual(values('SELECT mean(s) FROM (SELECT sum(value_sum) AS s FROM "1m".temp WHERE time >= '
                                f"{self.begin_ns} AND time < {self.begin_ns + 2 * HOUR_NS} GROUP BY time(1h))")[0][1],
                         sum(row["value_sum"] for row in kitchen) / 2)
        self.assertEqual(values(f'SELECT value_sum FROM "1m".temp WHERE time > {self.begin_ns} LIMIT 1')[0][0],
                         self.begin_ns + MINUTE_NS)
        stars = store.influxql('SELECT * FROM "1h".temp LIMIT 1')["series"][0]["columns"]
        self.assertEqual(stars, ["time", "device", *sorted("value_" + each for each in COLUMNS)])
        keys = store.influxql('SHOW FIELD KEYS FROM "1m".temp')["series"][0]["values"]
        self.assertEqual(dict(keys), {"value_" + each: "float" if each == "mean" else "integer" for each in COLUMNS})
        self.assertEqual(values('SHOW TAG VALUES FROM "1h".cpu WITH KEY = host'), [["host", "pi"]])
        # As a question of readings says it that windows stand in for.
        said = store.influxql('SELECT max(usage_max) FROM "1h".cpu')["messages"][0]["text"]
        self.assertRegex(said, "^windows of tiers in place of readings: 1h before [0-9-]+T[0-9]{2}:00:00.0{9}Z$")
        later = store.influxql(f'SELECT value_max FROM "1m".temp WHERE time >= {self.begin_ns + 5 * HOUR_NS}')
        self.assertNotIn("messages", later)
        for question in ('SELECT value FROM "5m".temp', 'SHOW FIELD KEYS FROM "5m".temp'):
            self.assertEqual(store.influxql(question)["error"], "retention policy not found: 5m")

    def test_a_policy_that_is_a_tier_is_changed_as_a_rule(self):
        store = self.thinned()
        for path, parameters in (("/write", {"db": "default", "rp": "1m"}),
                                 ("/api/v2/write", {"bucket": "default/1h"})):
            status, _, text = store.post(path, "temp value=1", **parameters)
            self.assertEqual(status, 400)
            self.assertIn("is a tier", text)
        self.assertEqual(store.post("/write", "temp value=1", db="default", rp="autogen")[0], 204)
        said = {
            'CREATE RETENTION POLICY "1m" ON "default" DURATION 90d REPLICATION 1': None,
            'CREATE RETENTION POLICY "1m" ON "default" DURATION 30d REPLICATION 1': "edgecase retention set",
            'CREATE RETENTION POLICY "year" ON "default" DURATION 52w REPLICATION 1': "edgecase retention set",
            'ALTER RETENTION POLICY "1m" ON "default" DURATION 30d': "edgecase retention set",
            'ALTER RETENTION POLICY "year" ON "default" DURATION 30d': "retention policy not found: year",
            'DROP RETENTION POLICY "1m" ON "default"': "edgecase retention set",
            'DROP RETENTION POLICY "year" ON "default"': None,
        }
        for statement, words in said.items():
            answer = store.influxql(statement, "POST")
            if words is None:
                self.assertNotIn("error", answer, statement)
            else:
                self.assertIn(words, answer["error"], statement)
        rules = json.loads(store.ok("retention", "list", "--json").stdout)["rules"]
        self.assertEqual(rules[0]["then"], ["1m:90d", "1h:forever"])
        with urllib.request.urlopen(store.url("/api/v2/buckets"), timeout=60) as answer:
            buckets = json.load(answer)["buckets"]
        self.assertEqual([bucket["name"] for bucket in buckets], ["default", "default/1m", "default/1h"])
        self.assertEqual(buckets[1]["retentionRules"][0]["everySeconds"], 90 * 86400)
        question = {"type": "influxql", "query": "SELECT count(value_mean) FROM temp", "bucket": "default/1h"}
        request = urllib.request.Request(store.url("/api/v2/query"), json.dumps(question).encode(),
                                         {"Content-Type": "application/json", "Accept": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(json.load(answer)["results"][0]["series"][0]["values"][0][1], 2)


if __name__ == "__main__":
    unittest.main()
