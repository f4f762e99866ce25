#!/usr/bin/env python3
"""Measures questions beside the same questions to InfluxDB and VictoriaMetrics, in one run.

  EDGECASE_PROGRAM=build/release/cli/edgecase tests/bench/query_figures.py [--readings N] [--hours H] [--rounds N]
      [--check]

Each server is a private one, if it is installed (influxd, victoria-metrics); memory is limited to 64 MiB where it can
be. All get the same lines: one series of --readings readings (1,000,000), one a second, of three decimals; and 20
measurements of 10 series, one a second for --hours (24; 0: none). Printed: medians over --rounds (5) of how long the
whole answer takes, and how it stands to the best peer; of the dashboard, 20 questions of 10 series in windows of a
minute, the first time and the median of the others; the most memory that each server took.

--check: exit code 3 where EdgeCase takes longer than the best peer.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 misses an aim
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "flow"))
LINES = 10_000
BEGIN = 1_700_000_000 - 1_700_000_000 % 3600  # a full hour
PANELS, SERIES = 20, 10
VICTORIA_POINTS_MAX = 30_000  # of one answer
HEADERS = {"csv": {"Accept": "application/csv"}}


class Server:
    def __init__(self, name, server, port, process):
        self.name, self.server, self.process = name, server, process
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.is_victoria = name == "VictoriaMetrics"

    def ask(self, path, body=None, method="GET", headers=None, **parameters):
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters)
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise AssertionError(f"{self.name}: {answer.status} to {path}: {text[:200]}")
        return text

    def write(self, lines):
        self.ask("/write?db=d&precision=s", lines.encode(), "POST")

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

    def windows(self, function, measurement, first, last, every, by=""):
        """An answer with one value for each window; times in seconds, `last` not included."""
        if not self.is_victoria:
            text = self.ask("/query", db="d", epoch="s", q=f"SELECT {function}(v) FROM {measurement} WHERE "
                            f"time >= {first}s AND time < {last}s GROUP BY time({every}s){by}")
            return sum(len(series["values"]) for series in json.loads(text)["results"][0].get("series", []))
        name = {"mean": "avg"}.get(function, function) + "_over_time"
        count = 0
        for begin in range(first, last, every * VICTORIA_POINTS_MAX):
            end = min(last, begin + every * VICTORIA_POINTS_MAX)
            text = self.ask("/api/v1/query_range", query=f"{name}({measurement}_v[{every}s])", start=begin + every - 1,
                            end=end - 1, step=f"{every}s", nocache="1")
            count += sum(len(series["values"]) for series in json.loads(text)["data"]["result"])
        return count

    def rows(self, form, last):
        if self.name == "EdgeCase":
            return self.ask("/api/v1/query", ns="d", select="one/*", format=form)
        if self.is_victoria:
            if form == "json":
                return self.ask("/api/v1/export", **{"match[]": "one_v"})
            return self.ask("/api/v1/export/csv", **{"match[]": "one_v", "format": "__timestamp__:unix_s,__value__"})
        return self.ask("/query", headers=HEADERS.get(form), db="d", q=f"SELECT v FROM one WHERE time < {last}s")

    def last(self, last):
        if self.is_victoria:
            return self.ask("/api/v1/query", query="one_v", time=last - 1)
        return self.ask("/query", db="d", q="SELECT last(v) FROM one")


def start(name):
    if name == "EdgeCase":
        from daemon_process import Daemon, Place
        place = Place()
        place.write_config(storage='memory-limit = "64MiB"')
        daemon = Daemon(place)

        def stop():
            daemon.stop()
            place.remove()
        return Server(name, stop, daemon.port(), daemon.process)
    if name == "InfluxDB":
        from influxd import INFLUXD, Influxd as Peer
        is_there = INFLUXD
    else:
        from victoria import VICTORIA, Victoria as Peer
        is_there = VICTORIA
    if not is_there:
        print(f"{name} is not installed: left out", file=sys.stderr)
        return None
    peer = Peer()
    server = Server(name, peer.stop, peer.port, peer.process)
    if name == "InfluxDB":
        server.ask("/query", method="POST", q="CREATE DATABASE d")
    return server


def fill(server, readings, hours):
    for begin in range(0, readings, LINES):
        server.write("".join(f"one,device=one v={20 + i * 7919 % 10007 / 1000} {BEGIN + i}\n"
                             for i in range(begin, min(begin + LINES, readings))))
    for begin in range(0, hours * 3600, LINES // SERIES):
        for panel in range(PANELS):
            server.write("".join(f"p{panel},device=d{series} v={(i * 31 + series * 7) % 997 / 10} {BEGIN + i}\n"
                                 for series in range(SERIES) for i in range(begin, begin + LINES // SERIES)))
    if server.is_victoria:
        server.ask("/internal/force_flush")


def timed(ask):
    begin = time.monotonic()
    answer = ask()
    return (time.monotonic() - begin) * 1e3, answer


def questions(readings, hours):
    """Name, and what is asked of a server; what two servers answer is as much."""
    end = BEGIN + readings // 3600 * 3600
    for function in ("mean", "min", "max", "count"):
        yield f"hourly {function} of {readings:,}", \
            lambda server, function=function: server.windows(function, "one", BEGIN, end, 3600)
    yield "mean of each 10 s", lambda server: server.windows("mean", "one", BEGIN, end, 10)
    yield "last value", lambda server: server.last(BEGIN + readings) and 1
    yield f"{readings:,} rows as CSV", lambda server: server.rows("csv", BEGIN + readings) and 1
    yield f"{readings:,} rows as JSON", lambda server: server.rows("json", BEGIN + readings) and 1
    if hours:
        yield f"dashboard, {hours} h", lambda server: sum(
            server.windows("mean", f"p{panel}", BEGIN, BEGIN + hours * 3600, 60, ", device")
            for panel in range(PANELS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.readings < 7200 or given.hours < 0 or given.rounds < 2:
        parser.error("at least 7200 readings, 0 hours, 2 rounds")
    servers = []
    try:
        for name in ("EdgeCase", "InfluxDB", "VictoriaMetrics"):
            if server := start(name):
                servers.append(server)
        for server in servers:
            took, _ = timed(lambda server=server: fill(server, given.readings, given.hours))
            print(f"{server.name} was filled in {took / 1e3:.1f} s", file=sys.stderr)
        misses = 0
        print(f"{'milliseconds':32}" + "".join(f"{server.name:>17}" for server in servers) + f"{'to best peer':>15}")
        for name, ask in questions(given.readings, given.hours):
            firsts, medians, counts = [], [], []
            for server in servers:
                rounds = [timed(lambda server=server: ask(server)) for _ in range(given.rounds)]
                firsts.append(rounds[0][0])
                medians.append(statistics.median(took for took, _ in rounds[1:]))
                counts.append(rounds[0][1])
            if len(set(counts)) > 1:
                raise AssertionError(f"{name}: the servers answer differently much: {counts}")
            of_dashboard = name.startswith("dashboard")
            for label, figures in ([(name + ", first", firsts)] if of_dashboard else []) + [(name, medians)]:
                ratio = figures[0] / min(figures[1:]) if len(figures) > 1 else float("nan")
                misses += ratio > 1
                print(f"{label:32}" + "".join(f"{each:17.2f}" for each in figures) + f"{ratio:15.2f}", flush=True)
        print(f"{'most memory, MiB':32}" + "".join(f"{server.memory_mib():17.0f}" for server in servers))
    finally:
        for server in servers:
            server.connection.close()
            server.server()
    return 3 if given.check and misses else 0


if __name__ == "__main__":
    if "EDGECASE_PROGRAM" not in os.environ:
        sys.exit("EDGECASE_PROGRAM is not set")
    sys.exit(main())
