#!/usr/bin/env python3
"""Statements of InfluxQL that change what there is: as influxd answers them, and erased as `edgecase erase` erases."""
import http.client
import json
import os
import unittest
import urllib.parse

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place
from influxql_flow_test import INFLUXD, Influxd
from residue import canary, search, seeded

LINES = """cpu,host=a,core=0 v=1,w=2 1000
cpu,host=a,core=0 v=2 2000
cpu,host=b v=3 1000
mem,host=a u=1i 1000
mem,host=b u=2i 5000
odd\\ one,t\\,1=x\\=y s="text" 1000
"""

# Each is asked of both over the same lines; then both tell what is left.
STATEMENTS = [
    "DELETE FROM cpu", "DELETE FROM nope", "DELETE FROM cpu WHERE host = 'zz'", "DELETE FROM cpu WHERE nokey = 'x'",
    "DELETE FROM cpu WHERE time < 1000", "DELETE FROM cpu WHERE host = 'a' AND time <= 1000",
    "DELETE FROM cpu WHERE host = 'a' AND time <= 2000", "DELETE WHERE host = 'b' AND time = 1000",
    "DELETE WHERE time > 1000", "DELETE WHERE time >= 1000 AND time < 5000", "DELETE FROM /c.u/", "DELETE FROM /./",
    "DELETE FROM cpu, mem WHERE host =~ /^b/", "DELETE FROM cpu WHERE host !~ /^b/",
    "DELETE FROM cpu WHERE time = 1000 OR time = 2000", "DELETE FROM cpu WHERE time > 1000 OR host = 'b'",
    "DELETE FROM cpu WHERE time > '1970-01-01' AND time < now() - 1d", "DELETE FROM \"odd one\" WHERE \"t,1\" = 'x=y'",
    "DELETE FROM cpu WHERE host", "DELETE FROM d.autogen.cpu", "DELETE FROM d..cpu", "DELETE", "DELETE v FROM cpu",
    "DELETE FROM (SELECT v FROM cpu)", "DELETE FROM cpu LIMIT 1", "DELETE FROM cpu WHERE host = 'a' GROUP BY host",
    "DROP SERIES FROM cpu", "DROP SERIES FROM nope", "DROP SERIES WHERE host = 'a'",
    "DROP SERIES FROM cpu WHERE host = 'a' OR host = 'b'", "DROP SERIES FROM cpu WHERE host != 'a'",
    "DROP SERIES FROM cpu WHERE core = ''", "DROP SERIES FROM cpu WHERE (host = 'a' AND core = '0') OR host = 'zz'",
    "DROP SERIES FROM /m.*/", "DROP SERIES FROM cpu WHERE time > 1", "DROP SERIES", "DROP SERIES FROM d..cpu",
    "DROP MEASUREMENT cpu", "DROP MEASUREMENT nope", "DROP MEASUREMENT \"odd one\"", "DROP MEASUREMENT",
    "DROP MEASUREMENT /m.*/", "DROP DATABASE nope", "DROP DATABASE d", "DROP DATABASE d; CREATE DATABASE d",
    "CREATE DATABASE d", "CREATE DATABASE d WITH DURATION 1h", "CREATE DATABASE d WITH DURATION INF",
    "CREATE DATABASE d WITH NAME autogen", "CREATE DATABASE e WITH DURATION 30m",
    "CREATE DATABASE e WITH DURATION 1h; SHOW RETENTION POLICIES ON e",
    "CREATE DATABASE e WITH DURATION 0s; SHOW RETENTION POLICIES ON e",
    "CREATE DATABASE e WITH DURATION 3d NAME autogen; SHOW RETENTION POLICIES ON e; CREATE DATABASE e WITH DURATION 3d",
    "CREATE DATABASE e WITH DURATION 26w; SHOW RETENTION POLICIES ON e", "CREATE DATABASE e WITH REPLICATION 0",
    "CREATE DATABASE e WITH DURATION 2h SHARD DURATION 3h",
    "CREATE DATABASE e WITH DURATION 5d; ALTER RETENTION POLICY autogen ON e DURATION 9d; SHOW RETENTION POLICIES ON e",
    "ALTER RETENTION POLICY autogen ON d DURATION 10m", "ALTER RETENTION POLICY nope ON d DURATION 10h",
    "ALTER RETENTION POLICY autogen ON nope DURATION 10h", "ALTER RETENTION POLICY autogen ON d DURATION INF DEFAULT",
    "ALTER RETENTION POLICY autogen ON d", "CREATE RETENTION POLICY x ON nope DURATION 1d REPLICATION 1",
    "DROP RETENTION POLICY x ON d", "DROP RETENTION POLICY x ON nope",
]

# Statement, a part of what EdgeCase answers, why.
ON_PURPOSE = [
    ("DELETE FROM cpu WHERE v = 1", "fields not supported in WHERE clause during deletion",
     "influxd puts the number of a shard before these words"),
    ("DELETE FROM cpu WHERE host = 5", "invalid condition in WHERE",
     "what erases is taken by its word: influxd passes over comparisons that say nothing of tags"),
    ("CREATE RETENTION POLICY autogen ON d DURATION INF REPLICATION 1", '"statement_id": 0}',
     "autogen is always there, so that its creation sets how long it is kept"),
    ("CREATE RETENTION POLICY year ON d DURATION 365d REPLICATION 1", "edgecase retention set --help",
     "a second policy would be a tier"),
    ("CREATE DATABASE f WITH DURATION 1d NAME year", "edgecase retention set --help", "as above"),
    ("DROP RETENTION POLICY autogen ON d", "autogen holds all readings",
     "influxd drops the data and has no policy left"),
    ("SHOW DATABASES; DELETE FROM nope", "stands before those that read",
     "what reads before it is answered while the answer leaves"),
]


class Asker:
    """Answers of one server, as text."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=b"", **parameters):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_LIMIT_SECONDS)
        headers = {"Authorization": f"Token {parameters.pop('token')}"} if "token" in parameters else {}
        connection.request(method, f"{path}?{urllib.parse.urlencode(parameters)}", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, answer.headers

    def query(self, statement, **more):
        answer = json.loads(self.ask("POST", "/query", q=statement, **{"db": "d", "epoch": "ns", **more})[1])
        return {"error": answer["error"]} if "error" in answer else answer

    def write(self, text, **more):
        status, answer, headers = self.ask("POST", "/write", text.encode(), db="d", **more)
        assert status == 204, answer
        return int(headers.get("X-EdgeCase-Erased", 0))

    def left(self):
        """Of a database that is not there: that; influxd says so in one of several ways."""
        told = self.query("SHOW SERIES; SHOW MEASUREMENTS; SHOW TAG VALUES WITH KEY = host; "
                          "SELECT v, host, core FROM cpu; SELECT * FROM mem; SHOW RETENTION POLICIES ON d")["results"]
        return "no database" if "error" in told[0] else told

    def begin(self):
        self.query("DROP DATABASE d; DROP DATABASE e; CREATE DATABASE d")
        self.write(LINES)


class SchemaFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.daemon = Daemon(cls.place)
        cls.addClassCleanup(cls.place.remove)
        cls.addClassCleanup(cls.daemon.stop)
        cls.ours = Asker(cls.daemon.port())

    def cli(self, code, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout + result.stderr

    def refused(self, *arguments):
        """For what was erased: all of it (1), or some (6)."""
        result = self.place.cli(*arguments)
        self.assertIn(result.returncode, (1, 6), result.stderr)
        self.assertIn("their time was erased", result.stderr)

    @unittest.skipUnless(INFLUXD, "influxd is not installed")
    def test_answers_are_those_of_influxd(self):
        influxd = Influxd()
        self.addCleanup(influxd.stop)
        theirs = Asker(influxd.port)
        both = (self.ours, theirs)
        whole = None
        for statement in STATEMENTS:
            with self.subTest(statement=statement):
                # What changed nothing needs no new beginning.
                if whole is None:
                    for each in both:
                        each.begin()
                    whole = self.ours.left()
                told = [[each.query(statement), each.left()] for each in both]
                if " e" in statement or any(left != whole for _, left in told):
                    whole = None
                self.assertEqual(*told)

    def test_what_differs_on_purpose_is_known(self):
        self.ours.begin()
        for statement, part, reason in ON_PURPOSE:
            with self.subTest(statement=statement, reason=reason):
                self.assertIn(part, json.dumps(self.ours.query(statement)))
        status, text, _ = self.ours.ask("GET", "/query", q="DROP DATABASE d")
        self.assertIn("needs a POST request", text, (status, "influxd does it, and warns"))

    def test_the_bytes_are_gone_and_what_is_written_afterwards_is_new(self):
        source = seeded()
        directories = [os.path.join(self.place.path, name) for name in ("meta", "values")]
        for statement in ("DROP MEASUREMENT \"{0}\"", "DROP SERIES WHERE place = '{1}'", "DELETE FROM \"{0}\"",
                          "DELETE WHERE time < 5000 AND place = '{1}'", "DROP DATABASE d"):
            with self.subTest(statement=statement):
                self.ours.begin()
                canaries = [canary(source) for _ in range(4)]
                name, tag, field, text = canaries
                line = f'{name},place={tag} {field}="{text}" 1000'
                self.assertEqual(self.ours.write(line), 0)
                saved = os.path.join(self.place.path, f"saved-{name}")
                self.cli(0, "backup", saved)
                status, answer, headers = self.ours.ask("POST", "/query", q=statement.format(name, tag), db="d")
                self.assertEqual((status, json.loads(answer)), (200, {"results": [{"statement_id": 0}]}))
                self.assertEqual(search(directories, canaries), set())

                # The certificate.
                number = headers["X-EdgeCase-Erasure"]
                certificate = os.path.join(self.place.path, f"certificate-{name}.json")
                told = self.ours.ask("GET", "/api/v1/erasures", id=number)[1]
                self.assertEqual(json.loads(told)["state"], "done")
                with open(certificate, "w", encoding="utf-8") as file:
                    file.write(told)
                self.cli(0, "report", "--verify", certificate)
                self.assertIn(f"erasure {number}", self.cli(0, "audit"))

                # An earlier backup, and a file, are refused; what is new is not.
                self.refused("restore", saved)
                self.assertEqual(search(directories, [text]), set())
                lines = os.path.join(self.place.path, f"lines-{name}.lp")
                with open(lines, "w", encoding="utf-8") as file:
                    file.write(line + "\n")
                self.refused("import", "-n", "d", lines)
                self.assertEqual(search(directories, [text]), set())
                self.assertEqual(self.ours.write(line), 0)
                self.assertIn(text, json.dumps(self.ours.query(f'SELECT * FROM "{name}"')))
                later = os.path.join(self.place.path, f"later-{name}")
                self.cli(0, "backup", later)
                self.ours.query("DROP DATABASE d")
                self.refused("restore", later)
                self.assertIn("copies", self.cli(0, "erase", "--fences"))
                fences = json.loads(self.cli(0, "erase", "--fences", "--json"))["fences"]
                for lifted in sorted({fence["id"] for fence in fences}):
                    self.cli(0, "erase", "--lift", str(lifted))
                self.assertIn("[]", self.cli(0, "erase", "--fences", "--json"))
                self.cli(0, "restore", later)
                self.assertIn(text, json.dumps(self.ours.query(f'SELECT * FROM "{name}"')))

    def test_z_a_token_without_the_scope_erases_nothing(self):
        self.ours.begin()
        token = json.loads(self.cli(0, "token", "create", "-n", "d", "--read", "*/*", "--write", "*/*",
                                    "--json"))["token"]
        admin = json.loads(self.cli(0, "token", "create", "--admin", "--json"))["token"]
        before = self.ours.query("SHOW SERIES", token=admin)
        for statement in ("DELETE FROM cpu", "DROP SERIES FROM cpu", "DROP MEASUREMENT cpu", "DROP DATABASE d",
                          "ALTER RETENTION POLICY autogen ON d DURATION 1d"):
            with self.subTest(statement=statement):
                answer = self.ours.query(statement, token=token)
                self.assertIn("may not erase", answer["results"][0]["error"])
                self.assertEqual(self.ours.query("SHOW SERIES", token=admin), before)


if __name__ == "__main__":
    unittest.main()
