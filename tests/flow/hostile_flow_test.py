#!/usr/bin/env python3
"""The daemon among clients that mean harm: a thousand slow ones, bombs, and floods; with its memory looked at.

With EDGECASE_TEST_LONG=1 floods are as large as they say, everybody's deadline is waited for, and a
health probe among slow clients must be answered within 50 ms."""
import collections
import contextlib
import gzip
import json
import os
import socket
import time
import unittest
import zlib

import hostile_clients
from daemon_process import TIME_LIMIT_SECONDS, until
from hostile_clients import Crowd, exchange
from hostile_daemon import (BODY_BYTES_MAX, BOMB_BYTES_MAX, LONG, MEMORY_COUNTS, MIB, HostileDaemon,
                            post)
from mqtt_device import Device, text

CROWD = 1_000
PROBES = 200
PROBE_SECONDS_MAX = 0.05 if LONG else 5
GZIP = b"Content-Encoding: gzip\r\n"
ZSTD = b"Content-Encoding: zstd\r\n"
CHUNKED = (b"POST /write HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           b"Transfer-Encoding: chunked\r\n\r\n")
ANNOUNCED = b"\xff\xff\xff\x7f"  # 256 MB, the most that MQTT can say


def packed(mebibytes, wrapper=zlib.MAX_WBITS | 16):
    """So many of zeros, a thousand to one."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wrapper)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(mebibytes)) + packer.flush()


def packed_by_zstd(mebibytes, window_log=17):
    """So many of zeros in one frame that does not say how much it holds: four bytes a block of 128 KiB."""
    block = (128 << 10) << 3 | 1 << 1
    blocks = [block] * (8 * mebibytes - 1) + [block | 1]
    return (b"\x28\xb5\x2f\xfd\0" + bytes([(window_log - 10) << 3])
            + b"".join(each.to_bytes(3, "little") + b"\0" for each in blocks))


def head(headers):
    """Of a POST that announces what does not come."""
    return [b"POST /write HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n"]


def array(element, size_bytes=BODY_BYTES_MAX):
    """A JSON array of that size, nearly."""
    return b"[" + (element + b",") * ((size_bytes - 2) // (len(element) + 1) - 1) + element + b"]"


class HostileFlow(HostileDaemon):
    def probe(self):
        """Seconds until a new connection has its answer."""
        begun = time.perf_counter()
        self.assertEqual(self.get("/healthz"), "ok\n")
        return time.perf_counter() - begun

    # ---- Slow and idle

    def test_a_thousand_slow_and_idle_connections(self):
        self.start(http=f"connections = {CROWD + 50}\nconnections-per-address = 50")
        self.daemon.forget_peak()
        crowd = Crowd(self.port, CROWD, addresses=40)
        self.addCleanup(crowd.leave)
        until(lambda: self.status()["http"]["connections"] > CROWD, "all are connected")
        crowd.begin(refills=True)
        seconds = sorted(self.probe() for _ in range(PROBES))
        p99 = seconds[PROBES * 99 // 100 - 1]
        print(f"{crowd.held()} held: probe median {seconds[PROBES // 2] * 1e3:.2f} ms, "
              f"p99 {p99 * 1e3:.2f}, max {seconds[-1] * 1e3:.2f}", flush=True)
        self.store_good()
        until(lambda: crowd.held() == CROWD, "all are there again")
        self.assertLessEqual(p99, PROBE_SECONDS_MAX)
        crowd.end_refills()
        until(lambda: not crowd.held("head", "body"), "the slow ones are shown out")
        self.within_limit(f"{CROWD} slow and idle connections")
        for kind in ("head", "body"):
            for status, body in crowd.told(kind):
                self.assertEqual(status, 408)
                self.assertIn(f"the request's {kind} came too slowly", body)
        self.assertEqual(crowd.told("idle"), [])
        if LONG:
            until(lambda: not crowd.held(), "the idle ones are shown out")
            self.assertEqual(set(crowd.told("idle")), {(None, "")})
        crowd.leave()
        until(lambda: self.status()["http"]["connections"] == 1, "nobody but who asks is there")

    def test_where_connections_are_short_slow_ones_make_room(self):
        self.start()
        crowd = Crowd(self.port, CROWD, addresses=1, kinds=("head", "body"), at_once=True)
        self.addCleanup(crowd.leave)
        probe = hostile_clients.request("GET", "/healthz")
        begun = time.monotonic()

        def one_more():
            late = socket.create_connection(("localhost", self.port), TIME_LIMIT_SECONDS)
            self.addCleanup(late.close)
            late.sendall(hostile_clients.BEGINNINGS["head"])
            return 408 in [status for status, _ in crowd.told()]
        until(one_more, "the first of them makes room")
        until(lambda: exchange(self.port, [probe]) == (200, "ok\n"), "a probe is let in")
        print(f"let in after {time.monotonic() - begun:.2f} s", flush=True)
        # Their own deadlines are 10 s.
        self.assertLess(time.monotonic() - begun, 8)
        self.store_good()
        told = collections.Counter(crowd.told())
        for (status, body), count in told.items():
            print(f"{count} were told {status} {body.strip()}", flush=True)
            words = json.loads(body) if body else {}
            words = words.get("message") or words.get("error", {}).get("message", "")
            self.assertIn((status, words), [
                (None, ""),
                (503, "too many connections are open"),
                (503, "this address has as many connections open as "
                      "http.connections-per-address allows"),
                (408, "the request's head came too slowly, and others wait"),
                (408, "the request's body came too slowly, and others wait")])

    # ---- Bombs

    def test_bombs_take_no_memory(self):
        self.start()
        mebibytes = 512 if LONG else 64
        bomb, lying = packed(mebibytes), packed(mebibytes)[:-4] + b"\1\0\0\0"
        over = "bytes after decompression"
        most = f"the body has more than {BODY_BYTES_MAX} bytes"
        malformed = "the chunked body is malformed"
        huge = "the head has more bytes than http.head-limit = 16384"
        grown = {name: self.attack(name, pieces, status, words)
                 for name, pieces, status, words in [
            ("gzip", post("/write", bomb, GZIP), 413, over),
            ("gzip that lies", post("/write", lying, GZIP), 413, over),
            ("gzip in members", post("/write", bomb * 2 + gzip.compress(b"m v=1"), GZIP), 413, over),
            ("deflate", post("/write", packed(mebibytes, zlib.MAX_WBITS),
                             b"Content-Encoding: deflate\r\n"), 413, over),
            ("zstd", post("/write", packed_by_zstd(mebibytes), ZSTD), 413, over),
            ("zstd, frame by frame", post("/write", packed_by_zstd(1) * mebibytes, ZSTD), 413, over),
            ("zstd that looks far back", post("/write", packed_by_zstd(1, 30), ZSTD), 413, "looks back"),
            ("gzip of JSON", post("/api/v1/readings", lying, GZIP), 413, over),
            ("gzip in gzip", post("/write", gzip.compress(bomb), GZIP), 400, "unable to parse"),
            ("chunk of -2", [CHUNKED, b"-2\r\n"], 400, malformed),
            ("chunk of 2^63", [CHUNKED, b"7fffffffffffffff\r\n", bytes(MIB)], 413, most),
            ("chunk of 2^160", [CHUNKED, b"f" * 40 + b"\r\n"], 413, most),
            ("endless chunk size", [CHUNKED, b"0" * MIB], 400, malformed),
            ("endless extension", [CHUNKED, b"1;" + b"a" * MIB], 400, malformed),
            ("endless trailers", [CHUNKED, b"0\r\n" + b"a: b\r\n" * 100_000], 400, malformed),
            ("chunks in chunks", head(b"Transfer-Encoding: chunked, chunked\r\n"), 501, "only"),
            ("length of 10^18", head(b"Content-Length: 1" + b"0" * 18 + b"\r\n"), 413, most),
            ("length of -1", head(b"Content-Length: -1\r\n"), 400, "Content-Length is malformed"),
            ("two lengths", head(b"Content-Length: 5\r\nContent-Length: 6\r\n"), 400, "twice"),
            ("length and chunks", head(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400,
             "Transfer-Encoding does not go with Content-Length"),
            ("endless header", [b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * MIB], 431, huge),
            ("endless headers", [b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * MIB], 431, huge),
            ("endless target", [b"GET /" + b"x" * MIB], 414, "the request line is too long"),
            ("deep JSON", post("/api/v1/readings", b'{"a":' * 100_000), 400,
             "JSON is nested deeper than limits.json-depth = 32"),
            ("deep value", post("/api/v1/readings", b'{"device":"a","sensor":"b","value":'
                                + b"[" * 100_000 + b"]" * 100_000 + b"}"), 400,
             "JSON is nested deeper than limits.json-depth = 32"),
            ("deep descriptions", post("/api/v1/devices", b"[" * 100_000), 400, "levels deep"),
            ("10 M numbers", post("/api/v1/readings", b"[" + b"1," * 10_000_000 + b"1]"), 413, most),
            ("10 M numbers, packed", post("/api/v1/readings", gzip.compress(
                b"[" + b"1," * 10_000_000 + b"1]"), GZIP), 413, over),
        ]}
        worst = max(grown, key=grown.get)
        print(f"{worst} took most: {grown[worst] / MIB:.1f} MiB", flush=True)
        if MEMORY_COUNTS:
            self.assertLessEqual(grown[worst], BOMB_BYTES_MAX, worst)

    # ---- Floods

    def test_bodies_as_large_as_may_be(self):
        self.start()
        reading = b'{"device":"flood","sensor":"x","value":1}'
        chunk = b"1\r\nx\r\n" if LONG else b"14\r\n" + b"x" * 20 + b"\r\n"
        if LONG:
            lines = b"flood v=1\n" * (BODY_BYTES_MAX // 10)
            self.attack("lines", post("/write", lines), 204, "")
            rubbish = b"1\n" + (reading + b"\n") * 390_000
            self.attack("rubbish, then lines", post("/api/v1/readings", rubbish), 400,
                        "a reading is a JSON object")
        for name, pieces, status, words in [
            ("numbers", post("/api/v1/readings", array(b"1")), 400, "a reading is a JSON object"),
            ("readings", post("/api/v1/readings", array(reading)), 200, '"rejected":0'),
            ("a number", post("/api/v1/readings", b'{"value":' + b"1" * (BODY_BYTES_MAX - 10)), 400,
             "a number has more than 4096 characters"),
            ("readings, then rubbish", post("/api/v1/readings", array(reading)[:-1] + b"x"), 400,
             "not JSON"),
            ("endless chunks", [CHUNKED] + [chunk * 10_000] * 2_000, 413,
             f"the body has more than {BODY_BYTES_MAX} bytes"),
            ("descriptions", post("/api/v1/devices", array(b'{"device":"a"}', 4 * MIB)), 400,
             "at most 10000 devices"),
            ("values of descriptions", post("/api/v1/devices", b'{"device":"a","purposes":'
                                            + array(b'"b"', 4 * MIB - 100) + b"}"), 400,
             "descriptions hold at most 320000 values"),
            ("statements", post("/query", b"q=" + b"SHOW DATABASES;" * 1_000_000,
                                b"Content-Type: application/x-www-form-urlencoded\r\n"), 400,
             "error parsing query: more than 65536 bytes"),
        ]:
            self.attack(name, pieces, status, words)

    def test_values_as_large_as_may_be(self):
        self.start()
        size = BODY_BYTES_MAX - 1000
        reading = b'{"device":"large","sensor":"text","value":"%s"}'
        for name, pieces, status in [
            ("blobs", [hostile_clients.request("PUT", "/api/v1/blob/default/large/blob",
                                               os.urandom(size))], 201),
            ("a text in a line", post("/write", b'large text="' + b"x" * size + b'"'), 204),
            ("a text in JSON", post("/api/v1/readings", reading % (b"x" * size)), 200),
            ("a text in an array", post("/api/v1/readings", b"[%s]" % (reading % (b"x" * size))),
             200),
            ("bytes in JSON", post("/api/v1/readings", (reading % (b"abcd" * (size // 4))).replace(
                b'"value"', b'"type":"bytes","value"')), 200),
            ("an escaped text in JSON", post("/api/v1/readings",
                                             reading % (b"\\n" * (size // 2))), 200),
        ]:
            for _ in range(3):  # while what was before it is written
                self.attack(name, pieces, status, "")

    def test_a_flood_of_series(self):
        most, asked = (100_000, 1_000_000) if LONG else (10_000, 50_000)
        self.start(limits=f"series = {most}")
        for first in range(0, asked, 100_000):
            lines = b"".join(b"flood,device=d%d s%d=1\n" % (n % 1_000, n)
                             for n in range(first, min(first + 100_000, asked)))
            self.attack(f"{min(first + 100_000, asked)} series", post("/write", lines),
                        204 if first + 100_000 < most else 400,
                        "" if first + 100_000 < most else
                        f"the limit of {most} series is reached (setting limits.series)")
        self.assertLessEqual(self.status()["catalog"]["series"], most)

    def test_a_flood_of_topics(self):
        most, asked = (20_000, 100_000) if LONG else (2_000, 10_000)
        self.start(limits=f"devices = {most}")
        self.daemon.forget_peak()
        flood = Device("flood")
        self.addCleanup(flood.close)
        flood.connect(self.daemon.mqtt_port())
        for number in range(asked):
            flood.publish(f"sensors/flood{number}/x", "1", number)
            if number % 500 == 499:
                flood.settle(left=250)
        flood.settle()
        told = Device("told", version=5)
        self.addCleanup(told.close)
        told.connect(self.daemon.mqtt_port())
        told.send(1, "sensors/one-more/x", "1")
        kind, body = told.receive()
        self.assertEqual((kind, body[2:3]), (0x40, b"\x97"), body)
        self.assertIn(b"limits.devices", body)
        self.store_good()
        self.within_limit(f"{asked} topics")
        status = self.status()
        self.assertLessEqual(status["catalog"]["devices"], most + 1)  # that of _rejected
        listener = status["mqtt"]["listener"]
        # All but `good` is the flood's and one-more; what the limit refuses is kept, and said.
        self.assertEqual((listener["readings"], listener["rejected"], listener["rejected_lost"]),
                         (most - 1, asked + 2 - most, 0))
        kept = json.loads(self.get("/api/v1/last?ns=_rejected&format=ndjson"))["value"]
        self.assertIn("limits.devices", json.loads(kept)["reason"])

    def test_messages_of_256_megabytes(self):
        self.start()
        self.daemon.forget_peak()
        port = self.daemon.mqtt_port()
        before = self.daemon.memory_bytes("VmRSS")
        beginning = text("sensors/large/x") + b"\0\1"
        told = Device("told", version=5)
        self.addCleanup(told.close)
        told.connect(port)
        told.socket.sendall(b"\x32" + ANNOUNCED + beginning + b"\0" + bytes(1_000))
        kind, body = told.receive()
        self.assertEqual((kind, body[0]), (0xE0, 0x95), body)
        with socket.create_connection(("localhost", port), TIME_LIMIT_SECONDS) as stranger:
            stranger.sendall(b"\x10" + ANNOUNCED)
            self.assertEqual(stranger.recv(1), b"")
        # A client of 3.1.1 would send it for ever, if it were not taken and acknowledged.
        whole = Device("whole")
        self.addCleanup(whole.close)
        whole.connect(port)
        if LONG:
            whole.socket.sendall(b"\x32" + ANNOUNCED + beginning)
            for _ in range(255):
                whole.socket.sendall(bytes(MIB))
            whole.socket.sendall(bytes(MIB - 1 - len(beginning)))
            self.assertEqual(whole.receive(), (0x40, b"\0\1"))
        for number in range(100):
            half = Device(f"half{number}")
            self.addCleanup(half.close)
            half.connect(port)
            with contextlib.suppress(OSError):  # over mqtt.in-flight-limit: shown out
                half.socket.sendall(b"\x32" + ANNOUNCED + beginning + bytes(100_000))
        whole.publish("sensors/whole/x", "1", "last")
        self.assertEqual(whole.settle(), ["last"])
        self.store_good()
        self.within_limit("messages of 256 MB")
        grown = self.daemon.memory_bytes("VmHWM") - before
        print(f"messages of 256 MB took {grown / MIB:.1f} MiB", flush=True)
        if MEMORY_COUNTS:
            self.assertLessEqual(grown, BOMB_BYTES_MAX)


if __name__ == "__main__":
    unittest.main(verbosity=2)
