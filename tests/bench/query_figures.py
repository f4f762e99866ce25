#!/usr/bin/env python3
"""Measures questions beside the same questions to InfluxDB, VictoriaMetrics and QuestDB, in one run.

  EDGECASE_PROGRAM=build/release/cli/edgecase tests/bench/query_figures.py [--readings N] [--hours H] [--rounds N]
      [--check] [--json]

Each server is a private one, if it is installed (influxd, victoria-metrics, QuestDB's jar and Java); memory is limited
to 64 MiB where it can be. All get the same lines: one series of --readings readings (1,000,000), one a second, of three
decimals; and 20 measurements of 10 series, one a second for --hours (24; 0: none). Printed: medians over --rounds (5)
of how long an answer takes to arrive, and how it stands to the best peer; of the dashboard, 20 questions of 10 series
in windows of a minute, the first time and the median of the others; the most memory that each server took.

--check: exit code 3 where EdgeCase takes longer than the best peer.
--json: medians of some as one JSON object on the standard output, all else on the other.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 misses an aim
"""
import argparse
import contextlib
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
# What --json tells: a question begins with this, its figures with that.
TOLD = {"hourly mean": "hour", "mean of each 10 s": "ten_seconds", "last value": "last", "dashboard": "dashboard"}
FIGURES = {}
HEADERS = {"csv": {"Accept": "application/csv"}}


class Refused(Exception):
    """What a server says in place of an answer."""


class Server:
    """One that speaks InfluxQL; the others know its questions in their own language."""

    def __init__(self, name, server, port, process):
        self.name, self.server, self.process = name, server, process
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def ask(self, path, body=None, method="GET", headers=None, **parameters):
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters)
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise Refused(f"{answer.status} to {path}: {text[:200]}")
        return text

    def write(self, lines):
        self.ask("/write?db=d&precision=s", lines.encode(), "POST")

    def written(self, counts):
        """All was written; `counts` has how many lines of each measurement. Waits until it can be asked for."""

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

    # Questions answer the texts of answers, which count() reads afterwards.

    def influxql(self, statement):
        return [self.ask("/query", db="d", epoch="s", q=statement)]

    def windows(self, function, measurement, first, last, every, by=""):
        """One value for each window; times in seconds, `last` not included. `by`: a tag."""
        group = f", {by}" if by else ""
        return self.influxql(f"SELECT {function}(v) FROM {measurement} WHERE time >= {first}s AND time < {last}s "
                             f"GROUP BY time({every}s){group}")

    def count(self, texts):
        return sum(len(series["values"]) for text in texts
                   for series in json.loads(text)["results"][0].get("series", []))

    def rows(self, form, last):
        if self.name == "EdgeCase":
            return self.ask("/api/v1/query", ns="d", select="one/*", format=form)
        return self.ask("/query", headers=HEADERS.get(form), db="d", q=f"SELECT v FROM one WHERE time < {last}s")

    def influxql_rows(self, last):
        """Where it speaks InfluxQL: what a client of that gets; else its own JSON."""
        if isinstance(self, (VictoriaServer, QuestServer)):
            return self.rows("json", last)
        return self.influxql(f"SELECT v FROM one WHERE time < {last}s")

    def last(self, _last):
        return self.ask("/query", db="d", q="SELECT last(v) FROM one")


class VictoriaServer(Server):
    def written(self, counts):
        self.ask("/internal/force_flush")

    def metricsql(self, query, first, last, every):
        return self.ask("/api/v1/query_range", query=query, start=first, end=last, step=f"{every}s", nocache="1")

    def windows(self, function, measurement, first, last, every, by=""):
        name = {"mean": "avg"}.get(function, function) + "_over_time"
        texts = []
        for begin in range(first, last, every * VICTORIA_POINTS_MAX):
            end = min(last, begin + every * VICTORIA_POINTS_MAX)
            texts.append(self.metricsql(f"{name}({measurement}_v[{every}s])", begin + every - 1, end - 1, every))
        return texts

    def count(self, texts):
        return sum(len(series.get("values", [0])) for text in texts for series in json.loads(text)["data"]["result"])

    def rows(self, form, last):
        if form == "json":
            return self.ask("/api/v1/export", **{"match[]": "one_v"})
        return self.ask("/api/v1/export/csv", **{"match[]": "one_v", "format": "__timestamp__:unix_s,__value__"})

    def last(self, last):
        return self.ask("/api/v1/query", query="one_v", time=last - 1)


class QuestServer(Server):
    def write(self, lines):
        self.ask("/write?precision=s", lines.encode(), "POST")

    def written(self, counts):
        from daemon_process import until
        for table, count in counts.items():
            until(lambda table=table, count=count: json.loads(
                self.sql(f"SELECT count() FROM {table}"))["dataset"] == [[count]], f"QuestDB has {table}", 600)

    def sql(self, statement, path="/exec"):
        return self.ask(path, query=statement)

    def windows(self, function, measurement, first, last, every, by=""):
        name = {"mean": "avg"}.get(function, function)
        tag = f"{by}, " if by else ""
        return [self.sql(f"SELECT timestamp, {tag}{name}(v) FROM {measurement} WHERE timestamp >= {first}000000 AND "
                         f"timestamp < {last}000000 SAMPLE BY {every}s")]

    def count(self, texts):
        return sum(json.loads(text)["count"] for text in texts)

    def rows(self, form, last):
        return self.sql("SELECT timestamp, device, v FROM one", "/exec" if form == "json" else "/exp")

    def last(self, last):
        return self.sql("SELECT timestamp, v FROM one LATEST ON timestamp PARTITION BY device")


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
        from influxd import INFLUXD as is_there, Influxd as Peer
    elif name == "QuestDB":
        from questdb import QUESTDB as is_there, Quest as Peer
    else:
        from victoria import VICTORIA as is_there, Victoria as Peer
    if not is_there:
        print(f"{name} is not installed: left out", file=sys.stderr)
        return None
    peer = Peer()
    made = {"VictoriaMetrics": VictoriaServer, "QuestDB": QuestServer}.get(name, Server)
    server = made(name, peer.stop, peer.port, peer.process)
    if name == "InfluxDB":
        server.ask("/query", method="POST", q="CREATE DATABASE d")
    return server


def start_all():
    return [server for name in ("EdgeCase", "InfluxDB", "VictoriaMetrics", "QuestDB") if (server := start(name))]


def fill(server, readings, hours):
    for begin in range(0, readings, LINES):
        server.write("".join(f"one,device=one v={20 + i * 7919 % 10007 / 1000} {BEGIN + i}\n"
                             for i in range(begin, min(begin + LINES, readings))))
    for begin in range(0, hours * 3600, LINES // SERIES):
        for panel in range(PANELS):
            server.write("".join(f"p{panel},device=d{series} v={(i * 31 + series * 7) % 997 / 10} {BEGIN + i}\n"
                                 for series in range(SERIES)
                                 for i in range(begin, min(begin + LINES // SERIES, hours * 3600))))
    panels = {f"p{panel}": hours * 3600 * SERIES for panel in range(PANELS)} if hours else {}
    server.written({"one": readings, **panels})


def timed(ask):
    begin = time.monotonic()
    answer = ask()
    return (time.monotonic() - begin) * 1e3, answer


def questions(readings, hours):
    """A name, and what is asked of a server. Servers whose answers are counted answer as much as each other."""
    end = BEGIN + readings // 3600 * 3600
    for function in ("mean", "min", "max", "count"):
        yield f"hourly {function} of {readings:,}", \
            lambda server, function=function: server.windows(function, "one", BEGIN, end, 3600)
    yield "mean of each minute", lambda server: server.windows("mean", "one", BEGIN, end, 60)
    yield "mean of each 10 s", lambda server: server.windows("mean", "one", BEGIN, end, 10)
    yield "last value", lambda server: server.last(BEGIN + readings) and []
    yield f"{readings:,} rows as CSV", lambda server: server.rows("csv", BEGIN + readings) and []
    yield f"{readings:,} rows as JSON", lambda server: server.rows("json", BEGIN + readings) and []
    yield f"{readings:,} rows as InfluxQL's JSON", \
        lambda server: server.influxql_rows(BEGIN + readings) and []
    if hours:
        yield f"dashboard, {hours} h", lambda server: [text for panel in range(PANELS) for text in server.windows(
            "mean", f"p{panel}", BEGIN, BEGIN + hours * 3600, 60, "device")]


def measure(servers, rounds, asked, are_alike=True):
    """
    Prints medians; `asked` yields names and questions. A question may be None for a server; one that a peer refuses has
    no figure of it, and what it said stands below. How many miss.
    """
    misses, refusals = 0, []
    print(f"{'milliseconds':32}" + "".join(f"{server.name:>17}" for server in servers) + f"{'to best peer':>15}")
    for name, ask in asked:
        firsts, medians, counts = [], [], []
        for server in servers:
            took = []
            server.connection.close()  # the peers' questions may have taken longer than it stays open
            try:
                for i in range(rounds):
                    each, texts = timed(lambda server=server: ask(server))
                    took.append(each)
                    if i == 0 and texts is not None:
                        counts.append(server.count(texts))
            except (Refused, http.client.HTTPException, OSError) as refusal:
                if server is servers[0]:
                    raise
                refusals.append(f"{name}: {server.name}: {refusal}")
                server.connection.close()
                texts = None
            took = took or [float("nan")] * 2
            firsts.append(took[0] if texts is not None else float("nan"))
            medians.append(statistics.median(took[1:]) if texts is not None else float("nan"))
        if are_alike and len(set(counts)) > 1:
            raise AssertionError(f"{name}: the servers answer differently much: {counts}")
        of_dashboard = name.startswith("dashboard")
        for label, figures in ([(name + ", first", firsts)] if of_dashboard else []) + [(name, medians)]:
            peers = [each for each in figures[1:] if each == each]
            ratio = figures[0] / min(peers) if peers else float("nan")
            misses += ratio > 1
            if told := next((TOLD[begin] for begin in TOLD if name.startswith(begin)), None):
                each_of = {f"{told}_{server.name.lower()}_ms": each for server, each in zip(servers, figures)}
                each_of[f"{told}_to_best"] = ratio
                FIGURES.update({key: each for key, each in each_of.items() if each == each})
            print(f"{label:32}" + "".join(f"{each:17.2f}" for each in figures) + f"{ratio:15.2f}", flush=True)
    print(f"{'most memory, MiB':32}" + "".join(f"{server.memory_mib():17.0f}" for server in servers))
    print("".join(each + "\n" for each in refusals), end="")
    load = os.getloadavg()
    print(f"load of 1, 5, 15 minutes: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}")
    return misses


def given_to(text, **numbers):
    """The parser of what is given, and that; each of `numbers` has its least and what it is otherwise."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers["rounds"] = (2, 5)
    for name, (_, otherwise) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=otherwise)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for name, (least, _) in numbers.items():
        if getattr(given, name) < least:
            parser.error(f"--{name} is at least {least}")
    if "EDGECASE_PROGRAM" not in os.environ:
        sys.exit("EDGECASE_PROGRAM is not set")
    return given


def compare(given, fill_all, asked, are_alike=True):
    """Starts, fills and asks all servers. The exit code."""
    servers = []
    try:
        with contextlib.redirect_stdout(sys.stderr if given.json else sys.stdout):
            servers = start_all()
            fill_all(servers)
            misses = measure(servers, given.rounds, asked, are_alike)
    finally:
        for server in servers:
            server.connection.close()
            server.server()
    if given.json:
        print(json.dumps(FIGURES))
    return 3 if given.check and misses else 0


def main():
    given = given_to(__doc__, readings=(7200, 1_000_000), hours=(0, 24))

    def fill_all(servers):
        for server in servers:
            took, _ = timed(lambda server=server: fill(server, given.readings, given.hours))
            print(f"{server.name} was filled in {took / 1e3:.1f} s", file=sys.stderr)
    return compare(given, fill_all, questions(given.readings, given.hours))


if __name__ == "__main__":
    sys.exit(main())
