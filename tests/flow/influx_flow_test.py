#!/usr/bin/env python3
"""InfluxQL over HTTP as programs ask it: long answers, those who leave, KILL QUERY; and influx, where it is there."""
import http.client
import json
import shutil
import socket
import subprocess
import unittest
import urllib.parse

from daemon_process import Daemon, Place, until

ROWS = 50_000


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
