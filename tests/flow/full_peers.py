#!/usr/bin/env python3
"""A full drive, EdgeCase beside InfluxDB: the same on a small loop file system for each.

    tests/flow/full_peers.py [--edgecase FILE] [--runs N] [--seed N]

  --edgecase  the executable (default: build/release/cli/edgecase)
  --runs      how often each of them (default: 3), with the seeds N, N + 1, ...
  --seed      the first one (default: drawn)

Batches of 200 readings are written until the drive is full and each is refused; then it stays full
for 25 s. Meanwhile all that was acknowledged is read, and one of four devices deleted. When there
is space again, the time until a batch is taken is measured, for 60 s at most; whoever takes none is
started again. In the end the server is killed and started again. Needs root, mkfs.ext4, influxd.

Exit codes: 0 measured, and EdgeCase kept what it promises, 1 it did not, 2 wrong usage
"""
import argparse
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

os.environ.setdefault("EDGECASE_PROGRAM", os.path.realpath(os.path.join(
    os.path.dirname(__file__), "..", "..", "build", "release", "cli", "edgecase")))
if "--edgecase" in sys.argv[:-1]:
    os.environ["EDGECASE_PROGRAM"] = os.path.realpath(sys.argv[sys.argv.index("--edgecase") + 1])

# pylint: disable=wrong-import-position
from daemon_process import PROGRAM, Daemon, Place, until
from full_drive import (BATCH, FULL_SECONDS, IMAGE_MIB, RESERVE_MIB, ROOM_BYTES, STORAGE, Ballast,
                        Readings, fill, has_reserves, stay_full, time_to_take)
from residue import Image

BATCHES = 20
GIVE_UP_SECONDS = 60
LINE = re.compile(r'm,device=\S+ text="(\w+)" (\d+)')
PROMISED_SECONDS = 2
INFLUX = """reporting-disabled = true
bind-address = "127.0.0.1:{backup_port}"
[meta]
  dir = "{path}/meta"
[data]
  dir = "{path}/data"
  wal-dir = "{path}/wal"
  wal-fsync-delay = "0s"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
"""


class Refused(Exception):
    """What the server said instead of doing it."""


class EdgeCase:
    """The daemon, its metadata and values on one drive."""

    def __init__(self, image):
        self.name = "EdgeCase"
        self.place = Place()
        image.hold(self.place)
        self.place.write_config(storage=STORAGE, reserve=f"{RESERVE_MIB}MiB")
        self.daemon = None

    def start(self):
        self.daemon = Daemon(self.place)
        until(lambda: has_reserves(self.place), "there is something kept for erasing")

    def process(self):
        return self.daemon.process

    def request(self, method, path, body=None):
        code, text = self.daemon.request(method, path, body)
        if code // 100 != 2:
            raise Refused(f"{code}: {json.loads(text)['error']}")
        return text

    def write(self, body):
        self.request("POST", "/write?db=default", body)

    def stored(self, device):
        """Pairs of time and text."""
        text = self.request("GET", f"/api/v1/query?select={device}/*&format=line")
        return [(int(time_ns), value) for value, time_ns in LINE.findall(text)]

    def delete(self, device):
        done = self.place.cli("erase", device, "--yes")
        if done.returncode != 0:
            raise Refused(done.stderr.strip())

    def count(self, device):
        """What is left of a device that was deleted."""
        answer = self.place.cli("query", device, "--format", "line")
        return len(answer.stdout.splitlines())

    def kill(self):
        self.daemon.stop(signal.SIGKILL)

    def remove(self):
        if self.daemon:
            self.kill()
        self.place.remove()


class InfluxDb:
    """influxd, data and log on one drive."""

    def __init__(self, image):
        self.name = "InfluxDB"
        self.path = os.path.join(image.mount, "influx")
        os.mkdir(self.path)
        ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.port, backup_port = (each.getsockname()[1] for each in ports)
        for each in ports:
            each.close()
        self.config = os.path.join(image.path, "influxdb.conf")
        self.log = os.path.join(image.path, "log")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(INFLUX.format(path=self.path, port=self.port, backup_port=backup_port))
        self.server = None

    def start(self):
        with open(self.log, "ab") as log:
            command = ["influxd", "-config", self.config]
            self.server = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._is_ready, "influxd is ready")
        self.query("CREATE DATABASE readings")

    def process(self):
        return self.server

    def _is_ready(self):
        try:
            self.request("GET", "/ping")
            return True
        except (Refused, OSError):
            if self.server.poll() is not None:
                raise
            return False

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=GIVE_UP_SECONDS)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status // 100 != 2:
                raise Refused(f"{answer.status}: {text.strip()}")
            return text
        finally:
            connection.close()

    def query(self, words):
        fields = urllib.parse.urlencode({"db": "readings", "epoch": "ns", "q": words})
        [result] = json.loads(self.request("POST", "/query?" + fields))["results"]
        if "error" in result:
            raise Refused(result["error"])
        return [value for each in result.get("series", []) for value in each["values"]]

    def write(self, body):
        self.request("POST", "/write?db=readings", body)

    def stored(self, device):
        return [tuple(row) for row in self.query(f"SELECT text FROM m WHERE device = '{device}'")]

    def delete(self, device):
        self.query(f"DROP SERIES FROM m WHERE device = '{device}'")

    def count(self, device):
        return len(self.stored(device))

    def kill(self):
        self.server.kill()
        self.server.wait()

    def remove(self):
        if self.server:
            self.kill()


class Run:
    """One server on one drive."""

    def __init__(self, kind, seed):
        self.image = Image(IMAGE_MIB)
        if self.image.reason:
            sys.exit(f"full_peers.py: {self.image.reason}")
        self.seed = seed
        self.server = kind(self.image)
        self.readings = Readings(random.Random(seed))
        self.refusal = ""
        self.cells = [self.server.name, str(seed)]
        self.kept = True

    def write(self, body):
        try:
            self.server.write(body)
            return True
        except (Refused, OSError, http.client.HTTPException) as refused:
            self.refusal = str(refused) or type(refused).__name__
            return False

    def verdict(self):
        """Missing and wrong readings of those that were acknowledged, for people."""
        missing = wrong = 0
        for device in self.readings.devices():
            name = self.readings.name(device)
            try:
                stored = self.server.stored(name)
                lost, strange = self.readings.verdict(device, stored)
            except (Refused, OSError, http.client.HTTPException) as refused:
                print(f"{self.server.name}: read refused with {refused}", file=sys.stderr)
                self.kept = False
                return "refused"
            if lost:
                last = max(time_ns for time_ns, _ in stored) if stored else self.readings.begin_ns
                behind = self.readings.begin_ns + self.readings.count() * 10**9 - 10**9 - last
                print(f"{self.server.name}: {lost} missing of {name}; the newest that is there is "
                      f"{behind // 10**9} readings older than the newest acknowledged",
                      file=sys.stderr)
            missing += lost
            wrong += strange
        self.kept = self.kept and missing == wrong == 0
        return f"{missing:,}" + (f", {wrong:,} wrong" if wrong else "")

    def delete(self):
        name = self.readings.name(3)
        began = time.monotonic()
        try:
            self.server.delete(name)
            self.cells.append(f"{time.monotonic() - began:.2f} s")
        except (Refused, OSError, http.client.HTTPException) as refused:
            self.kept = False
            print(f"{self.server.name}: delete refused with {refused}", file=sys.stderr)
            self.cells.append("refused")
        self.readings.erased.add(3)

    def resume(self, ballast):
        ballast.remove()
        seconds = time_to_take(self.readings, self.write, GIVE_UP_SECONDS)
        alive = self.server.process().poll() is None
        if seconds is None:
            self.kept = False
            print(f"{self.server.name}: refused with {self.refusal}", file=sys.stderr)
            self.server.kill()
            self.server.start()
            after = time_to_take(self.readings, self.write, GIVE_UP_SECONDS)
            how = "not" if alive else "had ended, not"
            self.cells.append(f"{how} within {GIVE_UP_SECONDS} s; started again: "
                              + ("neither" if after is None else f"{after:.2f} s"))
        else:
            self.kept = self.kept and seconds <= PROMISED_SECONDS
            self.cells.append(f"{seconds:.2f} s")

    def go(self):
        """The cells of a row."""
        ballast = Ballast(self.image.mount)
        try:
            self.server.start()
            ballast.leave(ROOM_BYTES)
            fill(self.readings, ballast, self.write, BATCHES)
            full_at = time.monotonic()
            print(f"{self.server.name}, seed {self.seed}: refused with {self.refusal}",
                  file=sys.stderr)
            self.cells += [f"{self.readings.acknowledged * BATCH:,}", self.verdict()]
            self.delete()
            fill(self.readings, ballast, self.write, 0)
            stay_full(self.readings, ballast, self.write, full_at + FULL_SECONDS)
            self.cells.append(self.verdict())
            self.resume(ballast)
            self.cells.append(self.verdict())
            self.server.kill()
            self.server.start()
            left = self.server.count(self.readings.name(3))
            self.kept = self.kept and left == 0
            self.cells += [self.verdict(), f"{left:,}"]
            return self.cells
        finally:
            self.server.remove()
            self.image.remove()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edgecase", default=PROGRAM)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    kinds = [EdgeCase] + ([InfluxDb] if shutil.which("influxd") else [])
    if len(kinds) == 1:
        print("full_peers.py: there is no influxd", file=sys.stderr)
    kept, rows = True, []
    for seed in range(given.seed, given.seed + given.runs):
        for kind in kinds:
            run = Run(kind, seed)
            rows.append(run.go())
            kept = kept and (run.kept or kind is not EdgeCase)
    print("| server | seed | acknowledged when it was full | missing then | delete "
          "| missing after 25 s | writes again after | missing then | missing after kill -9 "
          "| left of the deleted |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
