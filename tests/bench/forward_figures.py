#!/usr/bin/env python3
"""Measures forwarding: what FORWARD.md asks of it, in one run.

  EDGECASE_PROGRAM=build/release/cli/edgecase tests/bench/forward_figures.py [drain] [delay] [erase] [away] [hub]
      [--readings N] [--seconds S] [--json]

drain   A backlog of --readings (10,000,000) goes to a target that reads and forgets, beside 100,000 readings/s that
        come in: readings/s that arrive, and what the ingest took a batch.
delay   From the answer to a write here until another EdgeCase shows the reading, 500 times beside 1,000 readings/s.
erase   A device with 1,000,000 forwarded readings: until `erase --wait-targets` is done, at each target that is there.
away    Processor time while a target refuses connections for --seconds (60) and 100 readings/s come in, beside the
        same without a target.
hub     200 connections with 100 readings/s each, one batch a second, for --seconds: processor time, delay, what is
        stored.

Without a name all of them. The load of the machine before and after each is printed: they mean nothing on a busy one.
--json: the figures as one JSON object on the standard output, all else on the other.

Exit codes: 0 done, 1 failed, 2 wrong usage
"""
import argparse
import asyncio
import http.client
import json
import os
import pathlib
import socket
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "flow"))
from daemon_process import Daemon, Place, until  # noqa: E402
from influxd import INFLUXD, Influxd  # noqa: E402
from victoria import VICTORIA, Victoria  # noqa: E402

BATCH = 10_000
DEVICES = 100
FIGURES = {}  # of this run, by name
TICKS = os.sysconf("SC_CLK_TCK")
STORAGE = 'memory-limit = "64MiB"'


class NullTarget:
    """Takes whatever is sent as line protocol, one thread a connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.bytes = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb", 1 << 16)
        while True:
            length = 0
            line = stream.readline()
            if not line:
                return
            while line not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                line = stream.readline()
            self.bytes += len(stream.read(length))
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


def say(text):
    print(text, file=sys.stderr, flush=True)


def load():
    return os.getloadavg()[0]


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def target(name, scheme, port, more=""):
    return f'[[forward]]\nname = "{name}"\nto = "{scheme}+http://127.0.0.1:{port}"\nfrom = "beginning"\n{more}\n'


async def pause(seconds):
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, over.set_result, None)
    await over


class Board:
    def __init__(self, more="", storage=STORAGE):
        self.place = Place()
        self.place.write_config(storage=storage, more=more)
        self.daemon = Daemon(self.place)
        self.connection = None

    def stop(self):
        self.daemon.stop()
        self.place.remove()

    def ask(self, method, path, body=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port(), timeout=600)
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        assert answer.status in (200, 204), f"{answer.status} to {path}: {text[:200]}"
        return text

    def write(self, lines):
        self.ask("POST", "/write?precision=ns", lines)

    def status(self, name):
        return json.loads(self.ask("GET", "/api/v1/forward?name=" + name))

    def targets(self):
        return {each["name"]: each for each in json.loads(self.ask("GET", "/api/v1/forward"))["targets"]}


def batches(count, begin_ns, step_ns):
    """Bodies of BATCH lines, DEVICES devices in turns; values of one decimal."""
    for first in range(0, count, BATCH):
        yield "\n".join(f"m,host=h{i % DEVICES} f={i % 977}.5 {begin_ns + i * step_ns}"
                        for i in range(first, min(first + BATCH, count)))


def measure_drain(arguments):
    null = NullTarget()
    board = Board(target("null", "influx", null.port))
    try:
        board.ask("POST", "/api/v1/forward?name=null&action=pause")
        begin = time.time_ns() - arguments.readings * 1_000_000
        filled = time.monotonic()
        for body in batches(arguments.readings, begin, 1_000_000):
            board.write(body)
        filled = time.monotonic() - filled
        say(f"drain: {arguments.readings} readings stored at {arguments.readings / filled:.0f}/s")
        live = list(batches(50 * BATCH, time.time_ns(), 1_000))
        stopping, times = threading.Event(), []

        def ingest():
            """100,000 a second, until it is told to stop; each batch again under later times does as well."""
            due = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", board.daemon.port(), timeout=600)
            for number in range(10 ** 9):
                if stopping.wait(max(0, due - time.monotonic())):
                    return
                due += BATCH / 100_000
                begun = time.monotonic()
                connection.request("POST", "/write?precision=ns", live[number % len(live)])
                assert connection.getresponse().read() == b""
                times.append(time.monotonic() - begun)

        def ingest_for(seconds):
            stopping.clear()
            times.clear()
            thread = threading.Thread(target=ingest)
            thread.start()
            threading.Event().wait(seconds)
            stopping.set()
            thread.join()
            return statistics.median(times) * 1000
        alone = ingest_for(10)
        before, cpu = board.targets()["null"]["readings"], cpu_seconds(board.daemon.process)
        thread = threading.Thread(target=ingest)
        stopping.clear()
        times.clear()
        thread.start()
        begun = time.monotonic()
        board.ask("POST", "/api/v1/forward?name=null&action=resume")
        while board.targets()["null"]["readings"] - before < arguments.readings:
            threading.Event().wait(0.2)
            if time.monotonic() - begun > 600:
                break
        seconds = time.monotonic() - begun
        sent = board.targets()["null"]["readings"] - before
        stopping.set()
        thread.join()
        cpu = cpu_seconds(board.daemon.process) - cpu
        batch_ms = statistics.median(times) * 1000
        FIGURES.update(drain_readings_per_second=sent / seconds, drain_bytes_per_reading=null.bytes / max(sent, 1),
                       drain_peak_mib=memory_mib(board.daemon.process), drain_ingest_batch_ms=batch_ms,
                       drain_ingest_batch_alone_ms=alone)
        say(f"drain: {sent} readings in {seconds:.1f} s: {sent / seconds:.0f}/s (aim 500000), "
            f"{null.bytes / max(sent, 1):.2f} bytes each, daemon {cpu / seconds:.2f} processors, "
            f"{memory_mib(board.daemon.process):.0f} MiB; a batch takes {batch_ms:.0f} ms, {alone:.0f} alone")
    finally:
        board.stop()


def measure_delay(_):
    hub = Board()
    board = Board(target("hub", "edgecase", hub.daemon.port()))
    stopping = threading.Event()

    def beside():
        connection = http.client.HTTPConnection("127.0.0.1", board.daemon.port(), timeout=600)
        number = 0
        while not stopping.wait(0.1):
            now = time.time_ns()
            connection.request("POST", "/write?precision=ns", "\n".join(
                f"m,host=h{i % DEVICES} f={i} {now + i}" for i in range(number, number + 100)))
            connection.getresponse().read()
            number += 100
    thread = threading.Thread(target=beside)
    thread.start()
    try:
        delays = []
        for number in range(500):
            board.write(f"one,host=x f={number} {time.time_ns()}")
            begun = time.monotonic()
            while True:
                rows = hub.ask("GET", "/api/v1/query?select=x/*&desc=true&limit=1&format=ndjson").splitlines()
                if rows and json.loads(rows[0])["value"] == number:
                    break
            delays.append((time.monotonic() - begun) * 1000)
        delays.sort()
        FIGURES.update(delay_p50_ms=delays[250], delay_p99_ms=delays[494])
        say(f"delay: p50 {delays[250]:.1f} ms, p99 {delays[494]:.1f} ms (aim 100), most {delays[-1]:.1f} ms")
    finally:
        stopping.set()
        thread.join()
        board.stop()
        hub.stop()


def measure_erase(arguments):
    del arguments
    count = 1_000_000
    hub = Board()
    targets, servers = target("hub", "edgecase", hub.daemon.port()), []
    if INFLUXD:
        servers.append(("influx", Influxd()))
    if VICTORIA:
        servers.append(("victoria", Victoria()))
    for name, server in servers:
        targets += target(name, "influx", server.port, 'database = "d"')
        if name == "influx":
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("POST", "/query?q=CREATE+DATABASE+d")
            connection.getresponse().read()
    board = Board(targets)
    try:
        begin = time.time_ns() - count * 1_000_000
        for first in range(0, count, BATCH):
            board.write("\n".join(f"m,host=gone f={i % 977}.5 {begin + i * 1_000_000}"
                                  for i in range(first, first + BATCH)))
        board.write("m,host=stays f=1\n")
        names = ["hub"] + [name for name, _ in servers]
        until(lambda: all(board.targets()[name]["readings"] > count and board.status(name)["waiting_at_most"] == 0
                          for name in names), "all is there", 600)
        begun = time.monotonic()
        done = board.place.cli("erase", "gone", "--yes", "--json", "--wait-targets")
        seconds = time.monotonic() - begun
        certificate = json.loads(done.stdout)
        states = {each["name"]: each["state"] for each in certificate["targets"]}
        left = json.loads(hub.ask("GET", "/api/v1/series") or "{}")
        say(f"erase: {count} readings, level {certificate['level']}: {seconds:.2f} s until {states}; "
            f"the hub has {len(left.get('series', left))} series left")
    finally:
        board.stop()
        hub.stop()
        for _, server in servers:
            server.stop()


def measure_away(arguments):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shares = []
    for more in ("", target("away", "influx", port)):
        board = Board(more)
        try:
            begun, cpu = time.monotonic(), cpu_seconds(board.daemon.process)
            while time.monotonic() - begun < arguments.seconds:
                now = time.time_ns()
                board.write("\n".join(f"m,host=h{i} f={i} {now}" for i in range(100)))
                threading.Event().wait(1)
            shares.append((cpu_seconds(board.daemon.process) - cpu) / (time.monotonic() - begun) * 100)
        finally:
            board.stop()
    FIGURES.update(away_percent=shares[1] - shares[0])
    say(f"away: {shares[1]:.2f} % of a processor, {shares[0]:.2f} % without a target: "
        f"{shares[1] - shares[0]:.2f} % for it (aim 1)")


def measure_hub(arguments):
    hub = Board()
    delays, refused = [], [0]

    async def one(number, until_s):
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.daemon.port())
        await pause(number / 200)
        while time.monotonic() < until_s:
            now = time.time_ns()
            body = "".join(json.dumps({"namespace": f"board-{number}", "device": f"d{i}", "sensor": "t",
                                       "time": now, "steps": [1] * 9, "values": [20.5] * 10}) + "\n"
                           for i in range(10)).encode()
            begun = time.monotonic()
            writer.write(b"POST /api/v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                          if line.startswith(b"content-length"))
            answer = json.loads(await reader.readexactly(length))
            refused[0] += 0 if answer.get("stored") == 100 else 1
            delays.append((time.monotonic() - begun) * 1000)
            await pause(max(0, begun + 1 - time.monotonic()))
        writer.close()

    async def all_boards():
        until_s = time.monotonic() + arguments.seconds
        await asyncio.gather(*(one(number, until_s) for number in range(200)))
    try:
        begun, cpu = time.monotonic(), cpu_seconds(hub.daemon.process)
        asyncio.run(all_boards())
        seconds = time.monotonic() - begun
        delays.sort()
        cpu = (cpu_seconds(hub.daemon.process) - cpu) / seconds
        p99 = delays[len(delays) * 99 // 100]
        FIGURES.update(hub_readings_per_second=len(delays) * 100 / seconds, hub_p99_ms=p99, hub_processors=cpu)
        say(f"hub: {len(delays) * 100 / seconds:.0f} readings/s of 200 boards, {refused[0]} requests not whole; "
            f"p50 {delays[len(delays) // 2]:.1f} ms, p99 {p99:.1f} ms; {cpu:.2f} processors, "
            f"{memory_mib(hub.daemon.process):.0f} MiB")
    finally:
        hub.stop()


MEASURES = {"drain": measure_drain, "delay": measure_delay, "erase": measure_erase, "away": measure_away,
            "hub": measure_hub}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[[], *MEASURES], default=[])
    parser.add_argument("--readings", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.what or MEASURES:
        before = load()
        MEASURES[name](arguments)
        say(f"{name}: load {before:.1f} before, {load():.1f} after")
    if arguments.json:
        print(json.dumps(FIGURES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
