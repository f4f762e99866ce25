#!/usr/bin/env python3
"""An erasure goes where readings went: what is erased here is gone there, and nothing else is."""
import http.client
import json
import os
import re
import time
import unittest
import urllib.parse

import forward_flow_test
from daemon_process import Daemon, until
from forward_flow_test import Board, all_readings, select, target
from influxd import INFLUXD, Influxd
from victoria import VICTORIA, Victoria

NOW = time.time_ns()
SECOND = 1_000_000_000


def series_of(daemon):
    return {(row["device"], row["sensor"]) for row in map(json.loads, all_readings(daemon))}


def files_with(place, word):
    """Files of a store that hold the word."""
    found = []
    for drive in ("meta", "values"):
        for folder, _, names in os.walk(os.path.join(place.path, drive)):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    if word in file.read():
                        found.append(name)
    return found


def at(time_ns):
    return f"@{time_ns // SECOND}.{time_ns % SECOND:09d}"


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class ForwardEraseFlow(unittest.TestCase):
    proxy = forward_flow_test.ForwardFlow.proxy
    hub = forward_flow_test.ForwardFlow.hub
    port_of = staticmethod(forward_flow_test.ForwardFlow.port_of)

    def erased(self, board, *arguments):
        done = board.place.cli("erase", *arguments, "--yes", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @staticmethod
    def states(board, number):
        """Of targets, by name."""
        status, text = board.daemon.request("GET", f"/api/v1/erasures?id={number}")
        assert status == 200, text
        return {each["name"]: each["state"] for each in json.loads(text).get("targets", [])}

    def test_a_namespace_that_is_dropped_here_or_there(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port, 'from = "beginning"'))

        def write(namespace, device, first, count):
            status, text = board.daemon.request("POST", f"/write?precision=ns&db={namespace}", "\n".join(
                f"m,host={device} f={i} {NOW - 60 * SECOND + i}" for i in range(first, first + count)))
            self.assertEqual(status, 204, text)

        def there():
            return {(row["namespace"], row["device"]) for row in map(json.loads, all_readings(hub[1]))}

        for namespace in ("plant", "default"):
            write(namespace, "pump", 0, 50)
        until(lambda: board.is_current("hub") and len(there()) == 2, "all is there")
        # Backlog that waits behind what is dropped, and before it.
        proxy.answer = (503, {}, b"")
        write("plant", "tank", 0, 30)
        write("default", "tank", 0, 20)
        until(lambda: board.status("hub")["state"] == "waiting", "it waits")
        done = board.place.cli("namespace", "drop", "plant", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("what went to hub is still there", done.stderr)
        until(lambda: board.status("hub")["unsent"]["erased"] == 30, "what waited is counted")
        board.restart()
        # The name is free, for another namespace.
        write("plant", "valve", 0, 10)
        proxy.answer = None
        board.resume("hub")
        wanted = {("plant", "pump"), ("plant", "valve"), ("default", "pump"), ("default", "tank")}
        until(lambda: board.is_current("hub") and there() == wanted, "what is here still is there")
        self.assertEqual(board.status("hub")["unsent"]["erased"], 30)
        verify = board.place.cli("forward", "verify", "hub")
        self.assertEqual(verify.returncode, 0, verify.stdout + verify.stderr)
        # Dropped at the target: it is missing there, and goes again.
        dropped = hub[0].cli("namespace", "drop", "plant", "--yes")
        self.assertEqual((dropped.returncode, dropped.stderr), (0, ""))
        verify = board.place.cli("forward", "verify", "hub")
        self.assertNotEqual(verify.returncode, 0, verify.stdout + verify.stderr)
        until(lambda: there() == wanted - {("plant", "pump")}, "it is there again")
        verify = board.place.cli("forward", "verify", "hub")
        self.assertEqual(verify.returncode, 0, verify.stdout + verify.stderr)

    def test_an_edgecase_that_was_away_is_told_and_nothing_comes_back(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        proxy.seen = []
        board = Board(self, target("hub", "edgecase", proxy.port, 'from = "beginning"') +
                      target("others", "edgecase", proxy.port, "").replace("*:*/*", "none/*"))
        lines = [f'm,host=meter-anna f={i},s="secret of anna" {NOW - 60 * SECOND + i}' for i in range(50)]
        board.write(lines + [f"m,host=meter-bob f={i} {NOW - 60 * SECOND + i}" for i in range(50)])
        until(lambda: board.is_current("hub"), "all is there")
        # Backlog of what is to go lies here while the target is away.
        proxy.answer = (503, {}, b"")
        board.write([f"m,host=meter-anna f={i} {NOW - 50 * SECOND + i}" for i in range(50)])
        preview = board.place.cli("erase", "meter-anna", "--dry-run")
        self.assertIn("hub will be asked", preview.stdout)
        self.assertNotIn("others", preview.stdout)
        certificate = self.erased(board, "meter-anna")
        self.assertEqual([each["name"] for each in certificate["targets"]], ["hub"])
        self.assertTrue(certificate["names_wait"])
        self.assertEqual(self.states(board, certificate["id"]), {"hub": "waiting"})
        self.assertEqual(board.status("hub")["erasures_waiting"], 1)
        # Its name waits, and nobody can read it on the drives.
        self.assertEqual(files_with(board.place, b"meter-anna"), [])
        board.restart()
        later = NOW + 3600 * SECOND
        board.write([f"m,host=meter-anna f=7 {later}", f"m,host=meter-bob f=7 {later}"])
        del proxy.seen[:]
        proxy.answer = None
        board.resume("hub")
        until(lambda: self.states(board, certificate["id"]) == {"hub": "confirmed"}, "it is erased there")
        until(lambda: board.is_current("hub"), "what is new is there")
        self.assertEqual(all_readings(hub[1]), all_readings(board.daemon))
        self.assertEqual(len(all_readings(hub[1])), 52)
        self.assertEqual(files_with(hub[0], b"secret of anna"), [])
        # The erasure went first, and of what was erased nothing went at all.
        paths = [path for path, _ in proxy.seen if path.startswith(("/api/v1/erase?", "/api/v1/readings"))]
        self.assertTrue(paths[0].startswith("/api/v1/erase?"), paths)
        sent = b"".join(lines for _, lines in proxy.seen)
        self.assertEqual(len([line for line in sent.splitlines() if b"meter-anna" in line]), 1)

        def fences():
            return json.loads(hub[1].request("GET", "/api/v1/fences")[1])["fences"]
        self.assertTrue(fences())
        done = board.place.cli("erase", "--lift", str(certificate["id"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: not fences(), "the fences there are lifted, too")

    def test_times_sensors_and_statements_go_as_they_are(self):
        hub = self.hub()
        board = Board(self, target("hub", "edgecase", hub[1].port()))
        board.write([f"m,host=a f={i},g={i} {NOW - 100 * SECOND + i}" for i in range(10)])
        board.write([f"m,host=b f={i} {NOW - 100 * SECOND + i}" for i in range(10)])
        until(lambda: board.is_current("hub"), "all is there")
        for arguments in (["a", "--from", at(NOW - 100 * SECOND + 2), "--to", "now"], ["a/m.g"]):
            done = board.place.cli("erase", *arguments, "--yes", "--wait-targets")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("hub confirmed", done.stderr)
            self.assertGreater(len(all_readings(hub[1])), 10)
            self.assertEqual(all_readings(hub[1]), all_readings(board.daemon))
        # A statement keeps copies out alone: what is written again goes again.
        status, text = board.daemon.request("POST", "/query?db=default&q=" + urllib.parse.quote("DROP SERIES FROM m"))
        self.assertEqual(status, 200, text)
        board.write([f"m,host=b f=1 {NOW - 100 * SECOND}"])
        until(lambda: board.is_current("hub") and board.status("hub")["erasures_waiting"] == 0, "it went")
        self.assertEqual(all_readings(hub[1]), all_readings(board.daemon))
        self.assertEqual(len(all_readings(hub[1])), 1)
        # A token that may not: data go on.
        self.assertEqual(board.status("hub")["not_kept"], 0)

    @unittest.skipUnless(INFLUXD, "influxd is not installed")
    def test_influxdb_loses_what_is_meant_and_nothing_else(self):
        influxd = Influxd()
        self.addCleanup(influxd.stop)
        select(influxd.port, 'CREATE DATABASE "default"')
        board = Board(self, target("influx", "influx", influxd.port))
        board.write([f"m,host=a f={i},g={i} {NOW + i}" for i in range(10)])
        board.write([f"m,host=b f={i},g={i} {NOW + i}" for i in range(10)])
        board.write([f'o"d,host=a f={i} {NOW + i}' for i in range(10)])
        # Another board's, with the same tag and one more.
        self.assertEqual(ask(influxd.port, "POST", "/write?db=default", f"m,host=a,room=attic f=1 {NOW}")[0], 204)
        until(lambda: board.is_current("influx"), "all is there")
        count = "SELECT COUNT(f) FROM m GROUP BY host, room"
        self.assertEqual(len(select(influxd.port, "SELECT * FROM m")), 21)
        # One field of rows that hold two is not to be had alone.
        field = self.erased(board, "a/m.g")
        until(lambda: self.states(board, field["id"])["influx"] == "not possible", "it is told")
        self.assertEqual(len(select(influxd.port, "SELECT * FROM m")), 21)
        times = self.erased(board, "b", "--from", at(NOW + 5), "--to", at(NOW + 60 * SECOND))
        until(lambda: self.states(board, times["id"])["influx"] == "requested", "a range is asked for")
        rows = "SELECT f FROM m WHERE host = 'b'"
        self.assertEqual(select(influxd.port, rows), select(board.daemon.port(), rows))
        self.assertEqual(len(select(influxd.port, rows)), 5)
        board.write([f"m,host=c f=1 {NOW}"])
        until(lambda: board.is_current("influx"), "data go on")
        # What cannot be had of a stays with its rows; all else of it goes.
        whole = self.erased(board, "a")
        until(lambda: self.states(board, whole["id"])["influx"] != "waiting", "the device is asked for")
        self.assertEqual(select(influxd.port, 'SELECT * FROM "o\\"d"'), [])
        left = [json.loads(row) for row in select(influxd.port, "SELECT f, room FROM m WHERE host = 'a'")]
        # g of a was erased here before, so f alone is named now, and rows that hold both stay.
        self.assertEqual(len(left), 11, self.states(board, whole["id"]))
        self.assertTrue(select(influxd.port, count))

    if VICTORIA:  # else it is no part of this; a test that is skipped would skip the others
        def test_victoriametrics_loses_whole_series(self):
            victoria = Victoria()
            self.addCleanup(victoria.stop)
            board = Board(self, target("vm", "influx", victoria.port))
            board.write([f"m,host=a f={i},g={i} {NOW - 60 * SECOND + i * 1_000_000}" for i in range(10)])
            board.write([f"m,host=a,room=attic f={i} {NOW - 60 * SECOND + i * 1_000_000}" for i in range(10)])
            board.write([f"m,host=b f={i} {NOW - 60 * SECOND + i * 1_000_000}" for i in range(10)])
            until(lambda: board.is_current("vm"), "all is sent")

            def there():
                every = urllib.parse.quote('{__name__=~"m_.*"}')
                _, text = ask(victoria.port, "GET", "/api/v1/export?match[]=" + every)
                rows = map(json.loads, text.splitlines())
                return sorted((row["metric"]["__name__"], row["metric"]["host"], row["metric"].get("room", ""))
                              for row in rows)

            until(lambda: len(there()) == 4, "it shows all")
            times = self.erased(board, "b", "--from", "-1h", "--to", "now")
            until(lambda: self.states(board, times["id"])["vm"] == "not possible", "it has no ranges")
            sensor = self.erased(board, "a/m.f")
            until(lambda: self.states(board, sensor["id"])["vm"] == "requested", "it is asked for")
            until(lambda: there() == [("m_f", "a", "attic"), ("m_f", "b", ""), ("m_g", "a", "")],
                  f"the series alone is gone, not {there()}")

    def test_what_has_gone_here_goes_there_too(self):
        hub = self.hub()
        targets = target("hub", "edgecase", hub[1].port(), 'from = "beginning"')
        board = Board(self, targets)
        board.write([f'm,host=meter-anna f={i},s="secret of anna" {NOW - 60 * SECOND + i}' for i in range(50)] +
                    [f"m,host=meter-bob f=1 {NOW}"])
        until(lambda: board.is_current("hub"), "all is there")
        board.set_targets("")
        board.reload()
        self.assertEqual(board.place.cli("forward", "forget", "hub").returncode, 0)
        self.erased(board, "meter-anna")
        self.assertEqual(board.place.cli("erase", "meter-anna", "--yes").returncode, 3)
        board.set_targets(targets)
        board.reload()
        hub[1].stop()
        certificate = self.erased(board, "meter-anna")
        self.assertEqual((certificate["series"], certificate["readings"]), (0, 0))
        self.assertTrue(certificate["names_wait"])
        self.assertEqual(files_with(board.place, b"meter-anna"), [])
        hub[1] = Daemon(hub[0])
        board.set_targets(targets.replace(re.search(r":(\d+)\"", targets).group(1), str(hub[1].port())))
        board.reload()
        until(lambda: self.states(board, certificate["id"]) == {"hub": "confirmed"}, "it is erased there")
        self.assertEqual({device for device, _ in series_of(hub[1])}, {"meter-bob"})
        self.assertEqual(files_with(hub[0], b"secret of anna"), [])


if __name__ == "__main__":
    unittest.main()
