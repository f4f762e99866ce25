#!/usr/bin/env python3
"""Readers that mean harm, with the daemon's memory looked at: values as large as may be, in every format, by several at
once and by those that read slowly or not at all; and lists of as many names as may be."""
import base64
import collections
import contextlib
import http.client
import json
import os
import socket
import threading
import unittest

import hostile_clients
from daemon_process import TIME_LIMIT_SECONDS, Daemon, until
from hostile_clients import exchange
from hostile_daemon import BODY_BYTES_MAX, BOMB_BYTES_MAX, MEMORY_COUNTS, MIB, HostileDaemon, post


def ask(port, path, pause_seconds=0):
    """Head and body of an answer, whichever way it comes; read with pauses."""
    connection = http.client.HTTPConnection("localhost", port, timeout=TIME_LIMIT_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        pieces = []
        while piece := answer.read(MIB):
            pieces.append(piece)
            threading.Event().wait(pause_seconds)
        return answer, b"".join(pieces)


def drain(port, path):
    """The body of an answer."""
    answer, body = ask(port, path)
    if answer.status != 200:
        raise AssertionError((path, answer.status, body))
    return body


class HostileReadFlow(HostileDaemon):
    def test_values_as_large_as_may_be_are_read(self):
        self.start()
        size = BODY_BYTES_MAX - 1000
        texts = {"escaped": b"\\u0001" * (size // 6), "plain": b"x" * size,
                 "quotes": b'\\"' * (size // 2)}
        for time_ns, (sensor, escaped) in enumerate(texts.items(), 1):
            told = exchange(self.port, post("/api/v1/readings", (
                b'{"device":"large","sensor":"%s","time":%d,"value":"%s"}'
                % (sensor.encode(), time_ns, escaped))))
            self.assertEqual(told[0], 200, told)
        blob = os.urandom(size)
        put = hostile_clients.request("PUT", "/api/v1/blob/default/large/zblob?time=@9", blob)
        self.assertEqual(exchange(self.port, [put])[0], 201)
        ndjson = b"".join(
            b'{"namespace":"default","device":"large","sensor":"%s",'
            b'"time":"1970-01-01T00:00:00.%09dZ","value":"%s"}\n'
            % (sensor.encode(), time_ns, texts[sensor])
            for sensor, time_ns in (("escaped", 1), ("plain", 2), ("quotes", 3)))
        for phase in ("in memory", "in tables"):
            with self.subTest(phase):
                self.daemon.forget_peak()
                before = self.daemon.memory_bytes("VmRSS")
                for select in ("large/*", "large/*&export=true", "large/*&agg=last&every=1ns"):
                    got = drain(self.port, f"/api/v1/query?select={select}")
                    self.assertTrue(got.startswith(ndjson), select)
                    line = json.loads(got[len(ndjson):])
                    self.assertEqual(base64.b64decode(line["value"]), blob)
                for form in ("json", "csv", "line"):
                    got = drain(self.port, f"/api/v1/query?select=large/*&format={form}")
                    self.assertIn(texts["plain"], got)
                self.assertTrue(drain(self.port, "/api/v1/last?select=large/*").startswith(ndjson))
                self.assertEqual(drain(self.port, "/api/v1/blob/default/large/zblob"), blob)
                self.assertEqual(drain(self.port, "/api/v1/blob/default/large/plain"),
                                 texts["plain"])
                self.all_of_a_crowd_are_served(ndjson)
                self.store_good()
                self.within_limit(f"large values read, {phase}")
                grown = self.daemon.memory_bytes("VmHWM") - before
                print(f"reading large values {phase} took {grown / MIB:.1f} MiB", flush=True)
                if MEMORY_COUNTS:
                    self.assertLessEqual(grown, BOMB_BYTES_MAX)
            for round_ in range(30):  # so that they are written out
                lines = b"".join(b"fill,device=f%d v=%d %d\n" % (n % 100, n, round_ * 100_000 + n)
                                 for n in range(50_000))
                self.assertEqual(exchange(self.port, post("/write", lines)), (204, ""))

    def all_of_a_crowd_are_served(self, begin):
        """Six at once, twice as many as may be sent so much; each has it all, or waits for its turn."""
        told = []

        def read():
            answer, body = ask(self.port, "/api/v1/query?select=large/*", 0.02)
            told.append((answer.status, body.startswith(begin)))

        crowd = [threading.Thread(target=read) for _ in range(6)]
        for reader in crowd:
            reader.start()
        for reader in crowd:
            reader.join()
        if MEMORY_COUNTS:  # else they take longer than anybody waits
            self.assertEqual(told, [(200, True)] * 6)

    def test_slow_readers_keep_little_in_memory(self):
        self.start()
        port = self.port
        begun, _ = ask(port, "/api/v1/tail?select=large/*")
        cursor = begun.headers["X-EdgeCase-Cursor"]
        readers = []
        text_bytes = 4 * MIB
        for number in range(8):
            # What each of them reads is in a memtable of its own.
            text = b'{"device":"large","sensor":"x","time":%d,"value":"%s"}' % (
                number + 1, b"x" * text_bytes)
            self.assertEqual(exchange(port, post("/api/v1/readings", text))[0], 200)
            small = b'{"device":"large","sensor":"y","time":%d,"value":"%s"}' % (
                number + 1, b"y" * MIB)
            self.assertEqual(exchange(port, post("/api/v1/readings", small))[0], 200)
            for path in ("query?select=large/x", f"tail?select=large/*&cursor={cursor}"):
                reader = socket.create_connection(("localhost", port), TIME_LIMIT_SECONDS)
                self.addCleanup(reader.close)
                reader.sendall(hostile_clients.request("GET", f"/api/v1/{path}"))
                readers.append(reader)
        status = until(lambda: (told := self.status())["memory"]["kept_memtable_bytes"] <= 5 * MIB
                       and told, "readers have let go of what is written out")
        print(f"kept: {status['memory']}", flush=True)
        self.store_good()
        self.within_limit("slow readers")
        answers = collections.Counter(reader.recv(12) for reader in readers)
        print(f"told: {answers}", flush=True)
        self.assertEqual(set(answers), {b"HTTP/1.1 200", b"HTTP/1.1 503"})

    def test_a_flood_of_long_names(self):
        self.start()
        self.daemon.forget_peak()
        series, told = 0, None
        while told is None:
            lines = "".join(f"{'s' * 120}{n},device={'d' * 120}{n // 5} value=1\n"
                            for n in range(series, series + 5_000))
            stored = exchange(self.port, post("/write", lines.encode()))
            if stored == (204, ""):
                series += 5_000
            else:
                told = stored
        self.assertEqual(told[0], 400, told[1][:500])
        self.assertIn("storage.memory-limit", told[1])
        self.within_limit(f"{series} series with long names")
        text = b'{"device":"good","sensor":"n","value":"%s"}' % (b"x" * (BODY_BYTES_MAX // 2))
        for _ in range(3):
            self.assertEqual(exchange(self.port, post("/api/v1/readings", text))[0], 200)
        self.within_limit("the same, and values of 8 MiB")
        print(f"with long names: {self.status()['memory']}", flush=True)
        counts = {}
        for path in ("last", "series", "devices"):
            self.daemon.forget_peak()
            listed = drain(self.port, f"/api/v1/{path}?select=d*")
            counts[path] = listed.count(b'"device":"dd')
            self.within_limit(path)
        # Of the request that was refused some slices had been stored.
        self.assertIn(counts["series"], range(series, series + 5_000))
        self.assertEqual(counts["last"], counts["series"])
        self.assertEqual(counts["devices"], -(-counts["series"] // 5))
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon = Daemon(self.daemon.place)
        self.port = self.daemon.port()
        self.within_limit("started anew with long names")


if __name__ == "__main__":
    unittest.main(verbosity=2)
