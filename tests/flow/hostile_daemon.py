"""A daemon among clients that mean harm, with its memory looked at."""
import json
import os
import unittest

import hostile_clients
from daemon_process import Daemon, Place
from hostile_clients import exchange

LONG = os.environ.get("EDGECASE_TEST_LONG") == "1"
# Sanitizers and emulators take memory of their own.
MEMORY_COUNTS = "EDGECASE_TEST_SHARE" not in os.environ
MIB = 1 << 20
BOMB_BYTES_MAX = 10 * MIB
BODY_BYTES_MAX = 16 * MIB  # http.body-limit
LISTEN = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
"""


def post(path, body, headers=b""):
    """As the one piece of an exchange."""
    return [hostile_clients.request("POST", path, body, headers)]


class HostileDaemon(unittest.TestCase):
    def start(self, limits="", http=""):
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(more=LISTEN + (f"[limits]\n{limits}\n" if limits else ""))
        with open(place.config, encoding="utf-8") as file:
            config = file.read().replace("[mqtt]", f"{http}\n[mqtt]", 1)
        with open(place.config, "w", encoding="utf-8") as file:
            file.write(config)
        self.daemon = Daemon(place)
        self.addCleanup(lambda: self.assertEqual(self.daemon.stop(), 0))
        self.port = self.daemon.port()
        self.good = 0
        self.idle_bytes = self.daemon.memory_bytes("VmRSS")
        self.store_good()

    def get(self, path):
        status, body = exchange(self.port, [hostile_clients.request("GET", path)])
        self.assertEqual(status, 200, (path, body))
        return body

    def status(self):
        return json.loads(self.get("/api/v1/status"))

    def store_good(self):
        """Somebody means well, and is served by the same process."""
        self.good += 1
        stored = exchange(self.port, post("/write", f"n,device=good value={self.good}".encode()))
        self.assertEqual(stored, (204, ""))
        last = json.loads(self.get("/api/v1/last?select=good/n&format=ndjson"))
        self.assertEqual(last["value"], self.good)
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())

    def attack(self, name, pieces, status, words):
        """How many bytes the peak lay above what was resident."""
        self.daemon.forget_peak()
        before = self.daemon.memory_bytes("VmRSS")
        with self.subTest(name):
            told, body = exchange(self.port, pieces)
            self.assertEqual(told, status, body)
            self.assertIn(words, body)
        grown = self.daemon.memory_bytes("VmHWM") - before
        self.store_good()
        self.within_limit(name)
        return grown

    def within_limit(self, name):
        """memory-limit and what the program takes idle."""
        peak = self.daemon.memory_bytes("VmHWM")
        most = self.status()["memory"]["limit_bytes"] + self.idle_bytes
        print(f"{name}: peak {peak / MIB:.1f} MiB, {self.daemon.memory_bytes('RssAnon') / MIB:.1f} "
              f"of its own now; at most {most / MIB:.1f}", flush=True)
        if MEMORY_COUNTS:
            self.assertLessEqual(peak, most, name)
