#!/usr/bin/env python3
"""Readers and erasure on a real daemon: who reads slowly holds nothing back and gets nothing of what is gone, and
of what was erased nothing is left in the daemon's memory."""
import gzip
import http.client
import json
import os
import re
import socket
import threading
import time
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, until
from mqtt_device import Device
from residue import canary, seeded
from loopback import LOOPBACK, LOOPBACK_FAMILY

_SLOW_READERS = 64
_READINGS = 20_000
# What lies in buffers of a connection outside the daemon: the reader's own, which it makes small, and the kernel's.
_LEFT_BYTES = 64 << 10


def pause(seconds):
    """What is about a span of time takes it."""
    threading.Event().wait(seconds)


class ReadersFlow(unittest.TestCase):
    config = {}

    def setUp(self):
        self.source = seeded()
        self.place = Place()
        self.place.write_config(**self.config)
        self.daemon = Daemon(self.place)

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def cli(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def post(self, lines):
        status, text = self.daemon.request("POST", "/write?db=default", "\n".join(lines).encode())
        self.assertEqual(status, 204, text)

    def fill(self, device, text, count=_READINGS):
        now_ns = time.time_ns() - 10**12
        for begin in range(0, count, 5_000):
            self.post([f'm,device={device} value="{text}-{i}" {now_ns + i}'
                       for i in range(begin, min(begin + 5_000, count))])


class Slow:
    """A reader that has asked, and taken the first bytes of the answer. Its own buffer is small."""

    def __init__(self, daemon, path, over_tcp=True):
        if over_tcp:
            self.socket = socket.socket(LOOPBACK_FAMILY)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            self.socket.settimeout(TIME_LIMIT_SECONDS)
            self.socket.connect((LOOPBACK, daemon.port()))
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(TIME_LIMIT_SECONDS)
            self.socket.connect(daemon.place.socket)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())

    def begin(self):
        return self.socket.recv(1024)

    def rest(self):
        """What comes yet, and whether the body has a proper end."""
        received = b""
        try:
            while piece := self.socket.recv(1 << 16):
                received += piece
        except ConnectionResetError:
            pass
        self.socket.close()
        return received, received.endswith(b"\r\n0\r\n\r\n")

    def close(self):
        self.socket.close()


class SlowReaders(ReadersFlow):
    def test_erase_waits_for_nobody_and_nobody_gets_what_is_gone(self):
        gone, kept = canary(self.source), canary(self.source)
        self.fill("a", kept)
        self.fill("b", gone)
        self.fill("first", canary(self.source))
        # What it takes where nobody reads.
        started = time.monotonic()
        self.cli("erase", "first", "--yes")
        alone = time.monotonic() - started
        readers = []
        paths = ["/api/v1/query?select=*/*&format=csv", "/api/v1/query?select=b&format=ndjson",
                 "/api/v1/query?select=b&format=csv&desc=true", "/api/v1/query?select=*/*&format=line"]
        for i in range(_SLOW_READERS):
            readers.append(Slow(self.daemon, paths[i % len(paths)], over_tcp=i % 3 != 0))
        # As many as there are workers for long answers have begun.
        until(lambda: readers[0].begin(), "an answer")
        pause(0.5)
        started = time.monotonic()
        done = json.loads(self.cli("erase", "b", "--yes", "--json"))
        took = time.monotonic() - started
        self.assertEqual(done["erasure"]["state"] if "erasure" in done else done["state"], "done", done)
        self.assertLess(took, 2 + alone)
        self.assertNotIn("holds what was erased", self.daemon.log())
        for number, reader in enumerate(readers[:8]):
            received, whole = reader.rest()
            hits = received.count(gone.encode())
            # A line of it has more than 64 bytes.
            self.assertLessEqual(hits, _LEFT_BYTES // 64, (number, len(received), whole))
            if hits > 0:
                self.assertFalse(whole, (number, hits))
        for reader in readers[8:]:
            reader.close()

    def test_a_rule_made_shorter_and_a_value_of_megabytes(self):
        gone = canary(self.source)
        self.fill("b", gone)
        blob = (gone * 32768).encode()[:8 << 20]
        status, text = self.daemon.request("PUT", "/api/v1/blob/default/cam/shot?time=2020-01-01", blob)
        self.assertEqual(status, 201, text)
        readers = [Slow(self.daemon, "/api/v1/query?select=b&format=csv"),
                   Slow(self.daemon, "/api/v1/blob/default/cam/shot?time=2020-01-01")]
        for reader in readers:
            reader.begin()
        pause(0.5)
        self.cli("retention", "set", "*/*", "1s", "--yes")
        for reader in readers:
            received, whole = reader.rest()
            self.assertFalse(whole)
            self.assertLessEqual(received.count(gone.encode()), 4 * _LEFT_BYTES // 32, len(received))


def regions(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as file:
        for line in file:
            span, rights, _, _, _, *name = line.split(maxsplit=5)
            begin, end = (int(each, 16) for each in span.split("-"))
            if "r" in rights and not (name and name[0].startswith(("[vvar", "[vsyscall"))):
                yield begin, end, (name[0].strip() if name else "")


def scan(pid, needles):
    """(region, address, needle, what lies around) of each place in the process's memory that holds one."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end, name in regions(pid):
            try:
                memory.seek(begin)
                held = memory.read(end - begin)
            except (OSError, OverflowError, ValueError):
                continue
            for needle in needles:
                at = held.find(needle)
                while at >= 0:
                    found.append((name, hex(begin + at), needle, held[max(0, at - 32):at + 48]))
                    at = held.find(needle, at + 1)
    return found


@unittest.skipUnless(os.geteuid() == 0, "only root may look into the memory of another process")
class Memory(ReadersFlow):
    config = {"more": 'listen = "localhost:0"\n[[mqtt.rule]]\ntopic = "t/{device}/{sensor}"\n'}

    def test_nothing_of_what_was_erased_is_left_in_memory(self):
        device, text, raw, sent, typed, shot, packed = (canary(self.source) for _ in range(7))
        self.fill(device, text, 2_000)
        self.fill("other", "kept", 2_000)
        status, answer = self.daemon.request("PUT", f"/api/v1/blob/default/{device}/shot", (shot * 100).encode())
        self.assertEqual(status, 201, answer)
        status, answer = self.daemon.request("POST", "/api/v1/readings", json.dumps(
            [{"device": device, "sensor": "json", "value": raw}] * 3))
        self.assertEqual(status, 200, answer)
        publisher = Device("d")
        publisher.connect(self.daemon.mqtt_port())
        publisher.publish(f"t/{device}/m", sent, 1)
        publisher.settle()
        publisher.close()
        self.cli("write", f"{device}/cli", typed)
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port(), timeout=TIME_LIMIT_SECONDS)
        connection.request("POST", "/write?db=default", gzip.compress(
            "\n".join(f'p,device={device} value="{packed}-{i}" {i}' for i in range(100)).encode()),
            {"Content-Encoding": "gzip"})
        self.assertEqual(connection.getresponse().status, 204)
        connection.close()
        for path in (f"/api/v1/query?select={device}", f"/api/v1/last?select={device}", "/api/v1/devices",
                     f"/api/v1/blob/default/{device}/shot", "/api/v1/series",
                     f"/api/v1/query?select={device}/*&agg=last&every=1h"):
            status, answer = self.daemon.request("GET", path)
            self.assertEqual(status, 200, answer)
        needles = [each.encode() for each in (text, raw, sent, typed, shot, packed)]
        self.assertTrue(scan(self.daemon.process.pid, needles))
        done = json.loads(self.cli("erase", device, "--yes", "--json"))
        self.assertIn("done", json.dumps(done))
        pause(2)
        # Something else goes on meanwhile, as it would.
        self.fill("other", "more", 100)
        found = scan(self.daemon.process.pid, needles + [device.encode()])
        for each in found:
            print(each)
        self.assertEqual(found, [])

    def test_keys_are_locked_in_memory(self):
        self.daemon.stop()
        key = os.path.join(self.place.path, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o400)
        for name in ("meta", "values"):
            os.rename(os.path.join(self.place.path, name), os.path.join(self.place.path, name + ".old"))
        self.place.write_config(storage=f'encryption-key-file = "{key}"\n')
        self.daemon = Daemon(self.place)
        self.fill("d", "text", 10)
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as file:
            locked = int(re.search(r"^VmLck:\s+(\d+) kB", file.read(), re.MULTILINE).group(1))
        self.assertGreater(locked, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
