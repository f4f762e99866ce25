#!/usr/bin/env python3
"""The pages of packaging/recipes: their statements answer, their clients work, and Grafana gets what it asks for.

A client that is not installed is left out, and that is said."""
import base64
import glob
import json
import os
import re
import shutil
import subprocess
import time
import unittest
import urllib.parse

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPES = os.path.join(TOP, "packaging", "recipes")
PYTHON = "/usr/bin/python3"  # where Debian's packages are found
MINUTE = 60_000_000_000


def now_minutes_ago(minutes):
    return time.time_ns() - minutes * MINUTE


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.daemon = Daemon(cls.place)
        rows = []
        for back in range(120, 0, -10):
            at = now_minutes_ago(back)
            rows += [f"temp,device=kitchen value={20 + back / 100} {at}", f"temp,device=cellar value=12 {at}",
                     f"meter,device=house value={1000 - back}i {at}", f"cpu,host=pi,cpu=cpu0 usage_idle=90 {at}",
                     f"W,domain=sensor,entity_id=power_load value=250 {at}",
                     f"°C,domain=sensor,entity_id=hall value=19.5 {at}",
                     f"air,device=hall co2={600 + back} {at}"]
        rows.append(f'events,host=pi title="start",text="it began" {now_minutes_ago(30)}')
        status, text = cls.daemon.request("POST", "/write?db=default", "\n".join(rows).encode())
        assert status == 204, text

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.place.remove()

    def ask(self, statement, database="default", **headers):
        """As Grafana does: a form, milliseconds."""
        form = urllib.parse.urlencode({"q": statement})
        head = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", **headers}
        status, _, text = self.daemon.exchange("POST", f"/query?db={database}&epoch=ms", form, head)
        self.assertEqual(status, 200, (statement, text))
        results = json.loads(text)["results"]
        self.assertNotIn("error", results[0], (statement, text))
        return results[0].get("series", [])

    def test_statements_of_the_pages(self):
        tried = 0
        for page in sorted(glob.glob(os.path.join(RECIPES, "*.md"))):
            with open(page, encoding="utf-8") as file:
                blocks = re.findall(r"```influxql\n(.*?)```", file.read(), re.S)
            for statement in "".join(blocks).splitlines():
                series = self.ask(statement)
                self.assertTrue(series and series[0]["values"], (page, statement))
                tried += 1
        self.assertGreater(tried, 8)

    def first(self, statement, **more):
        """The values of the first series."""
        return self.ask(statement, **more)[0]["values"]

    def test_grafana_looks_around(self):
        """Its health check, its editor, a dashboard's variables, filters that a viewer adds."""
        self.assertEqual(len(self.first("SHOW measurements")), 7)
        self.assertEqual(self.first("SHOW DATABASES"), [["default"]])
        self.assertEqual(self.first('SHOW RETENTION POLICIES on "default"')[0][0], "autogen")
        self.assertEqual(self.first("SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)TEM/ LIMIT 100"), [["temp"]])
        self.assertEqual(self.first("""SHOW MEASUREMENTS WHERE "entity_id" = 'hall' LIMIT 100"""), [["°C"]])
        self.assertEqual(self.first('SHOW TAG KEYS FROM "cpu"'), [["cpu"], ["host"]])
        self.assertEqual(self.first("""SHOW TAG KEYS FROM "autogen"."cpu" WHERE "host" = 'pi'"""), [["cpu"], ["host"]])
        self.assertEqual([each["name"] for each in self.ask("SHOW TAG KEYS")],
                         ["W", "air", "cpu", "events", "meter", "temp", "°C"])
        self.assertEqual(self.first('SHOW FIELD KEYS FROM "meter"'), [["value", "integer"]])
        kitchen = """SHOW TAG VALUES FROM "temp" WITH KEY = "device" WHERE "device" =~ /^(kitchen|hall)$/"""
        self.assertEqual(self.first(kitchen), [["device", "kitchen"]])
        self.assertEqual(self.first('SHOW TAG VALUES WITH KEY = "host"'), [["host", "pi"]])
        recent = self.ask('SHOW TAG VALUES FROM "temp" WITH KEY = "device" WHERE time > now() - 1m')
        self.assertEqual(recent, [])
        self.assertEqual(self.first('SHOW TAG VALUES FROM "temp" WITH KEY = "device" WHERE time > now() - 3h'),
                         [["device", "cellar"], ["device", "kitchen"]])

    def test_grafana_draws(self):
        """A panel of each kind, annotations, an alert's question."""
        begin, end = now_minutes_ago(121) // 1_000_000, now_minutes_ago(0) // 1_000_000
        span = f"time >= {begin}ms and time <= {end}ms"
        lines = self.ask(f"""SELECT mean("value") FROM "temp" WHERE ("device"::tag = 'kitchen') AND {span} """
                         'GROUP BY time(30m), "device"::tag fill(null)')
        self.assertEqual((lines[0]["tags"], lines[0]["columns"]), ({"device": "kitchen"}, ["time", "mean"]))
        self.assertIn(len(lines[0]["values"]), (4, 5))
        for several in ("/^(kitchen|cellar)$/", "/^.*$/", "/^$|./"):
            both = self.ask(f'SELECT mean("value") FROM "temp" WHERE "device"::tag =~ {several} AND {span} '
                            'GROUP BY time(30m), "device"::tag fill(none) ORDER BY time ASC')
            self.assertEqual([each["tags"]["device"] for each in both], ["cellar", "kitchen"], several)
        gauge = self.ask(f'SELECT last("value") FROM "temp" WHERE {span} GROUP BY "device"')
        self.assertEqual([s["tags"]["device"] for s in gauge], ["cellar", "kitchen"])
        bars = self.ask(f'SELECT count("value") AS "how often" FROM "temp" WHERE {span} GROUP BY time(1h) fill(0)')
        self.assertEqual(bars[0]["columns"], ["time", "how often"])
        self.assertEqual(sum(row[1] for row in bars[0]["values"]), 24)
        rates = self.first(f'SELECT non_negative_derivative(mean("value"), 1h) * 1000 FROM "meter" WHERE {span} '
                           'GROUP BY time(10m) fill(none)')
        self.assertAlmostEqual(rates[-1][1], 60_000)
        table = self.first(f'SELECT * FROM "temp" WHERE {span} ORDER BY time DESC LIMIT 3')
        self.assertEqual(len(table), 3)
        states = self.first(f'SELECT last("text") FROM "events" WHERE {span} GROUP BY time(1h) fill(previous)')
        self.assertEqual(states[-1][1], "it began")
        note = self.first(f'SELECT "title", "text" FROM "events" WHERE {span} ORDER BY time ASC LIMIT 1000')
        self.assertEqual(note[0][1:], ["start", "it began"])
        alert = self.first('SELECT max("value") FROM "temp" WHERE time > now() - 15m GROUP BY time(5m) fill(none)')
        self.assertEqual(max(row[1] for row in alert), 20.1)

    def test_both_ways_of_asking(self):
        """GET with all in the address; POST with the statement in a form, the rest in the address or the form too."""
        wanted = json.dumps(self.ask('SELECT first("value") FROM "meter"; SHOW DATABASES'))
        form = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}
        asked = {"db": "default", "epoch": "ms", "q": 'SELECT first("value") FROM "meter"; SHOW DATABASES'}
        in_both = urllib.parse.urlencode({"q": asked["q"]})
        for method, address, body, head in (
                ("GET", {**asked, "rp": "autogen", "u": "any", "p": "none"}, None, {}),
                ("GET", {**asked, "pretty": "true"}, None, {"Accept": "*/*", "Accept-Encoding": "gzip"}),
                ("POST", {"db": "default", "epoch": "ms"}, in_both, form),
                ("POST", {}, urllib.parse.urlencode(asked), form),
                ("POST", asked, "", {})):
            status, _, text = self.daemon.exchange(method, "/query?" + urllib.parse.urlencode(address), body, head)
            self.assertEqual(status, 200, (method, address, body, text))
            results = json.loads(text)["results"]
            self.assertEqual(len(results), 2)
            self.assertEqual(json.dumps(results[0]["series"]), wanted)

    def test_home_assistant(self):
        """What its sensors ask, and EMHASS: which measurement has an entity, then its means."""
        self.assertEqual(self.first("SHOW SERIES LIMIT 1;")[0][0], "W,domain=sensor,entity_id=power_load")
        sensor = self.first("""select mean(value) as value from "autogen"."W" where entity_id = 'power_load' """
                            "and time > now() - 3h")
        self.assertEqual(sensor[0][1], 250)
        names = [row[0] for row in self.first("SHOW MEASUREMENTS")]
        holding = [name for name in names if ["entity_id", "hall"] in
                   [row for each in self.ask(f'SHOW TAG VALUES FROM "{name}" WITH KEY = "entity_id"')
                    for row in each["values"]]]
        self.assertEqual(holding, ["°C"])
        begin, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago)) for ago in (7200, 0))
        means = self.first(f"""
        SELECT mean("value") AS "mean_value"
        FROM "default"."autogen"."°C"
        WHERE time >= '{begin}'
        AND time < '{end}'
        AND "entity_id"='hall'
        GROUP BY time(30m) FILL(previous)
        """)
        self.assertIn(len(means), (4, 5))
        self.assertEqual(means[-1][1], 19.5)

    def test_shell(self):
        if shutil.which("influx") is None:
            print("left out: the shell of InfluxDB is not installed")
            return
        said = subprocess.run(["influx", "-host", "localhost", "-port", str(self.daemon.port()), "-database", "default",
                               "-execute", "SHOW MEASUREMENTS; SELECT last(value) FROM meter", "-format", "csv"],
                              capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, check=False)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertIn("measurements,temp", said.stdout)
        self.assertIn(",990", said.stdout)

    def test_python(self):
        if subprocess.run([PYTHON, "-c", "import influxdb"], capture_output=True, check=False).returncode != 0:
            print("left out: python3-influxdb is not installed")
            return
        with open(os.path.join(RECIPES, "clients.md"), encoding="utf-8") as file:
            code = re.search(r"```python\n(.*?)```", file.read(), re.S)[1].replace("8650", str(self.daemon.port()))
        said = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS,
                              check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("'co2': 640", said.stdout)

    def test_token_as_password(self):
        place = Place()
        daemon = Daemon(place)
        try:
            said = place.cli("token", "create", "--read", "*/*")
            token = re.search(r"ec1_\w+", said.stdout)[0]
            for word, wanted in ((token, 200), ("ec1_none", 401), (None, 401)):
                # The second is how clients of Influx v2 show a user and a password of v1: evcc, for one.
                in_base64 = base64.b64encode(f"grafana:{word}".encode()).decode()
                for shown in (f"Basic {in_base64}", f"Token grafana:{word}"):
                    head = {} if word is None else {"Authorization": shown}
                    status = daemon.exchange("GET", "/query?db=default&q=SHOW+DATABASES", None, head)[0]
                    self.assertEqual(status, wanted, shown)
        finally:
            daemon.stop()
            place.remove()

    def test_moving_from_influxdb(self):
        path = os.path.join(self.place.path, "all.lp")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# INFLUXDB EXPORT: 1677-09-21T00:12:43Z - 2262-04-11T23:47:16Z\n# DDL\n"
                       "CREATE DATABASE plant WITH NAME autogen\nCREATE DATABASE house WITH NAME autogen\n# DML\n"
                       "# CONTEXT-DATABASE:plant\n# CONTEXT-RETENTION-POLICY:autogen\n# writing tsm data\n"
                       "pump,line=1 flow=3.5,on=true 1700000000000000000\n# CONTEXT-DATABASE:house\n"
                       "# CONTEXT-RETENTION-POLICY:autogen\nCREATE name=\"no statement\" 1700000000000000000\n")
        result = self.place.cli("import", "--format", "line", path)
        self.assertEqual((result.returncode, result.stderr), (0, "3 readings stored\n"))
        self.assertEqual(self.ask("SELECT * FROM pump", "plant")[0]["values"], [[1700000000000, 3.5, "1", True]])
        self.assertEqual(self.ask('SELECT "name" FROM "CREATE"', "house")[0]["values"],
                         [[1700000000000, "no statement"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
