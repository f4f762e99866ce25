#!/usr/bin/env python3
"""InfluxQL over HTTP as programs ask it: long answers, those who leave, KILL QUERY; and influx, where it is there."""
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
import unittest
import urllib.parse

from daemon_process import Daemon, Place, until

ROWS = 50_000
# No statement here takes longer or more, whatever it asks; sanitizers and emulators take time and memory of their own.
LIMITS_COUNT = "EDGECASE_TEST_SHARE" not in os.environ
SECONDS_MAX = 20
GROWTH_MAX_BYTES = 96 << 20  # what the daemon may take at all is limits.memory

BIG = 9223372036854775807
# Statements and a part of their error, in bytes: what of them is text need not be UTF-8.
HOSTILE = [
    (b"SELECT " + b"(" * 10_000 + b"v" + b")" * 10_000 + b" FROM long", r"at most 64 deep at line 1, char \d+"),
    (b"SELECT v FROM " + b"(SELECT v FROM " * 2_000 + b"long" + b")" * 2_000, r"at most 64 deep at line 1, char \d+"),
    (b"SELECT " + b"abs(" * 10_000 + b"v", r"at most 64 deep at line 1, char \d+"),
    (b"SELECT " + b"-" * 30_000 + b"v FROM long", r"at line 1, char \d+|FROM"),
    (b"SELECT v FROM long WHERE " + b"NOT " * 10_000 + b"v", r"at line 1, char \d+"),
    (b"SELECT v FROM long WHERE v = 1" + b" OR v=1" * 40_000, "more than 65536 bytes"),
    (b"SELECT " + b"v," * 500_000 + b"v FROM long", "more than 65536 bytes"),
    (b"SHOW DATABASES;" * 10_000, "more than 65536 bytes"),
    (b"SHOW QUERIES;" * 4_000, "limits.query-statements"),
    (b"SELECT max(v) FROM long WHERE time > '2000-01-01' GROUP BY time(1ns)", "max-select-buckets limit exceeded"),
    (b"SELECT mean(v) FROM long WHERE time > '1700-01-01' GROUP BY time(1ns) fill(linear)", "max-select-buckets"),
    (b"SELECT v FROM long WHERE host =~ /(((a{1,999}){1,999}){1,999})/", "error parsing regexp"),
    (b"SELECT v FROM long WHERE host =~ /((((((((a|b)*)*)*)*)*)*)*/", "error parsing regexp"),
    (b"SELECT v FROM /" + b"(" * 30_000 + b"/", "error parsing regexp|bad regex"),
    (b"SELECT v FROM long WHERE host =~ /\xff\xfe[\x80-\xff]/", "no UTF-8 at line 1, char 35"),
    (b'SELECT v AS "\xff\xfe" FROM long LIMIT 1', "no UTF-8 at line 1, char 14"),
    (b'SELECT v FROM "\xc3\x28" LIMIT 1', "no UTF-8 at line 1, char 16"),
    (b"SELECT v FROM long WHERE host = '\xed\xa0\x80'", "no UTF-8 at line 1, char 34"),
    (b"SELECT 'v FROM long", r"no closing quote.* at line 1, char \d+"),
    (b'SELECT "v FROM long', r"no closing quote.* at line 1, char \d+"),
    (b'SELECT v FROM long WHERE host = \'\\q\'', r"no such escape.* at line 1, char \d+"),
    (b"SELECT v FROM long WHERE host =~ /a", r"bad regex.* at line 1, char \d+"),
    (b"SELECT v /* FROM long", r"comment without an end at line 1, char \d+"),
    (b'SELECT $"v FROM long', r"no closing quote.* at line 1, char \d+"),
    (b"\xff\xfe\x00\x01SELECT v FROM long", "no UTF-8 at line 1, char 1"),
    (b"SELECT \x00 FROM long", r"at line 1, char \d+"),
    (b"SELECT v FROM long LIMIT 99999999999999999999", "unable to parse integer"),
]
# What is odd, and answered.
ODD = [
    b"SELECT v FROM long WHERE host =~ /(a*)*b|(x+x+)+y/ LIMIT 1",
    b"SELECT v FROM long WHERE w =~ /(x*x*)*y/ LIMIT 1",
    b"SELECT v FROM long WHERE host != '\x00' LIMIT 1",
    f"SELECT v FROM long LIMIT {BIG} OFFSET {BIG}".encode(),
    f"SELECT v FROM long GROUP BY * LIMIT 1 SLIMIT {BIG} SOFFSET {BIG}".encode(),
    f"SELECT count(v) FROM long WHERE time > 0 AND time < 9 GROUP BY time({BIG}ns, -{BIG}ns)".encode(),
    f"SELECT count(v) FROM long WHERE time >= -{BIG} AND time <= {BIG}".encode(),
    b"SELECT percentile(v, 100000.0) FROM long WHERE v % 0 = v",
    b"SELECT v FROM long WHERE v = 1" + b" OR v=1" * 9_000 + b" LIMIT 1",
    f"SELECT moving_average(v, {BIG}) FROM long".encode(),
    f"SELECT top(v, {BIG}) FROM long WHERE v < 9".encode(),
    f"SELECT sample(v, {BIG}) FROM long WHERE v < 9".encode(),
    b"SHOW TAG VALUES WITH KEY =~ /(((((.*)*)*)*)*)/",
]


class InfluxFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.daemon = Daemon(cls.place)
        lines = [f"long,host=a v={i},w=\"{'x' * 300}\" {i + 1}" for i in range(ROWS)]
        for first in range(0, ROWS, 10_000):
            status, _ = cls.daemon.request("POST", "/write", "\n".join(lines[first:first + 10_000]))
            assert status == 204

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.place.remove()

    def ask(self, statement, **more):
        fields = urllib.parse.urlencode({"q": statement, **more})
        status, text = self.daemon.request("GET", "/query?" + fields)
        self.assertEqual(status, 200, text)
        return json.loads(text)["results"][0]

    def running(self):
        """Ids of the queries that run, but for the one that asks."""
        rows = self.ask("SHOW QUERIES")["series"][0]["values"]
        return [row[0] for row in rows if row[1] != "SHOW QUERIES"]

    def begin(self, statement):
        """A connection, and an answer whose first rows have been sent and of which nothing more is read."""
        until(lambda: not self.running(), "what ran before has ended")
        connection = socket.create_connection(("localhost", self.daemon.port()))
        connection.settimeout(60)
        target = "/query?" + urllib.parse.urlencode({"q": statement})
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return connection, answer

    def test_a_long_answer_is_whole(self):
        rows = self.ask("SELECT v FROM long")["series"][0]["values"]
        self.assertEqual(len(rows), ROWS)
        self.assertEqual(rows[-1], ["1970-01-01T00:00:00.00005Z", ROWS - 1])

    def test_a_query_that_is_killed_ends_with_an_error(self):
        connection, answer = self.begin("SELECT * FROM long; SHOW DATABASES")
        with connection, answer:
            [number] = self.running()
            self.assertEqual(self.ask(f"KILL QUERY {number}"), {"statement_id": 0})
            results = json.loads(answer.read())["results"]
        self.assertEqual(results[0]["error"], "query killed")
        self.assertLess(len(results[0]["series"][0]["values"]), ROWS)
        self.assertEqual(results[1], {"statement_id": 1, "error": "not executed"})
        until(lambda: not self.running(), "the query is told no more")
        self.assertEqual(self.ask(f"KILL QUERY {number}")["error"], f"no such query id: {number}")

    def test_a_query_ends_when_its_client_leaves(self):
        connection, answer = self.begin("SELECT * FROM long")
        with connection, answer:
            self.assertEqual(len(self.running()), 1)
        until(lambda: not self.running(), "the query ends")

    def send(self, statement, **more):
        """Status and answer, which is UTF-8 and JSON whatever the statement was."""
        form = urllib.parse.urlencode({"q": statement, **more})
        head = {"Content-Type": "application/x-www-form-urlencoded"}
        started = time.monotonic()
        connection = http.client.HTTPConnection("localhost", self.daemon.port(), timeout=60)
        connection.request("POST", "/query", form, head)
        answer = connection.getresponse()
        text = answer.read().decode()  # UnicodeDecodeError: it is not UTF-8
        connection.close()
        if LIMITS_COUNT:
            self.assertLess(time.monotonic() - started, SECONDS_MAX, statement[:80])
        return answer.status, json.loads(text)

    def test_hostile_statements_get_an_error_with_its_place(self):
        before = self.daemon.memory_bytes("VmHWM")
        for statement, wanted in HOSTILE:
            with self.subTest(statement=statement[:60]):
                status, answer = self.send(statement)
                error = answer["error"] if "error" in answer else answer["results"][0]["error"]
                self.assertRegex(error, wanted)
                self.assertLess(len(error), 400)
                self.assertIn(status, (200, 400, 413))
        for statement in ODD:
            with self.subTest(statement=statement[:60]):
                status, answer = self.send(statement)
                self.assertEqual(status, 200, answer)
                self.assertNotIn("error", answer["results"][0])
        for odd in ({"epoch": "x"}, {"chunk_size": "-1", "chunked": "true"}, {"chunk_size": "9" * 30},
                    {"params": "{" * 10_000}, {"params": '{"a":' * 10_000}, {"params": "[" * 60_000}):
            self.assertEqual(self.send("SHOW DATABASES", **odd)[0], 400, odd)
        if LIMITS_COUNT:
            self.assertLess(self.daemon.memory_bytes("VmHWM") - before, GROWTH_MAX_BYTES)
        until(lambda: not self.running(), "nothing is left running")

    def test_z_what_is_erased_is_sent_no_more(self):
        connection, answer = self.begin("SELECT * FROM long")
        with connection, answer:
            status, text = self.daemon.request("POST", "/api/v1/erase?select=a/*&yes=true&wait=10s")
            self.assertEqual(status // 100, 2, text)
            with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
                answer.read()
        self.assertEqual(self.ask("SELECT * FROM long"), {"statement_id": 0})

    @unittest.skipUnless(shutil.which("influx"), "influx is not installed")
    def test_the_shell_of_influx(self):
        done = subprocess.run(
            ["influx", "-host", "localhost", "-port", str(self.daemon.port()), "-format", "csv", "-database", "default",
             "-execute", "INSERT cpu,host=a v=1.5 7; SELECT v FROM cpu; SHOW TAG VALUES FROM cpu WITH KEY = host"],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
