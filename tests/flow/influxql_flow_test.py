#!/usr/bin/env python3
"""InfluxQL beside influxd 1.x: the same lines into both, generated statements, the same answers.

EDGECASE_INFLUXQL_SEED and EDGECASE_INFLUXQL_STATEMENTS give another seed and more statements. What differs on purpose
is in ON_PURPOSE and SAID_OTHERWISE, with the reason; the grammar makes no other statement of these kinds.
"""
import http.client
import json
import math
import os
import random
import re
import unittest
import urllib.parse

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place
from influxd import INFLUXD, Influxd
from influxql_grammar import Grammar, lines
from influxql_wide_grammar import WideGrammar

SEED = int(os.environ.get("EDGECASE_INFLUXQL_SEED", "1"))
STATEMENTS = int(os.environ.get("EDGECASE_INFLUXQL_STATEMENTS", "1200"))
DATABASE = "d"

# Statement, what EdgeCase answers (a part of the JSON), why.
ON_PURPOSE = [
    ("SELECT n FROM up LIMIT 0 OFFSET 118", '"values":[[1577843880000000000,1],[1577843940000000000,86]]',
     "influxd reads as many points as OFFSET and one more, so that one row at most is left"),
    ("SELECT v INTO x FROM up", "INTO is not offered",
     "a question writes nothing; import and line protocol do"),
    ("SELECT holt_winters(mean(v), 2, 2) FROM up WHERE time >= 1577836800s AND time < 1577837800s GROUP BY time(1m)",
     "holt_winters() is not offered", "forecasts are no part of a store"),
    ("SELECT v FROM (SELECT v FROM cpu GROUP BY host LIMIT 1) WHERE v > 1000", "{}",
     "LIMIT in brackets holds for each group there; influxd begins to count anew whenever groups alternate"),
    ("SELECT count(x) FROM (SELECT max(v) AS x FROM mem WHERE time >= 1577841720s AND time < 1577842980s "
     "GROUP BY host, time(2m) fill(0))", '"values":[[0,33]]', "so does fill()"),
    ("SELECT percentile(v, 5) FROM up WHERE time >= 1577838152s AND time < 1577839451s GROUP BY time(10m)",
     "[1577838600000000000,30]",
     "of a window of few points percentile() gives nothing; influxd leaves out all others as well then"),
    ("SELECT spread(v) FROM (SELECT max(v) AS v FROM up GROUP BY time(7m)) WHERE time >= 1577838152s AND "
     "time < 1577839451s", '"spread"', "influxd gives up where a window in brackets begins before the time asked for"),
    ("SELECT derivative(mean(v)) FROM up WHERE time < 1577836920s GROUP BY time(1m)", "[1577836860000000000,1]",
     "windows begin with the first point; influxd gives up where no beginning is said"),
    ("SELECT bottom(v, 2) FROM up LIMIT 2", "[1577836800000000000,0],[1577836860000000000,1]",
     "LIMIT holds for what bottom() gives; influxd reads no more points than that"),
    ("SELECT first(v) FROM mem", '"first"',
     "of several series with a point at one instant influxd takes one by chance, as for mode() and percentile()"),
    ("SELECT x FROM (SELECT min(w) AS x FROM cpu GROUP BY host)", '"x"',
     "rows are in the order of their times; influxd gives points that were chosen in the order of their groups"),
    ("SELECT count(x) FROM (SELECT stddev(v) AS x FROM up GROUP BY time(1m))", "{}",
     "what is no number in brackets is no value around them; influxd counts it, and the highest is then none"),
    ("SELECT ln(v) FROM up LIMIT 2", '"values":[[1577836800000000000,null],[1577836860000000000,0]]',
     "infinity is null; influxd gives no answer at all"),
    ("SHOW MEASUREMENTS WHERE zone = ''", '"values":[["cpu"],["mem"],["up"]]',
     "WHERE is asked of each series, one without the tag has it empty, as for SHOW SERIES and TAG VALUES; influxd "
     "leaves these out here and from the CARDINALITY of TAG VALUES"),
    ("SHOW MEASUREMENTS WHERE time < 0", "{}", "time is obeyed; influxd refuses it"),
]

# What is said around a question: parameters and heads.
FORMS = [({}, {}), ({"epoch": "ns"}, {}), ({"epoch": "u"}, {}), ({"epoch": "ms"}, {}), ({"epoch": "s"}, {}),
         ({"epoch": "m"}, {}), ({"epoch": "h"}, {}), ({"pretty": "true"}, {}), ({"chunked": "true"}, {}),
         ({"chunked": "true", "chunk_size": "3", "epoch": "s"}, {}), ({}, {"Accept": "application/csv"}),
         ({"epoch": "ms"}, {"Accept": "text/csv"}), ({"pretty": "true", "epoch": "s"}, {"Accept": "application/json"})]
ASKED_IN_FORMS = [
    "SELECT v, n FROM up LIMIT 7", "SELECT mean(v) FROM up WHERE time < 1577840400s GROUP BY time(30m)",
    "SELECT v, s FROM cpu WHERE host = 'a' GROUP BY host, zone LIMIT 2", "SELECT v FROM nosuch",
    "SELECT v FROM up LIMIT 1; SELECT n FROM up LIMIT 1; SHOW TAG KEYS FROM cpu", "SHOW MEASUREMENTS",
]
WRONG = ["SELECT", "SELECT v FROM up; SELECT FROM up", "SELECT mean(v) FROM up GROUP BY time(1m) fill(x)",
         "SELECT v FROM up WHERE time = 'x'", "", "SELECT v > 1 FROM up", "SELECT max(s) FROM cpu",
         # Where a text ends too early.
         "SELECT ", "SELECT *", "SELECT v,", "SELECT 1 ", 'SELECT "v"', "SELECT v -- x", "SELECT v /* x */",
         "SELECT v FROM up WHERE (v = 1", "SELECT v FROM up WHERE (v", "SELECT v FROM up WHERE v =",
         "SELECT v FROM up WHERE v =~", "SELECT v FROM (SELECT v FROM up LIMIT 1 ", "SELECT v FROM up LIMIT  ",
         "CREATE RETENTION POLICY p ON d DURATION 1d", "CREATE RETENTION POLICY p ON d DURATION 1d DEFAULT",
         "CREATE RETENTION POLICY p ON d REPLICATION 1", "CREATE DATABASE a WITH FOO", "DROP SERIES FROM up WHERE h =",
         "SHOW TAG VALUES WITH KEY IN (a", "SHOW TAG VALUES WITH KEY IN (a,", "SHOW TAG VALUES WITH KEY =",
         "SELECT mean(", "SELECT mean(v) FROM up GROUP BY time(", "SELECT mean(v) FROM up GROUP BY time(1m) fill",
         "SELECT mean(v) FROM up GROUP BY time(1m) fill(", "SELECT mean(v) FROM up GROUP BY time(1m) fill(x",
         "SELECT mean(v) FROM up GROUP BY time(1m) fill(1,2)", "SELECT v FROM up tz",
         "SELECT v FROM 'up'", "SELECT v FROM up WHERE h =~ 'a'", "SELECT v FROM up WHERE v = 1x",
         "SHOW MEASUREMENTS WITH MEASUREMENT =", "SELECT v FROM up tz()"]

# Statements that are cut or spoilt at each of their words, in a database without anything in it.
SPOILT = [
    "SELECT mean(v) AS x, max(n) FROM w.autogen.up, cpu WHERE host = 'a' AND time > now() - 1h AND v + 1 >= 2.5 "
    "GROUP BY time(1m, 5s), host fill(previous) ORDER BY time DESC LIMIT 3 OFFSET 1 SLIMIT 2 SOFFSET 1 "
    "tz('Europe/Berlin')",
    "SELECT * FROM /u./ WHERE host =~ /a|b/ OR (zone != 'x' AND NOT v)",
    "SELECT top(v, host, 3) FROM (SELECT v FROM cpu GROUP BY *) GROUP BY /h.*/",
    "SELECT v::float, -n, (v - 1) * 2 % 3 FROM \"cpu\" WHERE time >= '2020-01-01T00:00:00Z'",
    "SHOW TAG VALUES ON w FROM cpu WITH KEY IN (host, \"zone\") WHERE host = 'a' LIMIT 2 OFFSET 1",
    "SHOW MEASUREMENTS ON w WITH MEASUREMENT =~ /c.*/ WHERE host = 'a' LIMIT 1", "SHOW TAG KEY CARDINALITY",
    "SHOW SERIES EXACT CARDINALITY ON w FROM cpu", "SHOW FIELD KEYS ON w FROM cpu LIMIT 1", "SHOW QUERIES",
    "SHOW RETENTION POLICIES ON w", "KILL QUERY 3 ON h", "EXPLAIN ANALYZE SELECT v FROM cpu",
    "CREATE DATABASE w WITH DURATION 1d REPLICATION 1 SHARD DURATION 1h NAME p",
    "CREATE RETENTION POLICY p ON w DURATION 1d REPLICATION 1 SHARD DURATION 1h DEFAULT",
    "ALTER RETENTION POLICY p ON w DURATION 1d REPLICATION 1 SHARD DURATION 1h DEFAULT",
    "DROP SERIES FROM cpu WHERE host = 'a'", "DROP MEASUREMENT cpu", "DELETE FROM cpu WHERE time < 5",
    "DROP DATABASE nosuch", "DROP RETENTION POLICY p ON w"]
WORDS = re.compile(r"""\s+|'[^']*'|"[^"]*"|/[^/ ]+/|[A-Za-z_]\w*|\d[\w.]*|[<>!=~:]+|.""")
ODD = ["", "x", "'x'", "1", "1.5", "1h", "/r/", "(", ")", ",", "=", "SELECT", ";", "-", "@", "::", "."]
# A statement that is refused in other words than influxd's, those of the same kind, what is said, why.
SAID_OTHERWISE = [
    ('DROP DATABASE "x', r"^[^\"']*[\"'][^\"']*$", "no closing quote behind x", "it says more; influxd found x"),
    ("SHOW TAG KEYS ON $x", r"[$]", "missing parameter: x", "names stand for $x, too; influxd found $x"),
    ("SELECT mean(v, / 2", r", / ", "bad regex: no closing slash", "it says more"),
    ("DELETE FROM cpu /r/ time", r"(?<!FROM) +/u|[\w\"/] +/r/|/r/ /", "found /, expected ;",
     "influxd looks for what is no part of it"),
    ("SELECT v FROM m WHERE h =~ /a/ - n", r"/ -", "found -, expected ;", "nothing is taken from a pattern"),
    ("SELECT v FROM d.::.m", r"\.::", "found ::, expected identifier", "influxd takes a part without a name"),
    ("CREATE DATABASE a WITH REPLICATION 1 DURATION 1d DURATION 1d", r"REPLICATION 1 +DURATION",
     "found duplicate DURATION option", "options may have any order"),
    ("SHOW MEASUREMENTS WITH MEASUREMENT =~ x /c/", r"=~ x", "found x, expected regex", "a name is no pattern"),
]


def spoilt_statements():
    """In one order, each once, but for those of a kind that is refused in other words."""
    made = {}
    for statement in SPOILT:
        words = WORDS.findall(statement)
        for i, word in enumerate(words):
            before, after = "".join(words[:i]), "".join(words[i + 1:])
            if not word.isspace():
                made.update(dict.fromkeys([before, before.rstrip()]))
                made.update(dict.fromkeys(before + odd + after for odd in ODD))
                made.update(dict.fromkeys(f"{before}{odd} {word}{after}" for odd in ODD))
    return [each for each in made if not any(re.search(kind, each) for _, kind, _, _ in SAID_OTHERWISE)]


# What dashboards and energy managers ask, in their quotes and with their times: of two hours from 2020-01-01 on.
SPAN = "time >= 1577836800000ms AND time <= 1577844000000ms"
PANELS = [
    f"""SELECT mean("v") FROM "cpu" WHERE ("zone"::tag = '') AND {SPAN} GROUP BY time(5m) fill(null)""",
    f"""SELECT mean("v") FROM "cpu" WHERE ("host"::tag =~ /^a$/ OR "host"::tag =~ /^b$/) AND "zone"::tag != 'y' """
    f"""AND {SPAN} GROUP BY time(10m), "host"::tag fill(linear)""",
    f'SELECT derivative(mean("v"), 10s) AS "x" FROM "cpu" WHERE "host" =~ /^(a|b)$/ AND {SPAN} '
    'GROUP BY time(1m), "host"',
    f'SELECT moving_average(mean("v"), 5) FROM "cpu" WHERE {SPAN} GROUP BY time(1m) fill(previous)',
    f'SELECT difference(last("v")) FROM "cpu" WHERE {SPAN} GROUP BY time(30m), "host"::tag tz(\'Europe/Berlin\')',
    f'SELECT spread("v") FROM "up" WHERE {SPAN} GROUP BY time(1d) tz(\'America/New_York\')',
    f'SELECT percentile("v", 95) FROM "cpu" WHERE {SPAN} GROUP BY time(20m)',
    f'SELECT stddev("v") / mean("v") FROM "cpu" WHERE {SPAN} GROUP BY time(30m)',
    f'SELECT count("v") FROM "cpu", "up" WHERE {SPAN} GROUP BY time(10m) fill(0) ORDER BY time DESC LIMIT 3',
    f'SELECT mean(*) FROM "cpu" WHERE {SPAN} GROUP BY time(30m), *',
    f'SELECT top("v", "host", 3) FROM "cpu" WHERE {SPAN}',
    'SELECT last("v"), "host", "zone" FROM "cpu" GROUP BY "host"',
    f'SELECT "s", "v" FROM "cpu" WHERE {SPAN} ORDER BY time DESC LIMIT 5',
    f'SELECT elapsed("v", 1m) FROM "up" WHERE {SPAN}',
    # Energy of power, by days; above a threshold.
    f"""SELECT integral("x") / 3600000 FROM (SELECT mean("v") AS "x" FROM "cpu" WHERE ("zone"::tag = '') AND {SPAN} """
    f"""GROUP BY time(60s) fill(previous)) WHERE {SPAN} GROUP BY time(1d) fill(null) tz('Europe/Berlin')""",
    f'SELECT integral("x") / 3600 FROM (SELECT mean("v") AS "x" FROM "cpu" WHERE {SPAN} AND "v" < 40 '
    f'GROUP BY time(60s) fill(none)) WHERE {SPAN} GROUP BY time(30m)',
    f'SELECT sum("x") FROM (SELECT integral("v") / 3600 AS "x" FROM "cpu" WHERE {SPAN} GROUP BY time(10m), host '
    f'fill(none)) WHERE {SPAN} GROUP BY time(1d)',
    f'SELECT sum("x") FROM (SELECT non_negative_difference(last("v")) AS "x" FROM "cpu" WHERE {SPAN} '
    f'GROUP BY time(10m), host) WHERE {SPAN} GROUP BY time(1h), host',
    f'SELECT cumulative_sum(max("x")) FROM (SELECT non_negative_difference(last("v")) AS "x" FROM "up" WHERE {SPAN} '
    f'GROUP BY time(10m)) WHERE {SPAN} GROUP BY time(10m)',
    # Two statements behind one FROM, and what is between them.
    f'SELECT mean("a") - mean("b") FROM (SELECT mean("v") AS "a" FROM "up" WHERE {SPAN} GROUP BY time(10m)), '
    f'(SELECT mean("n") AS "b" FROM "up" WHERE {SPAN} GROUP BY time(10m)) WHERE {SPAN} GROUP BY time(30m)',
]


class Client:
    """One connection that is kept."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIME_LIMIT_SECONDS)

    def exchange(self, method, path, body, head):
        """Status, type and text."""
        self.connection.request(method, path, body.encode(), head)
        answer = self.connection.getresponse()
        return answer.status, (answer.headers["Content-Type"] or "").split(";")[0], answer.read().decode()

    def post(self, path, body, **parameters):
        return self.exchange("POST", f"{path}?{urllib.parse.urlencode(parameters)}", body, {})[2]

    def refusal(self, statement):
        """What is wrong in it; empty: it was understood."""
        error = json.loads(self.post("/query", "", db="w", q=statement)).get("error", "")
        return error if error.startswith("error parsing query") else ""

    def ask(self, statement, named=None):
        """The only result, without its number; or its error. `named`: what $name stands for."""
        more = {"params": json.dumps(named)} if named else {}
        answer = json.loads(self.post("/query", "", db=DATABASE, epoch="ns", q=statement, **more))
        if "results" not in answer:
            return {"error": answer["error"]}  # EdgeCase says more beside it
        result = answer["results"][0]
        result.pop("statement_id")
        return result


def in_order(result):
    """The same, rows of one time in the order of their texts: whose comes first is by chance in influxd."""
    for series in result.get("series", []):
        rows = series["values"]
        begin = 0
        while begin < len(rows):
            end = begin
            while end < len(rows) and rows[end][0] == rows[begin][0]:
                end += 1
            rows[begin:end] = sorted(rows[begin:end], key=json.dumps)
            begin = end
    return result


def equal(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return a == b


@unittest.skipUnless(INFLUXD, "influxd is not installed")
class InfluxqlFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.daemon = Daemon(cls.place)
        cls.addClassCleanup(cls.place.remove)
        cls.addClassCleanup(cls.daemon.stop)
        cls.influxd = Influxd()
        cls.addClassCleanup(cls.influxd.stop)
        cls.random = random.Random(SEED)
        cls.ours, cls.theirs = Client(cls.daemon.port()), Client(cls.influxd.port)
        text = lines(cls.random)
        for client in (cls.ours, cls.theirs):
            client.post("/query", "", q=f"CREATE DATABASE {DATABASE}")
            refused = client.post("/write", text, db=DATABASE)
            assert not refused, refused

    def test_answers_are_those_of_influxd(self):
        grammar, wide = Grammar(self.random), WideGrammar(self.random)
        differing = []
        for i in range(STATEMENTS):
            statement, named = wide.statement() if i % 2 else (grammar.statement(), {})
            ours, theirs = (in_order(client.ask(statement, named)) for client in (self.ours, self.theirs))
            if not equal(ours, theirs):
                differing.append(f"{statement} {named or ''}\n  influxd:  {json.dumps(theirs)[:600]}\n"
                                 f"  edgecase: {json.dumps(ours)[:600]}")
        self.assertFalse(differing, f"seed {SEED}: {len(differing)} of {STATEMENTS}\n" + "\n".join(differing[:10]))

    def test_panels(self):
        for statement in PANELS:
            with self.subTest(statement=statement):
                ours, theirs = (in_order(client.ask(statement)) for client in (self.ours, self.theirs))
                self.assertTrue(theirs.get("series"), theirs)
                self.assertTrue(equal(ours, theirs), f"influxd: {theirs}\nedgecase: {ours}")

    def exchange_both(self, statement, parameters, head):
        path = "/query?" + urllib.parse.urlencode({"db": DATABASE, "q": statement, **parameters})
        return (client.exchange("GET", path, "", head) for client in (self.ours, self.theirs))

    def test_forms_of_an_answer(self):
        for statement in ASKED_IN_FORMS:
            for parameters, head in FORMS:
                with self.subTest(statement=statement, parameters=parameters, head=head):
                    ours, theirs = self.exchange_both(statement, parameters, head)
                    self.assertEqual(ours, theirs)

    def test_what_is_wrong_is_said_with_the_same_status_and_words(self):
        for statement in WRONG:
            with self.subTest(statement=statement):
                answers = self.exchange_both(statement, {}, {})
                ours, theirs = ((status, json.loads(text)) for status, _, text in answers)
                if "error" in ours[1]:  # EdgeCase says more beside it
                    ours = (ours[0], {"error": ours[1]["error"]})
                self.assertEqual(ours, theirs)

    def test_spoilt_statements_are_refused_in_the_same_words(self):
        statements, differing, refused = spoilt_statements(), [], 0
        for statement in random.Random(SEED).sample(statements, min(STATEMENTS, len(statements))):
            if theirs := self.theirs.refusal(statement):
                refused += 1
                if (ours := self.ours.refusal(statement)) != theirs:
                    differing.append(f"{statement}\n  influxd:  {theirs}\n  edgecase: {ours}")
        self.assertGreater(refused, min(STATEMENTS, len(statements)) // 2)
        self.assertFalse(differing, f"seed {SEED}: {len(differing)}\n" + "\n".join(differing[:10]))

    def test_what_is_said_otherwise_is_known(self):
        for statement, kind, words, reason in SAID_OTHERWISE:
            with self.subTest(statement=statement, reason=reason):
                self.assertRegex(statement, kind)
                self.assertIn(words, self.ours.refusal(statement))
                self.assertNotIn(words, self.theirs.refusal(statement))

    def test_what_differs_on_purpose_is_known(self):
        for statement, part, reason in ON_PURPOSE:
            with self.subTest(statement=statement, reason=reason):
                answer = json.dumps(self.ours.ask(statement), separators=(",", ":"))
                self.assertIn(part, answer)


if __name__ == "__main__":
    print(f"seed {SEED}, {STATEMENTS} statements", flush=True)
    unittest.main()
