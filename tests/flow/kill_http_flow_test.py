#!/usr/bin/env python3
"""kill -9 while four writers write over HTTP: what was acknowledged is there, and batches are whole."""
import http.client
import json
import re
import socket
import threading
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Place
from kill_rounds import LOSES_ON_PURPOSE, KillRounds, Verdict, check_that_loss_is_noticed

BATCH = 40
SENSORS = 4
BEGIN_NS = 1_763_647_200_000_000_000
STEP_NS = 1_000_000
LINE = re.compile(r"s(\d+),device=w\d+ value=([\d.]+)(i?) (\d+)")
# Small enough that tables are written and merged while it is killed.
STORAGE = 'memory-limit = "32MiB"\nwal-limit = "16MiB"'


class UnixConnection(http.client.HTTPConnection):
    """On the daemon's socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=TIME_LIMIT_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIME_LIMIT_SECONDS)
        self.sock.connect(self.path)


class Writer(threading.Thread):
    """Sends batch after batch, each once; after a loss it goes on with the next."""

    def __init__(self, rounds, number):
        super().__init__(daemon=True)
        self.rounds = rounds
        self.number = number
        self.speaks_json = number % 2 == 1
        self.sent = 0
        self.acknowledged = set()
        self.refused = []

    def run(self):
        generation = 0
        while generation := self.rounds.wait_for_another(generation):
            connection = self.connect()
            try:
                while not self.rounds.ended:
                    self.send(connection)
            except (OSError, http.client.HTTPException):
                pass  # killed: no answer to this batch
            finally:
                connection.close()

    def connect(self):
        if self.number >= 2:
            return UnixConnection(self.rounds.place.socket)
        return http.client.HTTPConnection("localhost", self.rounds.daemon.port(),
                                          timeout=TIME_LIMIT_SECONDS)

    def send(self, connection):
        batch = self.sent
        self.sent += 1
        if LOSES_ON_PURPOSE:
            self.acknowledged.add(batch)
        path = "/api/v1/readings?ns=kill" if self.speaks_json else "/write?db=kill"
        connection.request("POST", path, self.body(batch))
        answer = connection.getresponse()
        text = answer.read().decode()
        if 200 <= answer.status < 300:
            self.acknowledged.add(batch)
        else:
            self.refused.append(f"{answer.status} {text}")

    def body(self, batch):
        numbers = range(batch * BATCH, (batch + 1) * BATCH)
        if self.speaks_json:
            return json.dumps([{"device": f"w{self.number}", "sensor": f"s{n % SENSORS}",
                                "time": BEGIN_NS + n * STEP_NS, "value": n + 0.5}
                               for n in numbers])
        return "".join(f"s{n % SENSORS},device=w{self.number} value={n}i {BEGIN_NS + n * STEP_NS}\n"
                       for n in numbers)

    def stored(self):
        """(batch, part) of each reading that came back as it was sent, None of any other."""
        result = self.rounds.place.cli("query", f"w{self.number}/*", "-n", "kill", "--format", "line")
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        return [self.place_of(line) for line in result.stdout.splitlines()]

    def place_of(self, line):
        found = LINE.fullmatch(line)
        if not found:
            return None
        sensor, value, integer, time_ns = found.groups()
        number = int(float(value))
        wanted = str(number + 0.5) if self.speaks_json else str(number)
        right = (int(sensor) == number % SENSORS and value == wanted
                 and bool(integer) != self.speaks_json
                 and int(time_ns) == BEGIN_NS + number * STEP_NS and number < self.sent * BATCH)
        return divmod(number, BATCH) if right else None


class KillHttpFlow(unittest.TestCase):
    def test_nothing_acknowledged_is_lost(self):
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(storage=STORAGE)
        rounds = KillRounds(place)
        self.addCleanup(lambda: rounds.daemon and rounds.daemon.stop())
        writers = [Writer(rounds, number) for number in range(4)]
        for writer in writers:
            writer.start()
        try:
            rounds.run()
        finally:
            rounds.end()
            for writer in writers:
                writer.join(TIME_LIMIT_SECONDS)
        verdict = Verdict()
        everything = [writer.stored() for writer in writers]
        for writer, stored in zip(writers, everything):
            verdict.add(writer.acknowledged, BATCH, stored)
        rounds.report(verdict)
        for writer in writers:
            self.assertEqual(writer.refused, [])
            self.assertGreater(len(writer.acknowledged), 0)
        self.assertTrue(verdict.is_clean(), str(verdict))
        check_that_loss_is_noticed(self, writers[0].acknowledged, BATCH, everything[0])
        self.assertEqual(rounds.daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
